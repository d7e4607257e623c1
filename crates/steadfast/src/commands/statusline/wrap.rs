//! `--wrap COMMAND`: the user's own status line, with ours after it. Its output is printed byte for byte, also its
//! colours. If it cannot be started, ours is printed alone.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

/// Between the user's line and ours.
const BETWEEN: &str = " · ";
/// Bytes that are kept of the user's line.
const LONGEST: u64 = 64 * 1024;

/// A command that runs.
pub(super) struct Wrapped {
    child: Option<Child>,
    /// Gives it the input: it may not read all of it, and must not keep us from our line.
    writer: Option<JoinHandle<()>>,
}

impl Wrapped {
    pub(super) fn start(command: &str, input: &[u8]) -> Self {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().ok();
        let writer = child.as_mut().and_then(|child| child.stdin.take()).map(|mut stdin| {
            let input = input.to_vec();
            std::thread::spawn(move || {
                // A command that does not read its input closes the pipe.
                let _ = stdin.write_all(&input);
            })
        });
        Self { child, writer }
    }

    /// Waits for its output, and prints it with our line after it.
    pub(super) fn print_before(self, line: &str) {
        let mut theirs = Vec::new();
        if let Some(mut child) = self.child {
            if let Some(stdout) = child.stdout.take() {
                let _ = stdout.take(LONGEST).read_to_end(&mut theirs);
            }
            let _ = child.wait();
        }
        if let Some(writer) = self.writer {
            let _ = writer.join();
        }
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(&joined(theirs, line));
        let _ = stdout.flush();
    }
}

/// Their output as it is, if we have nothing to add.
fn joined(theirs: Vec<u8>, ours: &str) -> Vec<u8> {
    if ours.is_empty() {
        return theirs;
    }
    let end = theirs.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |last| last + 1);
    let mut line = theirs.get(..end).unwrap_or_default().to_vec();
    if end > 0 {
        line.extend_from_slice(BETWEEN.as_bytes());
    }
    line.extend_from_slice(ours.as_bytes());
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[test]
    fn the_users_line_is_first_and_untouched() {
        for (theirs, ours, expected) in [
            ("\u{1b}[31mme\u{1b}[0m\n", "◎ goal", "\u{1b}[31mme\u{1b}[0m · ◎ goal\n"),
            ("one\ntwo\n\n", "◎ goal", "one\ntwo · ◎ goal\n"),
            ("me \n\n", "", "me \n\n"),
            ("", "◎ goal", "◎ goal\n"),
            ("\n", "◎ goal", "◎ goal\n"),
            ("", "", ""),
        ] {
            assert_eq!(joined(theirs.as_bytes().to_vec(), ours), expected.as_bytes());
        }
    }
}
