//! What is asked before an action, in words that say what will happen, and what a typed answer means.

use steadfast_app::overview::now::{Action, NeedKind, Subject};

use super::rows::TopRow;
use super::words;
use crate::actions::ActionFields;

/// How much of a title a question shows.
const TITLE: usize = 40;

/// How an action begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Start {
    /// It can be undone, or changes nothing.
    AtOnce {
        /// What is done now.
        says: String,
    },
    /// It is asked about first.
    Confirm { question: String },
    /// It needs words.
    Prompt { label: &'static str, help: &'static str },
}

/// What pressing a key means for a row; `None` if nothing can be done.
pub(super) fn action_of(key: char, row: &TopRow) -> Option<Action> {
    let first = |wanted: &[Action]| wanted.iter().copied().find(|action| row.actions.contains(action));
    match key {
        'p' => first(&[Action::Pause, Action::Resume, Action::Reconcile]),
        'e' => first(&[Action::Extend]),
        'v' => first(&[Action::Verify]),
        'a' => first(&[Action::Approve, Action::Complete]),
        // A goal that waits for a sign-off is sent back by resuming it.
        'r' => first(&[Action::Reject])
            .or_else(|| first(&[Action::Resume]).filter(|_| row.need == Some(NeedKind::SignOff))),
        's' => first(&[Action::Say]),
        'x' => first(&[Action::Kill, Action::Abandon]),
        _ => None,
    }
}

/// The keys of actions, in the order in which they are offered.
pub(super) const KEYS: [char; 7] = ['a', 'r', 'p', 'e', 'v', 's', 'x'];

/// What a key does to a row, in a word.
pub(super) fn word(key: char, action: Action, row: &TopRow) -> &'static str {
    let is_sign_off = row.need == Some(NeedKind::SignOff);
    match action {
        Action::Resume if key == 'r' || is_sign_off => "send back",
        Action::Complete if is_sign_off => "sign off",
        Action::Pause => "pause",
        Action::Resume => "resume",
        Action::Extend => "extend",
        Action::Verify => "verify",
        Action::Complete => "complete",
        Action::Abandon => "abandon",
        Action::Reconcile => "accept gap",
        Action::Adopt => "adopt",
        Action::QueueMove => "move in queue",
        Action::QueueDrop => "drop from queue",
        Action::Kill => "kill",
        Action::Approve => "approve",
        Action::Reject => "reject",
        Action::Say => "say",
    }
}

/// Why a key does nothing here.
pub(super) fn refused(key: char) -> &'static str {
    match key {
        'p' => "cannot be paused or resumed",
        'e' => "has no limit to extend from here",
        'v' => "has no checks to run from here",
        'a' | 'r' => "waits for no approval or sign-off",
        's' => "cannot be told anything",
        _ => "is not running",
    }
}

fn noun(subject: &Subject) -> String {
    match subject {
        Subject::Goal { .. } => "goal".to_owned(),
        Subject::Run { kind, .. } | Subject::Appointment { kind, .. } => kind.to_string(),
    }
}

/// How an action on a row begins.
pub(super) fn start(action: Action, row: &TopRow) -> Start {
    let title = words::cut(&row.title, TITLE);
    let noun = row.subject.as_ref().map(noun).unwrap_or_default();
    let confirm = |question: String| Start::Confirm { question };
    let at_once = |says: String| Start::AtOnce { says };
    match action {
        Action::Pause => at_once(format!("pausing {noun} {title} …")),
        Action::Resume if row.need == Some(NeedKind::SignOff) => {
            confirm(format!("Send back {title}? The goal is not complete and continues."))
        }
        Action::Resume => at_once(format!("resuming {noun} {title} …")),
        Action::Verify => at_once(format!("running the checks of {title} …")),
        Action::Extend => Start::Prompt { label: "Extend by", help: "+1M tokens, +$5, +5 turns, +2h" },
        Action::Say => Start::Prompt { label: "Say", help: "the next iteration reads it" },
        Action::Reject => Start::Prompt { label: "Reject because", help: "the stage does not start; empty: no reason" },
        Action::Approve => {
            let stage = row.stage.map(|stage| format!("stage {stage} of ")).unwrap_or_default();
            confirm(format!("Approve {stage}{title}? It starts at once."))
        }
        Action::Complete if row.need == Some(NeedKind::SignOff) => {
            confirm(format!("Sign off {title}? The goal is complete by your word."))
        }
        Action::Complete => {
            confirm(format!("Complete {title} by your word? No check is run, and the agent stops working on it."))
        }
        Action::Abandon => confirm(format!("Abandon goal {title}? It ends for good; its history stays.")),
        Action::Kill if matches!(row.subject, Some(Subject::Appointment { .. })) => {
            confirm(format!("Cancel the appointment of {noun} {title}? It will not start."))
        }
        Action::Kill => confirm(format!(
            "Kill {noun} {title}? Its agents stop now; finished iterations stay; `resume` continues it."
        )),
        Action::Reconcile => {
            confirm(format!("Resume {title}? What was used in the gap of its accounting is never counted."))
        }
        Action::Adopt | Action::QueueMove | Action::QueueDrop => at_once(format!("{action} {title} …")),
    }
}

