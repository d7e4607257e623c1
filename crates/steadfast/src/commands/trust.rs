//! `steadfast trust`: shows what the repository of this project makes the engine and its agents run or say, and records
//! that the user trusts it until it changes. For people only.

use std::io::IsTerminal as _;
use std::path::Path;

use serde_json::{Value, json};
use steadfast_engine::plan::{
    DefinitionOrigin, Overrides, PlanError, Planned, UsedDefinition, plan_loop, plan_pipeline,
};
use steadfast_engine::trust::{Repository, State, TrustItem};
use steadfast_model::host::Host;
use steadfast_model::run::RunKind;
use steadfast_model::text;
use steadfast_system::bounded;

use super::runs::{self, RunContext};
use super::setup;
use crate::cli::TrustArgs;
use crate::error::{CliError, code};
use crate::output::{self, CommandOutput, CommandResult};

pub(crate) fn run(db: Option<&Path>, arguments: &TrustArgs, is_json: bool) -> CommandResult {
    let context = RunContext::new(db, RunKind::Loop, is_json)?;
    let repository = Repository::of(&context.project);
    let items = match &arguments.name {
        Some(name) => repository.items_of_definitions(&named(&context, name)?)?,
        None => all(&context, &repository)?,
    };
    if arguments.revoke {
        runs::refuse_agent(&context)?;
        let count = runs::revoke(&context, &repository, arguments.name.as_ref().map(|_| items.as_slice()))?;
        let text = format!("{} no longer trusted", text::count(count, "file"));
        return Ok(CommandOutput { text, json: json!({"revoked": count}), code: 0 });
    }
    let states = || -> Result<Vec<(TrustItem, State)>, CliError> {
        let ledger = runs::ledger(&context)?;
        Ok(items.iter().map(|item| (item.clone(), ledger.state(&repository, item))).collect())
    };
    let before = states()?;
    let is_open = before.iter().any(|(_, state)| *state != State::Trusted);
    if arguments.list || !is_open || is_json && !arguments.yes {
        return Ok(listed(&repository, &before, 0));
    }
    runs::refuse_agent(&context)?;
    if !arguments.yes {
        let can_ask = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if !can_ask {
            output::note("not trusted yet: there is no terminal to ask on; `steadfast trust --yes` says yes");
            return Ok(listed(&repository, &before, code::WRONG_STATE));
        }
        output::line(&page(&repository, &before));
        if !setup::ask("Trust all of this until it changes?")? {
            return Err(CliError::new(
                code::WRONG_STATE,
                "not trusted",
                "runs that use it are refused until you say yes",
            ));
        }
    }
    runs::record(&context, &repository, &items)?;
    let listed = listed(&repository, &states()?, 0);
    Ok(CommandOutput { text: if arguments.yes { listed.text } else { "trusted".to_owned() }, ..listed })
}

/// The definitions behind a name or path: a loop type, a pipeline, or one of each.
fn named(context: &RunContext, name: &str) -> Result<Vec<UsedDefinition>, CliError> {
    let (of_loop, of_pipeline) = (plan(context, RunKind::Loop, name), plan(context, RunKind::Pipeline, name));
    match (of_loop, of_pipeline) {
        (Err(PlanError::Io(error)), _) | (_, Err(PlanError::Io(error))) => Err(error.into()),
        (Ok(of_loop), Ok(of_pipeline)) => Ok(of_loop.used.into_iter().chain(of_pipeline.used).collect()),
        (Ok(planned), Err(_)) | (Err(_), Ok(planned)) => Ok(planned.used),
        (Err(PlanError::NoDefinitionNamed { .. }), Err(PlanError::NoDefinitionNamed { .. })) => {
            let message = format!("there is no loop type or pipeline `{}`", text::headline(name, 100));
            let hint = "see `steadfast loop types` and `steadfast pipeline types`; a file needs its path: `./FILE`";
            Err(CliError::new(code::NOT_FOUND, message, hint))
        }
        (Err(faults @ PlanError::Faults(_)), Err(_)) | (Err(_), Err(faults)) => Err(faults.into()),
    }
}

