//! Questions at the terminal: plain words, a default, and what a yes changes.

use std::io::{self, IsTerminal as _, Write as _};

use steadfast_hosts::install::{InstallPlan, Question};

use crate::cli::SetupArgs;
use crate::output;

/// Whether there is a person to ask.
pub(super) fn can_ask(arguments: &SetupArgs) -> bool {
    has_terminal() && !arguments.dry_run && !arguments.yes && !arguments.keeps_choices
}

pub(super) fn has_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a question to which only an explicit yes is one.
pub(crate) fn ask(question: &str) -> io::Result<bool> {
    write!(io::stderr(), "{question} [y/N] ")?;
    Ok(answer()?.unwrap_or(false))
}

pub(super) fn ask_question(question: &Question<'_>) -> io::Result<bool> {
    let choice = if question.default { "[Y/n]" } else { "[y/N]" };
    write!(io::stderr(), "\n{}\n  ({})\n{choice} ", question.text, question.change)?;
    Ok(answer()?.unwrap_or(question.default))
}

/// A question that a dry run does not ask, with what `--yes` answers: the default.
pub(super) fn in_a_line(question: &Question<'_>) -> String {
    let answer = if question.default { "yes" } else { "no" };
    format!("{} ({}; with --yes the answer is {answer})", question.text, question.change)
}

/// Shows the change in short and asks for it, if there is a person to ask; `--yes` has agreed already.
pub(super) fn agrees(plan: &InstallPlan, product: &str, arguments: &SetupArgs) -> io::Result<bool> {
    if !can_ask(arguments) {
        return Ok(true);
    }
    output::note(&format!("\n{product}: + new, ~ changed, - removed"));
    for line in plan.outline() {
        output::note(&format!("  {line}"));
    }
    let what = arguments.what.as_deref().map(|what| format!(" {what}")).unwrap_or_default();
    output::note(&format!("  every line: steadfast setup{what} --dry-run"));
    ask_question(&Question {
        text: &format!("Change {product} like this?"),
        change: "`steadfast setup --uninstall` restores every file as it was",
        default: true,
    })
}

/// `None` for an empty answer. The end of the input is a no.
fn answer() -> io::Result<Option<bool>> {
    let mut answer = String::new();
    if io::stdin().read_line(&mut answer)? == 0 {
        return Ok(Some(false));
    }
    Ok(match answer.trim().to_lowercase().as_str() {
        "" => None,
        answer => Some(matches!(answer, "y" | "yes")),
    })
}
