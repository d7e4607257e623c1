//! The stage of the demo: a temp folder, the processes in it, and the printed story. Children get a few named variables
//! and no others, so that neither the user's store nor a client around the demo can reach them.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::{Context as _, bail};
use serde_json::Value;
use steadfast_model::text::{printable, thousands};
use steadfast_system::env_vars;

use super::promise::DemoFacts;
use crate::output;

pub(super) const SESSION: &str = "0de30000-5eed-4a57-8a57-000000000001";

const WIDTH: usize = 80;
const LABEL: usize = 11;
const BAR: usize = 24;

pub(super) const PLAIN: Style = Style::new();
pub(super) const DIM: Style = PLAIN.dimmed();
pub(super) const GREEN: Style = AnsiColor::Green.on_default();
pub(super) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(super) const RED: Style = AnsiColor::Red.on_default().bold();

pub(super) struct Stage {
    pub(super) root: PathBuf,
    pub(super) program: PathBuf,
    /// With `--json`, stdout has only the summary.
    pub(super) to_stderr: bool,
    pub(super) fast: bool,
}

impl Stage {
    pub(super) fn new(root: &Path, fast: bool, to_stderr: bool) -> io::Result<Self> {
        // The system's temp folder may be a link; all processes must use the same path.
        let root = fs_err::canonicalize(root)?;
        Ok(Self { root, program: std::env::current_exe()?, to_stderr, fast })
    }

    pub(super) fn project(&self) -> PathBuf {
        self.root.join("slugify")
    }

    /// What happened so far, as the scripted client recorded it.
    pub(super) fn facts(&self) -> anyhow::Result<DemoFacts> {
        Ok(serde_json::from_slice(&fs_err::read(self.root.join("facts.json"))?)?)
    }

    pub(super) fn save_facts(&self, facts: &DemoFacts) -> anyhow::Result<()> {
        Ok(fs_err::write(self.root.join("facts.json"), serde_json::to_vec(facts)?)?)
    }

    /// A command that sees only this folder and the search path.
    pub(super) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        let home = self.root.join("steadfast");
        command
            .env_clear()
            .env(env_vars::DB, home.join("goals.db"))
            .env(env_vars::HOME, home)
            .env(env_vars::USER_HOME, self.root.join("home"))
            .current_dir(self.project());
        let inherited = [env_vars::PATH, env_vars::TMPDIR];
        command.envs(inherited.into_iter().filter_map(|name| Some((name, env_vars::path(name)?))));
        command
    }

    /// Runs a steadfast command with this stdin and returns its stdout.
    pub(super) fn run(&self, arguments: &[&str], stdin: &str) -> anyhow::Result<String> {
        let line = format!("steadfast {}", arguments.join(" "));
        let mut command = self.command(&self.program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().with_context(|| line.clone())?;
        if let Some(mut pipe) = child.stdin.take() {
            pipe.write_all(stdin.as_bytes())?;
        }
        let output = child.wait_with_output()?;
        if !output.status.success() || !output.stderr.is_empty() {
            bail!("`{line}` ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    pub(super) fn json(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        Ok(serde_json::from_slice(self.run(arguments, "")?.as_bytes())?)
    }

    /// The goal as `goal status --json` prints it.
    pub(super) fn goal(&self) -> anyhow::Result<Value> {
        Ok(self.json(&["goal", "status", "--session", SESSION, "--json"])?["goal"].take())
    }

    pub(super) fn line(&self, line: &str) {
        if self.to_stderr {
            output::note(line);
        } else {
            output::line(line);
        }
    }

    /// Pauses for the time that this many lines take to read.
    pub(super) fn pause(&self, lines: u32) {
        if !self.fast {
            std::thread::sleep(Duration::from_millis(180) * lines);
        }
    }

    pub(super) fn heading(&self, title: &str) {
        let bold = PLAIN.bold();
        self.line(&format!("\n{bold}{title}{bold:#}"));
        self.pause(1);
    }

    /// Prints a label and, in the column beside it, the wrapped text.
    pub(super) fn labelled(&self, mut label: &str, style: Style, text: &str) {
        for row in text.lines().flat_map(|paragraph| wrap(&printable(paragraph), WIDTH - LABEL - 2)) {
            self.line(&format!("  {style}{label:<LABEL$}{style:#}{row}"));
            label = "";
        }
        self.pause(1);
    }

    pub(super) fn print_budget(&self) -> anyhow::Result<()> {
        let goal = self.goal()?;
        let (used, budget) = (number(&goal, "total_tokens"), number(&goal, "token_budget"));
        let percent = used * 100 / budget.max(1);
        let filled = usize::try_from(percent)?.min(100) * BAR / 100;
        let style = if percent < 80 { GREEN } else { YELLOW };
        let bar = format!("{style}{}{style:#}{}", "█".repeat(filled), "░".repeat(BAR - filled));
        let numbers = format!("{} of {} tokens, {percent} %", thousands(used), thousands(budget));
        self.line(&format!("  {:<LABEL$}{bar} {numbers}", "budget"));
        self.pause(1);
        Ok(())
    }
}

pub(super) fn number(object: &Value, field: &str) -> i64 {
    object[field].as_i64().unwrap_or_default()
}

/// Breaks a line at spaces; a word longer than the row stays whole.
fn wrap(line: &str, width: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        match rows.last_mut() {
            Some(row) if row.chars().count() + 1 + word.chars().count() <= width => {
                row.push(' ');
                row.push_str(word);
            }
            _ => rows.push(word.to_owned()),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_never_inside_a_word() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("incomprehensibilities are long", 8), ["incomprehensibilities", "are long"]);
        assert!(wrap("", 8).is_empty());
    }
}
