//! Looks at what a goal waits for: a file, a process, or a command of the user.

use std::path::Path;
use std::time::Duration;

use steadfast_model::goal::Goal;
use steadfast_model::goal::wait::{Seen, Wait, WaitFor};
use steadfast_system::process::ProcessIdentity;

use crate::process::LimitedCommand;

/// Looks once. A command runs as verify commands do: in a shell, in the goal's directory, in a process group of its own
/// that is ended at the limit. Its output is dropped.
pub fn look(goal: &Goal, wait: &Wait, limit: Duration) -> Seen {
    let is_met = match &wait.wait_for {
        WaitFor::Time => false,
        WaitFor::File(path) => Path::new(path).exists(),
        WaitFor::Process { pid, started, boot } => {
            !ProcessIdentity { pid: *pid, started: started.clone(), boot: boot.clone() }.is_alive()
        }
        WaitFor::Command(command) => {
            let directory = goal.project_dir.as_deref().map_or_else(|| Path::new("."), Path::new);
            return match LimitedCommand::shell(command, directory, limit).status() {
                Ok((Some(0), _)) => Seen::Met,
                Ok((Some(code), _)) => Seen::Exited(code),
                Ok((None, true)) => Seen::TimedOut,
                Ok((None, false)) | Err(_) => Seen::Failed,
            };
        }
    };
    if is_met { Seen::Met } else { Seen::NotYet }
}

/// How long a look may take at most. No other process looks meanwhile.
pub fn longest_look(wait: &Wait, limit: Duration) -> Duration {
    match wait.wait_for {
        WaitFor::Command(_) => LimitedCommand::over_after(limit),
        WaitFor::Time | WaitFor::File(_) | WaitFor::Process { .. } => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn look_for(wait_for: WaitFor, limit: Duration) -> Seen {
        look(&Goal::default(), &Wait::new(wait_for, None, 0), limit)
    }

    fn command(text: &str) -> WaitFor {
        WaitFor::Command(text.into())
    }

    #[test]
    fn a_command_is_met_with_exit_code_0_only() {
        assert_eq!(look_for(command("echo out; echo err >&2"), LIMIT), Seen::Met);
        assert_eq!(look_for(command("exit 3"), LIMIT), Seen::Exited(3));
        assert_eq!(look_for(command("kill -TERM $$"), LIMIT), Seen::Failed);
        assert_eq!(look_for(command("sleep 30"), Duration::from_millis(50)), Seen::TimedOut);
        let gone = Goal { project_dir: Some("/no/such/directory".into()), ..Goal::default() };
        assert_eq!(look(&gone, &Wait::new(command("true"), None, 0), LIMIT), Seen::Failed);
    }

    #[test]
    fn a_file_is_met_when_it_exists() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a b;$(id)\n目");
        let wait_for = || WaitFor::File(file.to_str().unwrap().to_owned());
        assert_eq!(look_for(wait_for(), LIMIT), Seen::NotYet);
        fs_err::write(&file, "").unwrap();
        assert_eq!(look_for(wait_for(), LIMIT), Seen::Met);
        assert_eq!(look_for(WaitFor::File("a\0b".into()), LIMIT), Seen::NotYet);
    }

    #[test]
    fn a_process_is_met_when_it_has_ended_even_if_its_number_is_used_again() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let ProcessIdentity { pid, started, boot } = ProcessIdentity::of(pid).unwrap();
        let runs = WaitFor::Process { pid, started, boot: boot.clone() };
        let earlier = WaitFor::Process { pid, started: "1".into(), boot };
        assert_eq!(look_for(runs.clone(), LIMIT), Seen::NotYet);
        assert_eq!(look_for(earlier, LIMIT), Seen::Met);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(look_for(runs, LIMIT), Seen::Met);
    }
}
