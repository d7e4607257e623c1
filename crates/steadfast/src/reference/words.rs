//! Lists of words: events of goals, reasons of pauses and ends, kinds of messages, variables of prompts.

use std::fmt::{Display, Write as _};

use steadfast_model::goal::PausedReason;
use steadfast_model::goal::event::EventKind;
use steadfast_model::outbox::MessageKind;
use steadfast_model::run::RunReason;
use steadfast_model::run::template;
use strum::{EnumMessage, IntoEnumIterator};

use super::{check, code, page, prose, table};

/// The words of an enum with their comments.
fn words<T: IntoEnumIterator + EnumMessage + Display>(heading: &str) -> String {
    let row = |word: T| {
        let meaning = word.get_documentation().unwrap_or_else(|| panic!("`{word}` needs a comment"));
        [code(&word.to_string()), prose(meaning.trim_end_matches('.'))]
    };
    table([heading, "meaning"], T::iter().map(row))
}

#[test]
fn the_page_of_events_is_current() {
    let mut text = page("Events and reasons", include_str!("intro/events.md"));
    write!(text, "\n## Events of a goal\n\n{}", words::<EventKind>("kind")).unwrap();
    write!(
        text,
        "\n## Why a goal is paused\n\n`paused_reason` in JSON and in the store.\n\n{}",
        words::<PausedReason>("reason")
    )
    .unwrap();
    write!(
        text,
        "\n## Why a run ended\n\n`reason` in JSON and in the state files; a stage can also end by its rule.\n\n{}",
        words::<RunReason>("reason")
    )
    .unwrap();
    write!(
        text,
        "\n## Messages to you\n\nThe words of `[notify] events`, and `kind` of a webhook.\n\n{}",
        words::<MessageKind>("kind")
    )
    .unwrap();
    check("events.md", &text);
}

#[test]
fn the_page_of_variables_is_current() {
    let mut text = page("Variables of prompts", include_str!("intro/variables.md"));
    let row = |(name, meaning): (&str, &str)| [code(&format!("${{{name}}}")), prose(meaning)];
    let rows = template::VARIABLES.into_iter().chain(template::OF_DEFINITIONS).map(row);
    write!(text, "\n{}", table(["variable", "value"], rows)).unwrap();
    check("variables.md", &text);
}
