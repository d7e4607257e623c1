//! Lists of words: events of goals, reasons of pauses and ends, kinds of messages, variables of prompts.

use std::fmt::Display;

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
    let about = "The log of a goal: `steadfast goal history --events`, or the table `goal_events` of the store (`id`, `ts`, `kind`,\n\
        `payload`, status and version before and after, `actor`).";
    let mut text = page("Events and reasons", about);
    text.push_str(&format!("\n## Events of a goal\n\n{}", words::<EventKind>("kind")));
    text.push_str(&format!(
        "\n## Why a goal is paused\n\n`paused_reason` in JSON and in the store.\n\n{}",
        words::<PausedReason>("reason")
    ));
    text.push_str(&format!(
        "\n## Why a run ended\n\n`reason` in JSON and in the state files; a stage can also end under the name of its rule.\n\n{}",
        words::<RunReason>("reason")
    ));
    text.push_str(&format!(
        "\n## Messages to you\n\nThe words of `[notify] events`, and `kind` of a webhook.\n\n{}",
        words::<MessageKind>("kind")
    ));
    check("events.md", &text);
}

#[test]
fn the_page_of_variables_is_current() {
    let about = "What `${NAME}` means in the prompts of loops and pipelines. They are replaced in one pass: inserted text is not\n\
        searched again. `$${NAME}` writes `${NAME}`; an unknown name stays as it is and is reported.";
    let mut text = page("Variables of prompts", about);
    let row = |(name, meaning): (&str, &str)| [code(&format!("${{{name}}}")), prose(meaning)];
    let rows = template::VARIABLES.into_iter().chain(template::OF_DEFINITIONS).map(row);
    text.push_str(&format!("\n{}", table(["variable", "value"], rows)));
    text.push_str("\nExamples are in [loops and pipelines](../runs.md#variables).\n");
    check("variables.md", &text);
}
