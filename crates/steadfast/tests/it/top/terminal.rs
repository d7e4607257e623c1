//! A terminal for a test: tmux on a private socket.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::env::Env;

/// How long the program may take to show something. Generous, as the machine may be busy; nothing waits longer than it
/// has to.
const LIMIT: Duration = Duration::from_mins(1);

pub(super) struct Terminal {
    socket: PathBuf,
    /// The server of the terminal, a child of the test, so that its commands come from a person.
    server: Child,
}

impl Terminal {
    /// Runs the program in a terminal of this size; `None` without tmux, which is a failure in CI.
    pub(super) fn start(env: &Env, size: (u16, u16), arguments: &[&str]) -> Option<Self> {
        let mut words = vec![env!("CARGO_BIN_EXE_steadfast").to_owned()];
        words.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        Self::run(env, size, &words)
    }

    pub(super) fn start_shell(env: &Env, size: (u16, u16)) -> Option<Self> {
        let terminal = Self::run(env, size, &["bash".into(), "--norc".into(), "--noprofile".into()])?;
        terminal.wait_until("a prompt", |screen| screen.contains('$') || screen.contains('#'));
        Some(terminal)
    }

    fn run(env: &Env, (columns, lines): (u16, u16), words: &[String]) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            assert!(std::env::var_os("CI").is_none(), "tmux is missing");
            crate::outages::skipped("tmux is missing; install it to test `steadfast top` in a terminal");
            return None;
        }
        let socket = env.path("tmux");
        let server = tmux(&socket).arg("-D").spawn().unwrap();
        let end = Instant::now() + LIMIT;
        while !socket.exists() {
            assert!(Instant::now() < end, "tmux did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        let terminal = Self { socket, server };
        let mut command = terminal.tmux();
        // The screen stays when the program ends, so that a failure can show it.
        command.args(["set-option", "-g", "remain-on-exit", "on", ";"]);
        command.args(["set-option", "-g", "status", "off", ";"]);
        command.args(["new-session", "-d", "-x", &columns.to_string(), "-y", &lines.to_string(), "-c"]);
        command.arg(env.project()).args(["--", "env", "-i", "TERM=screen", "LANG=C.UTF-8"]);
        let own = env.command(&[]);
        let variables = own.get_envs().filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?)));
        command.args(variables.map(|(name, value)| format!("{name}={value}"))).args(words);
        assert!(command.status().unwrap().success(), "tmux did not start the program");
        // Before there is a window, tmux 3.3 does not survive this option.
        terminal.ask(&["set-option", "-g", "window-size", "manual"]);
        Some(terminal)
    }

    fn tmux(&self) -> Command {
        tmux(&self.socket)
    }

    fn ask(&self, arguments: &[&str]) -> String {
        let output = self.tmux().args(arguments).output().unwrap();
        assert!(output.status.success(), "tmux {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Presses keys by their names in tmux, as `q`, `Enter` or `C-c`.
    pub(super) fn keys(&self, names: &[&str]) {
        for name in names {
            self.ask(&["send-keys", name]);
        }
    }

    pub(super) fn text(&self, text: &str) {
        self.ask(&["send-keys", "-l", "--", text]);
    }

    pub(super) fn resize(&self, columns: u16, lines: u16) {
        self.ask(&["resize-window", "-x", &columns.to_string(), "-y", &lines.to_string()]);
    }

    /// What is on the screen.
    fn screen(&self) -> String {
        self.ask(&["capture-pane", "-p"]).trim_end_matches('\n').to_owned()
    }

    pub(super) fn wait_for(&self, text: &str) -> String {
        self.wait_until(text, |screen| screen.contains(text))
    }

    pub(super) fn wait_until(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + LIMIT;
        loop {
            let is_running = self.ask(&["display-message", "-p", "#{pane_dead}"]).starts_with('0');
            let screen = self.screen();
            if is_there(&screen) {
                return screen;
            }
            assert!(is_running, "the program ended before: {what}\n{screen}");
            assert!(Instant::now() < end, "waited for: {what}\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(super) fn is_cursor_visible(&self) -> bool {
        self.ask(&["display-message", "-p", "#{cursor_flag}"]).trim() == "1"
    }

    /// Ends the program that the shell runs as `kill` does.
    pub(super) fn terminate_foreground(&self) {
        let shell: u32 = self.ask(&["display-message", "-p", "#{pane_pid}"]).trim().parse().unwrap();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
        let child = children.split_whitespace().last().and_then(|id| id.parse().ok()).and_then(Pid::from_raw);
        kill_process(child.unwrap(), Signal::TERM).unwrap();
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.tmux().arg("kill-server").output();
        let _ = self.server.wait();
    }
}

fn tmux(socket: &Path) -> Command {
    let mut command = Command::new("tmux");
    // Neither a tmux around the test nor its settings.
    command.env_remove("TMUX").env("LANG", "C.UTF-8").args(["-u", "-f", "/dev/null", "-S"]).arg(socket);
    command
}
