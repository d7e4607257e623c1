//! The terminal interface of a real client, run in tmux on a private socket.

use crate::process::kill_group;
use crate::workspace::Workspace;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const COLUMNS: &str = "150";
const LINES: &str = "50";
/// How long the client may take to show something. Generous, as the machine may be busy with other tests; nothing
/// waits longer than it has to.
const LIMIT: Duration = Duration::from_mins(1);
/// After this time, a line that is still in the input box stays there.
const LEFT_BEHIND: Duration = Duration::from_secs(3);

/// How to read the input box of a client from the screen.
pub(crate) struct InputBox {
    /// The text in it, if there is one and no dialog is open.
    pub(crate) text: fn(&str) -> Option<String>,
    /// Whether it holds this text, or at least the end of a long one.
    pub(crate) holds: fn(&str, &str) -> bool,
    /// The client takes keys that come faster than this as a paste.
    pub(crate) quiet: Duration,
}

/// A client with a terminal interface.
pub(crate) trait InTerminal {
    const INPUT_BOX: InputBox;

    fn workspace(&self) -> &Workspace;

    /// The program with the arguments that every start of it has.
    fn command_line(&self) -> Vec<OsString>;
}

pub(crate) struct Tui {
    socket: PathBuf,
    /// The server of the terminal, a child of the test. A server in the background would be an orphan, and commands of
    /// the test would come from somewhere else than the client.
    server: Child,
    input_box: InputBox,
}

impl Tui {
    /// Starts the TUI and waits until it takes input.
    pub(crate) fn start<C: InTerminal>(client: &C, args: &[&str]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let workspace = client.workspace();
        let socket = workspace.root().join(format!("tmux{number}"));
        let server = tmux(&socket).arg("-D").spawn().expect("start tmux");
        while !socket.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let tui = Self { socket, server, input_box: C::INPUT_BOX };
        let mut command = tui.tmux();
        // The pane stays when the client ends, so that a failure message can show its last screen.
        command.args(["set-option", "-g", "remain-on-exit", "on", ";"]);
        command.args(["new-session", "-d", "-x", COLUMNS, "-y", LINES, "-c"]).arg(workspace.project());
        // tmux adds variables of its own, so the wanted environment is set by env -i as the last step.
        command.args(["--", "env", "-i"]);
        command.args(workspace.environment().iter().map(|(name, value)| format!("{name}={value}")));
        command.args(client.command_line()).args(args);
        let status = command.status().expect("start tmux");
        assert!(status.success(), "tmux did not start");
        tui.wait_for("the input box", LIMIT, |screen| (tui.input_box.text)(screen).is_some());
        tui
    }

    fn tmux(&self) -> Command {
        tmux(&self.socket)
    }