/// Reads amounts to add: `+1M tokens`, `+5 turns`, `2h`, `$5`, or several of them.
pub(super) fn amounts(typed: &str) -> Result<ActionFields, String> {
    let spaced = typed.replace([',', '+'], " ");
    let mut words = spaced.split_whitespace().peekable();
    let mut amounts = ActionFields::default();
    while let Some(word) = words.next() {
        let number: String = word.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
        let unit: String = word.chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect();
        let is_number = number.starts_with(|c: char| c.is_ascii_digit()) && number.parse::<f64>().is_ok();
        let name = words.peek().map(|next| next.to_lowercase()).unwrap_or_default();
        let named = |names: &[&str]| names.contains(&name.as_str());
        let (place, amount, has_name) = match unit.to_lowercase().as_str() {
            _ if !is_number => return Err(format!("`{word}` is no amount")),
            "$" | "usd" => (&mut amounts.usd, number, named(&["usd", "dollar", "dollars"])),
            "h" => (&mut amounts.hours, number, false),
            "m" if word.ends_with('m') && !named(&["token", "tokens"]) => {
                return Err(format!("`{word}`: hours are `0.5h`, tokens are `{number}M`"));
            }
            "k" | "m" | "b" => (&mut amounts.tokens, word.to_owned(), named(&["token", "tokens"])),
            "" if named(&["token", "tokens"]) => (&mut amounts.tokens, number, true),
            "" if named(&["turn", "turns"]) => (&mut amounts.turns, number, true),
            "" if named(&["h", "hour", "hours"]) => (&mut amounts.hours, number, true),
            "" if named(&["$", "usd", "dollar", "dollars"]) => (&mut amounts.usd, number, true),
            _ => return Err(format!("`{word}` needs a unit: tokens, turns, h or $")),
        };
        if place.is_some() {
            return Err(format!("`{word}`: the same limit twice"));
        }
        *place = Some(amount);
        if has_name {
            words.next();
        }
    }
    if amounts == ActionFields::default() { Err("type an amount, such as +1M tokens".to_owned()) } else { Ok(amounts) }
}

/// What the amounts will do.
pub(super) fn effect_of(amounts: &ActionFields) -> String {
    let parts = [
        amounts.tokens.as_ref().map(|tokens| format!("{tokens} tokens")),
        amounts.usd.as_ref().map(|usd| format!("${usd}")),
        amounts.turns.as_ref().map(|turns| format!("{turns} turns")),
        amounts.hours.as_ref().map(|hours| format!("{hours} h")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("adds {}; resumes it if that limit had stopped it", parts.join(" and "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_type_them() {
        let read = |typed: &str| {
            let amounts = amounts(typed)?;
            let parts = [amounts.tokens, amounts.usd, amounts.turns, amounts.hours];
            Ok(parts.map(Option::unwrap_or_default).join("|"))
        };
        for (typed, meant) in [
            ("+1M tokens", "1M|||"),
            ("500k", "500k|||"),
            ("2.5M", "2.5M|||"),
            ("1000000 tokens", "1000000|||"),
            ("+5 turns", "||5|"),
            ("1 turn", "||1|"),
            ("+2h", "|||2"),
            ("1.5 hours", "|||1.5"),
            ("+$5", "|5||"),
            ("5$", "|5||"),
            ("5 usd", "|5||"),
            ("+1M tokens +2h, $5", "1M|5||2"),
        ] {
            assert_eq!(read(typed), Ok::<_, String>(meant.to_owned()), "{typed}");
        }
        for typed in ["", "lots", "5", "5 apples", "-5 turns", "2h 3h", "90m", "1..2h", "$"] {
            assert!(read(typed).is_err(), "{typed}");
        }
    }
}
