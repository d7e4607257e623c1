//! `codex queue`: a message that an idle session takes as a prompt, within ten seconds or, with Codex's daemon, at once.
//! In mid-turn it waits for the end of the turn, after Esc for the user's next turn, and after `/quit` for the next
//! client of the session. The hook of the prompt therefore decides whether the wake-up is still due.

use super::files;
use crate::wake::{WakeCommand, WakeRequest};
use steadfast_system::env_vars;

/// What the user sees, and how our hook recognises the message.
pub(super) const MESSAGE: &str = "◎ goal continues";

pub(super) fn command(request: &WakeRequest<'_>) -> WakeCommand {
    let arguments = ["queue", "--thread", request.session_id, "--message", MESSAGE].map(Into::into);
    let home = request.transcript.and_then(files::home_of);
    let environment = home.map(|home| (env_vars::CODEX_HOME, home.into_os_string()));
    WakeCommand {
        program: request.program.to_owned(),
        arguments: arguments.into(),
        environment: environment.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_message_goes_to_the_session_in_its_own_home() {
        let rollout = Path::new("/home/ann/.codex-work/sessions/2026/11/15/rollout-x.jsonl");
        let mut request = WakeRequest { program: Path::new("codex"), session_id: "t1", transcript: Some(rollout) };
        let found = command(&request);
        assert_eq!(found.arguments, ["queue", "--thread", "t1", "--message", "◎ goal continues"]);
        assert_eq!(found.environment, [("CODEX_HOME", "/home/ann/.codex-work".into())]);
        request.transcript = None;
        assert_eq!(command(&request).environment, []);
    }
}