fn plan(context: &RunContext, kind: RunKind, name: &str) -> Result<Planned, PlanError> {
    let (catalogue, flags) = (context.catalogue(), Overrides::default());
    // A folder may have a name that no run can have.
    match kind {
        RunKind::Loop => plan_loop(&catalogue, name, Some("name"), &flags),
        RunKind::Pipeline => plan_pipeline(&catalogue, name, Some("name"), &flags, context.now),
    }
}

/// Everything that the repository brings: its definitions, and what the clients load by themselves.
fn all(context: &RunContext, repository: &Repository) -> Result<Vec<TrustItem>, CliError> {
    let mut items: Vec<TrustItem> = Vec::new();
    let mut add = |more: Vec<TrustItem>| {
        for item in more {
            if items.iter().all(|other| other.file != item.file) {
                items.push(item);
            }
        }
    };
    for kind in [RunKind::Loop, RunKind::Pipeline] {
        let definitions = context.catalogue().list(kind)?;
        for definition in definitions.iter().filter(|definition| definition.origin == DefinitionOrigin::Project) {
            match plan(context, kind, &definition.name) {
                Ok(planned) => add(repository.items_of_definitions(&planned.used)?),
                Err(PlanError::Io(error)) => return Err(error.into()),
                Err(_) => {
                    let (file, name) = (repository.shown(Path::new(&definition.file)), &definition.name);
                    let hint = format!("see `steadfast {kind} validate {name}`");
                    output::note(&format!("note: {file} has errors and is left out: {hint}"));
                }
            }
        }
    }
    for host in Host::ALL {
        add(repository.items_of_client(*host)?);
    }
    Ok(items)
}

fn listed(repository: &Repository, items: &[(TrustItem, State)], code: u8) -> CommandOutput {
    let object = |(item, state): &(TrustItem, State)| {
        let mut object = serde_json::to_value(item).unwrap_or_default();
        object["state"] = json!(state);
        object
    };
    let objects: Value = items.iter().map(object).collect();
    let is_trusted = items.iter().all(|(_, state)| *state == State::Trusted);
    let text = if items.is_empty() {
        "this repository brings nothing that needs trust".into()
    } else {
        page(repository, items)
    };
    CommandOutput { text, json: json!({"trusted": is_trusted, "items": objects}), code }
}

/// The items with all that they run and set. Nothing is cut, and nothing in them can hide or drive the terminal.
pub(super) fn page(repository: &Repository, items: &[(TrustItem, State)]) -> String {
    let mut lines = Vec::new();
    for (item, state) in items {
        lines.push(format!("{} ({})", repository.shown(&item.file), about(item, *state)));
        lines.extend(item.commands.iter().map(|command| format!("  runs {}", visible(command))));
        lines.extend(item.settings.iter().map(|setting| format!("  sets {}", visible(setting))));
        if item.what == "prompt" {
            lines.extend(begins(&item.file).map(|first| format!("  says {first}")));
        }
    }
    lines.join("\n")
}

/// What an item is and whether it is trusted, in a few words.
pub(super) fn about(item: &TrustItem, state: State) -> String {
    let shadows =
        if item.shadows { format!(", takes the place of another {} of that name", item.what) } else { String::new() };
    let state = match state {
        State::Trusted => "trusted",
        State::Changed => "changed since you trusted it",
        State::New => "new",
    };
    format!("{}, {state}{shadows}", item.what)
}

/// The first line of a prompt; the file has the rest.
fn begins(file: &Path) -> Option<String> {
    let text = bounded::text(file, 1 << 20).ok()?;
    let lines = text.lines().count();
    let first = visible(&text::cut(text.lines().find(|line| !line.trim().is_empty())?.trim(), 100));
    Some(format!("{first} ({})", text::count(lines, "line")))
}

/// Shows control characters and invisible ones by their numbers; further lines are indented.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\n       "),
            c if c.is_control() || is_invisible(c) || text::printable(c.encode_utf8(&mut [0; 4])).is_empty() => {
                shown.extend(c.escape_unicode());
            }
            c => shown.push(c),
        }
    }
    shown
}

/// Characters without a shape of their own, which could hide a part of a command.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_command_is_hidden() {
        assert_eq!(visible("a\u{1b}[2Kb\r\u{202e}c\u{200b}\nd"), "a\\u{1b}[2Kb\\u{d}\\u{202e}c\\u{200b}\n       d");
    }
}
