//! Delivers to the user's own program: the message is JSON on stdin and text in variables, never part of a command line.

use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::Stdio;

use steadfast_engine::process::LimitedCommand;
use steadfast_model::outbox::delivery::Delivery;
use steadfast_model::text;
use steadfast_system::config::NotifyConfig;
use steadfast_system::env_vars;

use super::{DeliveryFailure, LIMIT, payload};

/// How much of the program's last line is kept.
const SAID: usize = 200;

pub(super) fn run(config: &NotifyConfig, delivery: &Delivery) -> Result<(), DeliveryFailure> {
    let Some((program, arguments)) = config.command.split_first() else {
        return Err(DeliveryFailure { is_final: true, ..DeliveryFailure::new("no command is configured any more") });
    };
    let outcome = stdin(delivery)
        .and_then(|stdin| {
            LimitedCommand::new(program, Path::new("/"), LIMIT)
                .args(arguments.iter().map(String::as_str))
                .env(env_vars::TITLE, &delivery.title)
                .env(env_vars::BODY, &delivery.body)
                .env(env_vars::KIND, &delivery.kind)
                .stdin(stdin)
                .run()
        })
        .map_err(|error| DeliveryFailure::new(format!("{program}: {error}")))?;
    let said = outcome.output_tail.lines().last().map(|line| text::headline(line, SAID)).unwrap_or_default();
    match outcome.exit_code {
        Some(0) => Ok(()),
        _ if outcome.timed_out => {
            Err(DeliveryFailure::new(format!("{program}: did not end within {} s", LIMIT.as_secs())))
        }
        Some(code) => Err(DeliveryFailure::new(format!("{program}: exit code {code} {said}").trim_end())),
        None => Err(DeliveryFailure::new(format!("{program}: ended by a signal"))),
    }
}

/// A file, because a program that does not read must not block the writer.
fn stdin(delivery: &Delivery) -> std::io::Result<Stdio> {
    let mut file = tempfile::tempfile()?;
    file.write_all(payload(delivery).as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}
