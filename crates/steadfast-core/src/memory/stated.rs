//! A goal that the user stated in a prompt: a record with a life of its own, so that no number of events can push it
//! out of memory. It is tied to the session's durable goal if there is one.

use serde::Serialize;
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

use crate::clock::Millis;
use crate::directive::Directive;
use crate::memory::redact;
use crate::text;

/// The longest text kept of a stated goal; the same as for a durable one.
pub const LENGTH_KEPT: usize = 4_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, EnumIter, IntoStaticStr, Serialize)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum StatedStatus {
    Active,
    Paused,
    /// Another one was stated after it.
    Replaced,
    Cleared,
    Done,
}

impl StatedStatus {
    /// Whether it is still what the session is for.
    pub fn holds(self) -> bool {
        matches!(self, Self::Active | Self::Paused)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatedGoal {
    pub id: i64,
    pub session_id: String,
    /// What the user wrote, whole, or its beginning with a mark where it was cut.
    pub objective: String,
    pub status: StatedStatus,
    /// The durable goal that was live in the session when this was stated.
    pub goal_id: Option<String>,
    pub set_at_ms: Millis,
    pub changed_at_ms: Millis,
}

impl StatedGoal {
    /// Whether a durable goal has this very text, and so speaks for it.
    pub fn says(&self, objective: &str) -> bool {
        let stated = self.objective.trim();
        stated == objective.trim() || stated == clean(objective).trim()
    }
}

/// What a directive does to the stated goal of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatedChange {
    Nothing,
    /// The one that holds, if any, becomes `replaced`, and this text is the goal.
    Set(String),
    /// The one that holds gets this status.
    Move(StatedStatus),
}

/// Decides what a directive changes, given the goal that holds now. Stating the same goal again changes nothing but
/// wakes a paused one.
pub fn decide(holding: Option<&StatedGoal>, directive: Directive<'_>) -> StatedChange {
    let set = |objective: &str| {
        let objective = shortened(objective);
        match holding {
            Some(goal) if goal.objective == objective && goal.status == StatedStatus::Active => StatedChange::Nothing,
            Some(goal) if goal.objective == objective => StatedChange::Move(StatedStatus::Active),
            _ => StatedChange::Set(objective),
        }
    };
    let moved = |status: StatedStatus| match holding {
        Some(goal) if goal.status != status => StatedChange::Move(status),
        _ => StatedChange::Nothing,
    };
    match directive {
        Directive::State(objective) | Directive::Edit(Some(objective)) => set(objective),
        Directive::Clear => moved(StatedStatus::Cleared),
        Directive::Pause => moved(StatedStatus::Paused),
        Directive::Resume => moved(StatedStatus::Active),
        Directive::Done => moved(StatedStatus::Done),
        Directive::Edit(None) | Directive::Status => StatedChange::Nothing,
    }
}

/// An objective as it is kept, whether stated or durable: nothing that drives a terminal, no secrets, bounded.
pub fn clean(objective: &str) -> String {
    // Cut before anything looks at all of it.
    redact::redact(&text::printable(&shortened(objective))).into_owned()
}

/// Whether the user wrote more than was kept.
pub fn is_shortened(objective: &str) -> bool {
    objective.ends_with(SHORTENED)
}

const SHORTENED: &str = " characters kept]";

/// As much of an objective as is kept, with a mark where it was cut.
pub fn shortened(objective: &str) -> String {
    let length = objective.chars().count();
    if length <= LENGTH_KEPT {
        return objective.to_owned();
    }
    let mark = format!(" … [{} of {length}{SHORTENED}", text::thousands(3_900));
    let kept: String = objective.chars().take(3_900).collect();
    kept + &mark
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holding(objective: &str, status: StatedStatus) -> StatedGoal {
        StatedGoal {
            id: 1,
            session_id: "s".into(),
            objective: objective.into(),
            status,
            goal_id: None,
            set_at_ms: 1,
            changed_at_ms: 1,
        }
    }

    #[test]
    fn directives_move_the_goal_through_its_life() {
        use StatedStatus::{Active, Cleared, Done, Paused};
        let active = holding("ship", Active);
        let paused = holding("ship", Paused);
        for (goal, directive, change) in [
            (None, Directive::State("ship"), StatedChange::Set("ship".into())),
            (Some(&active), Directive::State("ship"), StatedChange::Nothing),
            (Some(&active), Directive::State("sail"), StatedChange::Set("sail".into())),
            (Some(&active), Directive::Edit(Some("sail")), StatedChange::Set("sail".into())),
            (Some(&active), Directive::Edit(None), StatedChange::Nothing),
            (Some(&active), Directive::Status, StatedChange::Nothing),
            (Some(&active), Directive::Pause, StatedChange::Move(Paused)),
            (Some(&paused), Directive::Pause, StatedChange::Nothing),
            (Some(&paused), Directive::Resume, StatedChange::Move(Active)),
            (Some(&paused), Directive::State("ship"), StatedChange::Move(Active)),
            (Some(&active), Directive::Clear, StatedChange::Move(Cleared)),
            (Some(&paused), Directive::Done, StatedChange::Move(Done)),
            (None, Directive::Clear, StatedChange::Nothing),
        ] {
            assert_eq!(decide(goal, directive), change, "{directive:?} on {goal:?}");
        }
    }

    #[test]
    fn a_text_that_is_too_long_says_so() {
        let StatedChange::Set(kept) = decide(None, Directive::State(&"目".repeat(50_000))) else { panic!("not set") };
        assert!(kept.chars().count() <= LENGTH_KEPT);
        assert!(kept.ends_with("[3,900 of 50000 characters kept]"));
    }
}
