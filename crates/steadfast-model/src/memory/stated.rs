//! A goal that the user stated in a prompt: a record of its own, so that no number of events evicts it. It is linked to the
//! session's durable goal if there is one.

use serde::{Deserialize, Serialize};
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

use crate::clock::Millis;
use crate::directive::Directive;
use crate::{redact, text};

/// The longest text kept of a stated goal; the same as for a durable one.
pub const LENGTH_KEPT: usize = 4_000;
/// A longer one is cut here, which leaves room for the note.
const CUT_AT: usize = 3_900;
/// Only this many bytes are read: more than is kept, so that a secret at the edge is recognized.
const LOOKED_AT: usize = 8 * LENGTH_KEPT;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(Display, EnumString, EnumIter, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum StatedStatus {
    Active,
    Paused,
    /// Another goal was stated later.
    Replaced,
    Cleared,
    Done,
}

impl StatedStatus {
    /// Whether it is still the goal of the session.
    pub fn holds(self) -> bool {
        matches!(self, Self::Active | Self::Paused)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatedGoal {
    pub id: i64,
    pub session_id: String,
    /// What the user wrote, or its beginning and a note.
    pub objective: String,
    pub status: StatedStatus,
    /// The durable goal that was live in the session when this was stated.
    pub goal_id: Option<String>,
    pub set_at_ms: Millis,
    pub changed_at_ms: Millis,
}

impl StatedGoal {
    /// Whether a durable goal has the same text.
    pub fn says(&self, objective: &str) -> bool {
        let stated = self.objective.trim();
        stated == objective.trim() || stated == kept(objective).trim()
    }
}

/// What a directive does to the stated goal of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StatedChange {
    Nothing,
    /// The current one, if any, becomes `replaced`, and this text is the goal.
    Set(String),
    /// The current one gets this status.
    Move(StatedStatus),
}

/// Decides what a directive changes, given the current goal. Stating the same goal again only resumes a paused one. The
/// text of the directive comes from [`kept`].
pub fn decide<Text: AsRef<str>>(holding: Option<&StatedGoal>, directive: &Directive<Text>) -> StatedChange {
    let set = |objective: &str| match holding {
        Some(goal) if goal.objective == objective && goal.status == StatedStatus::Active => StatedChange::Nothing,
        Some(goal) if goal.objective == objective => StatedChange::Move(StatedStatus::Active),
        _ => StatedChange::Set(objective.to_owned()),
    };
    let moved = |status: StatedStatus| match holding {
        Some(goal) if goal.status != status => StatedChange::Move(status),
        _ => StatedChange::Nothing,
    };
    match directive {
        Directive::State(objective) | Directive::Edit(Some(objective)) => set(objective.as_ref()),
        Directive::Clear => moved(StatedStatus::Cleared),
        Directive::Pause => moved(StatedStatus::Paused),
        Directive::Resume => moved(StatedStatus::Active),
        Directive::Done => moved(StatedStatus::Done),
        Directive::Edit(None) | Directive::Status => StatedChange::Nothing,
    }
}

/// The end of the note that the user wrote more.
const SHORTENED: &str = " characters kept]";

/// Whether the user wrote more than was kept.
pub fn is_shortened(objective: &str) -> bool {
    objective.ends_with(SHORTENED)
}

/// The stored text of an objective: printable, redacted, and with a note if it was cut.
pub fn kept(objective: &str) -> String {
    let window = text::head(objective, LOOKED_AT);
    let printable = text::printable(window);
    let safe = redact::redact(printable.trim());
    let length = safe.chars().count();
    if window.len() == objective.len() && length <= LENGTH_KEPT {
        return safe.into_owned();
    }
    let start: String = safe.chars().take(CUT_AT).collect();
    let length = if window.len() == objective.len() { length } else { objective.chars().count() };
    let number = |count: usize| text::thousands(i64::try_from(count).unwrap_or(i64::MAX));
    let mark = format!(" … [{} of {}{SHORTENED}", number(start.chars().count()), number(length));
    start + &mark
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
            assert_eq!(decide(goal, &directive), change, "{directive:?} on {goal:?}");
        }
    }

    #[test]
    fn a_text_that_is_too_long_says_so() {
        for (text, length) in [("目".repeat(50_000), "50,000"), ("a".repeat(4_001), "4,001")] {
            let kept = kept(&text);
            assert!(kept.chars().count() <= LENGTH_KEPT);
            assert!(kept.ends_with(&format!("{} … [3,900 of {length} characters kept]", &text[..3])), "{kept}");
        }
        assert_eq!(kept(&"a".repeat(4_000)), "a".repeat(4_000));
    }

    #[test]
    fn a_secret_at_the_edge_goes_whole() {
        let key = "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";
        for before in CUT_AT - key.len()..=CUT_AT {
            let text = format!("{} {key} {}", "a".repeat(before), "b ".repeat(100));
            assert!(!kept(&text).contains("sk-ant"), "{before}");
        }
        assert_eq!(kept(" ship it with \u{1b}[1mtoken=abc\u{1b}[0m\u{7} "), "ship it with token=[redacted]");
    }
}
