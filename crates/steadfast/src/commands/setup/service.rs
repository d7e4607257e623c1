//! `steadfast setup watch`: writes the service that starts `steadfast watch` at login. It is enabled only with `--yes`.

use std::path::{Path, PathBuf, absolute};
use std::time::Duration;

use steadfast_engine::process::LimitedCommand;
use steadfast_hosts::install::{self, ServiceRequest, ServiceSystem};
use steadfast_system::env_vars;
use steadfast_system::paths::Paths;

use super::{SetupSummary, lasting_program};
use crate::cli::SetupArgs;
use crate::error::{CliError, code};

const SYSTEM: ServiceSystem = ServiceSystem::HERE;
const LIMIT: Duration = Duration::from_secs(20);
pub(super) const SHOWN_AS: &str = "the service";

pub(super) fn install(paths: &Paths, arguments: &SetupArgs, summary: &mut SetupSummary) -> Result<(), CliError> {
    let (home, user_home) = (absolute(&paths.home)?, user_home()?);
    let plan = install::plan_service(
        SYSTEM,
        &ServiceRequest {
            home: &home,
            user_home: &user_home,
            program: &lasting_program(arguments)?,
            environment: &environment(&home),
        },
    )?;
    let is_new = !plan.is_empty();
    summary.add(plan, SHOWN_AS, arguments)?;
    let enable = SYSTEM.enable(&user_home);
    match arguments.yes && !arguments.dry_run {
        true => summary.notes.push(outcome(&enable, "enabled")),
        false if is_new => summary.notes.push(format!("to enable it: {}", enable.join(" "))),
        false => {}
    }
    Ok(())
}

/// The variables of this terminal that the service needs to find the same store, clients and session files.
fn environment(home: &Path) -> Vec<(&'static str, String)> {
    let set = [env_vars::DB, env_vars::PATH, env_vars::CLAUDE_CONFIG_DIR, env_vars::CODEX_HOME]
        .into_iter()
        .filter_map(|name| Some((name, env_vars::text(name)?)));
    std::iter::once((env_vars::HOME, home.display().to_string())).chain(set).collect()
}

/// Stops the service before its file is removed.
pub(super) fn uninstall(paths: &Paths, arguments: &SetupArgs, summary: &mut SetupSummary) -> Result<(), CliError> {
    let plan = install::plan_service_removal(&paths.home)?;
    if !plan.is_empty() && !arguments.dry_run {
        summary.notes.push(outcome(&SYSTEM.disable(&user_home()?), "disabled"));
    }
    summary.add(plan, SHOWN_AS, arguments)
}

fn user_home() -> Result<PathBuf, CliError> {
    let missing = || CliError::new(code::ENVIRONMENT, "no home directory is known", "set HOME");
    env_vars::path(env_vars::USER_HOME).ok_or_else(missing)
}

/// Runs a command of the system; if that fails, the user can.
fn outcome(command: &[String], what: &str) -> String {
    let [program, arguments @ ..] = command else { return String::new() };
    let limited = LimitedCommand::new(program, Path::new("/"), LIMIT).args(arguments.iter().map(String::as_str));
    match limited.run() {
        Ok(done) if done.exit_code == Some(0) => format!("{what} the service"),
        _ => format!("the service is not {what}; run: {}", command.join(" ")),
    }
}
