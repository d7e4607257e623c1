//! A goal that the user stated in a prompt: a record with a life of its own, so that no number of events can push it
//! out of memory. It is tied to the session's durable goal if there is one.

use serde::Serialize;
use strum::{Display, EnumIter, EnumString, IntoStaticStr};

use crate::clock::Millis;
use crate::directive::Directive;
use crate::redact;
use crate::text;

/// The longest text kept of a stated goal; the same as for a durable one.
pub const LENGTH_KEPT: usize = 4_000;
/// What is left of a longer one, so that there is room to say so.
const CUT_AT: usize = 3_900;
/// Nothing behind this many bytes is looked at: far more than is kept, so that a secret at the edge is seen whole.
const LOOKED_AT: usize = 8 * LENGTH_KEPT;

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
        stated == objective.trim() || stated == kept(objective).trim()
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
/// wakes a paused one. The text of the directive is what [`kept`] made of it.
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

/// How the mark ends that says that the user wrote more.
const SHORTENED: &str = " characters kept]";

/// Whether the user wrote more than was kept.
pub fn is_shortened(objective: &str) -> bool {
    objective.ends_with(SHORTENED)
}

/// What is kept of an objective: printable, redacted, and with a mark where it was cut.
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
