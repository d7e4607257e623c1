//! Carries out the commands that a person typed into a client, and answers them. `steadfast_app::hook::typed` decides
//! whether the answer blocks the prompt.

use steadfast_app::hook::typed::{self, Answered, Typed};
use steadfast_model::clock;
use steadfast_model::hook::{HookInput, HookReply, TypedCommand};
use steadfast_system::log;
use steadfast_system::paths::Paths;

use super::{context, describe};
use crate::commands::{doctor, goal, slash};
use crate::error::CliError;

pub(super) fn answer(input: &HookInput, commands: &[TypedCommand], other_text: bool, paths: &Paths) -> HookReply {
    let block = |text: String| HookReply { block: Some(text), ..HookReply::default() };
    let failed = |error| log::line(&paths.log_file(), &format!("{} {}: {error}", input.event_name, input.session_id));
    let typed = match typed::claim(input, commands, paths, clock::now()) {
        Ok(Ok(typed)) => Some(typed),
        Ok(Err(reply_of_first)) => return reply_of_first,
        // The command itself reports what is wrong with the store.
        Err(error) => {
            failed(error);
            None
        }
    };
    let asks_to_continue = |command: &TypedCommand| {
        let bare_resume = slash::name_of(&command.verb) == "resume" && command.arguments.is_empty();
        bare_resume && typed.as_ref().is_some_and(Typed::waits_for_user)
    };
    let answers: Vec<String> = commands
        .iter()
        .map(|command| {
            if asks_to_continue(command) {
                return "the goal is active\nnext: continues now".to_owned();
            }
            let run = || run(input, command, paths).unwrap_or_else(|error| describe(&error, input.host));
            match &typed {
                Some(typed) => typed.run_once(command, paths, run).unwrap_or_else(|error| error.to_string()),
                None => run(),
            }
        })
        .collect();
    let text = joined(input, commands, &answers);
    // Claude Code's own `/goal` may have taken the same prompt.
    let native_too = input.host.capabilities().has_goal_command && input.event_name == "UserPromptSubmit";
    if let ([command], true) = (commands, native_too) {
        let (product, verb) = (input.host.capabilities().product, &command.verb);
        let note = format!("If {product} started its own goal with that text, `/goal clear` ends it");
        return block(format!("{text}\n{note}; /goal-{verb} never starts one."));
    }
    let Some(typed) = &typed else { return block(text) };
    let verbs = commands.iter().map(|command| command.verb.as_str()).collect();
    let asked_to_continue = commands.iter().any(asks_to_continue);
    let answered = Answered { verbs, text, other_text, asked_to_continue };
    typed.reply(&answered, paths).unwrap_or_else(|error| {
        failed(error);
        block(answered.text)
    })
}

fn run(input: &HookInput, command: &TypedCommand, paths: &Paths) -> Result<String, CliError> {
    if command.verb == "doctor" {
        return Ok(doctor::report(paths, None, false).text);
    }
    let parsed = slash::parse(&command.verb, &command.arguments)?;
    Ok(goal::run(&context(input, paths), parsed.goal)?.output.text)
}

/// All answers, each below its command if there are several.
fn joined(input: &HookInput, commands: &[TypedCommand], answers: &[String]) -> String {
    if let [answer] = answers {
        return answer.clone();
    }
    let prefix = input.host.capabilities().command_prefix;
    let pairs = commands.iter().zip(answers);
    pairs.map(|(command, answer)| format!("{prefix}{}\n{answer}", command.verb)).collect::<Vec<_>>().join("\n\n")
}