    fn tmux_ok(&self, args: &[&str]) -> String {
        let output = self.tmux().args(args).output().expect("run tmux");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "tmux {args:?} failed: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Types one line of text and waits until it is in the input box and quiet, because an Enter that comes in the same
    /// burst would be taken as part of a paste. Longer text is shown as "pasted" and never found: Claude Code takes a
    /// few hundred characters, Codex just under 1000.
    pub(crate) fn send(&self, text: &str) {
        self.tmux_ok(&["send-keys", "-l", "--", text]);
        self.wait_for(&format!("typed text {text:?}"), LIMIT, |screen| (self.input_box.holds)(screen, text));
        std::thread::sleep(self.input_box.quiet);
    }

    pub(crate) fn enter(&self) {
        self.key("Enter");
    }

    pub(crate) fn escape(&self) {
        self.key("Escape");
    }

    /// Closes the dialog that shows this text. One that has just opened may not take the key.
    pub(crate) fn escape_from(&self, dialog: &str) {
        let end = Instant::now() + LIMIT;
        let is_open = || self.screen().contains(dialog);
        while is_open() {
            assert!(Instant::now() < end, "cannot close the dialog; screen:\n{}", self.screen());
            self.escape();
            let again = Instant::now() + LEFT_BEHIND;
            while is_open() && Instant::now() < again {
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// A key by its tmux name, as `C-c` or `Up`.
    pub(crate) fn key(&self, name: &str) {
        self.tmux_ok(&["send-keys", name]);
    }

    /// Types a line, sends it and waits until the input box is empty. On a busy machine Claude Code may send a line and
    /// still show it in the box; then the box is emptied with a key.
    pub(crate) fn submit(&self, text: &str) {
        self.send(text);
        let sent_before = self.screen().matches(text).count();
        self.enter();
        let start = Instant::now();
        loop {
            let screen = self.screen();
            if !self.is_running() || !(self.input_box.holds)(&screen, text) {
                return;
            }
            assert!(start.elapsed() < LIMIT, "{text:?} is not taken; screen:\n{screen}");
            if screen.matches(text).count() > sent_before && start.elapsed() > LEFT_BEHIND {
                self.key("C-u");
                std::thread::sleep(LEFT_BEHIND);
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What is on the screen now, without the empty lines at its end.
    pub(crate) fn screen(&self) -> String {
        self.tmux_ok(&["capture-pane", "-p"]).trim_end().to_owned()
    }

    /// The screen with everything that scrolled off it.
    pub(crate) fn history(&self) -> String {
        self.tmux_ok(&["capture-pane", "-p", "-S", "-"]).trim_end().to_owned()
    }

    /// Waits until the screen meets the condition and returns it.
    pub(crate) fn wait_for(&self, what: &str, limit: Duration, wanted: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + limit;
        loop {
            let alive = self.is_running();
            let screen = self.screen();
            if wanted(&screen) {
                return screen;
            }
            assert!(alive, "the client ended before {what}; last screen:\n{screen}");
            assert!(Instant::now() < end, "waited {limit:?} for {what}; last screen:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits for the last text of a turn and for its end: a prompt sent in between is queued and may come back.
    pub(crate) fn wait_for_answer(&self, text: &str) -> String {
        self.wait_for(&format!("the answer {text:?}"), LIMIT, |screen| {
            screen.contains(text) && !screen.contains("esc to interrupt")
        })
    }

    pub(crate) fn wait_for_text(&self, text: &str) -> String {
        self.wait_for(&format!("{text:?}"), LIMIT, |screen| screen.contains(text))
    }

    /// Waits until the text was shown, even if it scrolled off the screen since.
    pub(crate) fn wait_until_shown(&self, text: &str) -> String {
        self.wait_for(&format!("{text:?}"), LIMIT, |_| self.history().contains(text));
        self.history()
    }

    /// Waits until the client is idle and takes input.
    pub(crate) fn wait_for_prompt(&self) -> String {
        self.wait_for("the prompt", LIMIT, |screen| {
            !screen.contains("esc to interrupt") && (self.input_box.text)(screen).is_some()
        })
    }

    /// The process of the client.
    pub(crate) fn pid(&self) -> u32 {
        self.tmux_ok(&["display-message", "-p", "#{pane_pid}"]).trim().parse().expect("process id")
    }

    /// Waits until the process has ended.
    pub(crate) fn wait_for_end(&self) {
        let end = Instant::now() + LIMIT;
        while self.is_running() {
            assert!(Instant::now() < end, "still running; screen:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        let output = self.tmux().args(["display-message", "-p", "#{pane_dead}"]).output();
        output.is_ok_and(|output| output.stdout.starts_with(b"0"))
    }

    /// Leaves by `/exit` and waits until the process has ended.
    pub(crate) fn exit(self) {
        self.submit("/exit");
        self.wait_for_end();
    }
}

impl Drop for Tui {
    fn drop(&mut self) {
        // The client may outlive its terminal, so it is killed by its id too.
        let pid = self.tmux().args(["display-message", "-p", "#{pane_pid}"]).output();
        let alive = self.is_running();
        let _ = self.tmux().arg("kill-server").output();
        let _ = self.server.wait();
        let pid = pid.ok().and_then(|o| String::from_utf8_lossy(&o.stdout).trim().parse().ok());
        if let (true, Some(pid)) = (alive, pid) {
            kill_group(pid);
        }
    }
}

fn tmux(socket: &Path) -> Command {
    let mut command = Command::new("tmux");
    // Do not use a tmux around the test, nor its settings.
    command.env_remove("TMUX").env("LANG", "C.UTF-8").args(["-u", "-f", "/dev/null", "-S"]).arg(socket);
    command
}

/// The text without spaces, and its end. Spaces are not compared: long lines are wrapped and an input box pads them.
pub(crate) fn dense_with_end(text: &str) -> (String, String) {
    let text = dense(text);
    let end = text.chars().skip(text.chars().count().saturating_sub(20)).collect();
    (text, end)
}

pub(crate) fn dense(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}
