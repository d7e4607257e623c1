//! Where messages go, and when a failed delivery is tried again.

use strum::{Display, EnumIter, EnumString, IntoStaticStr};

use crate::clock::Millis;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumIter, EnumString, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Channel {
    Desktop,
    Command,
    Webhook,
}

/// How long one process may take for one try. After that, another process tries again.
pub const LEASE: Millis = 30_000;
/// The rests between tries, in units of the configured back-off.
const RESTS: [Millis; 4] = [1, 6, 60, 360];

/// One message on its way to one channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub outbox_id: i64,
    pub channel: Channel,
    /// Tries so far, with the one under way.
    pub tries: i64,
    pub kind: String,
    pub subject_id: String,
    pub title: String,
    pub body: String,
    pub created_at_ms: Millis,
}

impl Delivery {
    /// The same for every try, and for no other message.
    pub fn id(&self) -> String {
        format!("{}-{}", self.subject_id, self.outbox_id)
    }

    /// How long to wait after a failed try; `None` gives up.
    pub fn rest(&self, back_off: Millis) -> Option<Millis> {
        let failed = usize::try_from(self.tries.max(1) - 1).unwrap_or(usize::MAX);
        RESTS.get(failed).map(|units| units.saturating_mul(back_off))
    }
}

/// How a try ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Accepted,
    Failed { error: String, again_at: Millis },
    GivenUp { error: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_delivery_is_tried_five_times_with_growing_rests() {
        let mut delivery = Delivery {
            outbox_id: 1,
            channel: Channel::Webhook,
            tries: 0,
            kind: "blocked".into(),
            subject_id: "g".into(),
            title: "t".into(),
            body: "b".into(),
            created_at_ms: 0,
        };
        for rest in [Some(10_000), Some(60_000), Some(600_000), Some(3_600_000), None, None] {
            delivery.tries += 1;
            assert_eq!(delivery.rest(10_000), rest);
        }
    }
}
