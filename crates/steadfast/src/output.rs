//! Printing: data on stdout, everything else on stderr, colour only on a terminal.

use std::io::Write as _;

use anstyle::{AnsiColor, Style};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use steadfast_model::host::Screen;
use steadfast_model::redact::redact;
use steadfast_model::text;

use crate::error::CliError;

/// The result of a command: text for people, JSON for scripts, and the exit code.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandOutput {
    pub(crate) text: String,
    pub(crate) json: Value,
    pub(crate) code: u8,
}

pub(crate) type CommandResult = Result<CommandOutput, CliError>;

pub(crate) fn print(output: &CommandOutput, is_json: bool) -> std::io::Result<()> {
    match is_json {
        true if !output.json.is_null() => write_json(&output.json),
        false if !output.text.is_empty() => write_line(&output.text),
        _ => Ok(()),
    }
}

/// Prints an error: one line for the message, one for the hint. Line breaks in foreign text are removed.
pub(crate) fn print_error(error: &CliError, is_json: bool) {
    let message = if error.is_list { error.message.clone() } else { text::one_line(&error.message) };
    let message = redact(&message);
    let hint = Screen::Terminal.spell(&text::one_line(&error.hint));
    let hint = redact(&hint);
    if is_json {
        let mut fields = json!({"kind": error.kind, "message": message, "hint": hint});
        if let Some(faults) = &error.faults {
            fields["faults"] = Value::clone(faults);
        }
        let mut answer = json!({"error": fields});
        if let Some(evidence) = &error.evidence {
            answer["evidence"] = Value::clone(evidence);
        }
        // If stdout cannot be written, stderr has the message.
        if write_json(&answer).is_ok() {
            return;
        }
    }
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    let cyan = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
    note(&format!("{red}error:{red:#} {message}\n{cyan}hint:{cyan:#} {hint}"));
}

/// Writes one of many lines of data. Ignores errors: the next write fails the same way.
pub(crate) fn line(text: &str) {
    let _ = write_line(text);
}

/// Writes lines while a command follows a log. Returns whether stdout still has a reader, even if there was nothing to
/// write.
pub(crate) fn write_lines(lines: &[String]) -> Result<bool, CliError> {
    for line in lines {
        match try_write_line(line) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(false),
            Err(error) => return Err(CliError::unwritten(&error)),
        }
    }
    Ok(!is_stdout_closed())
}

fn is_stdout_closed() -> bool {
    let stdout = std::io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = PollFlags::ERR | PollFlags::HUP;
    poll(&mut polled, Some(&at_once)).is_ok() && polled.iter().any(|polled| polled.revents().intersects(gone))
}

fn write_line(text: &str) -> std::io::Result<()> {
    ignore_closed_pipe(try_write_line(text))
}

fn try_write_line(text: &str) -> std::io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    writeln!(stdout, "{}", text.trim_end_matches('\n')).and_then(|()| stdout.flush())
}

/// Aligns rows in columns, each as wide as its widest cell; the last column is not padded.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..count).map(|column| widest(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The lines of a table below a heading.
pub(crate) fn indented(table: &str) -> Vec<String> {
    table.lines().map(|line| format!("  {line}")).collect()
}

/// Writes JSON to plain stdout: it has no colours to strip, and it may be long.
pub(crate) fn write_json(json: &impl serde::Serialize) -> std::io::Result<()> {
    let mut stdout = std::io::BufWriter::new(std::io::stdout().lock());
    let written = serde_json::to_writer_pretty(&mut stdout, json).map_err(std::io::Error::from);
    ignore_closed_pipe(written.and_then(|()| stdout.write_all(b"\n")).and_then(|()| stdout.flush()))
}

/// Writes data piece by piece. A reader that has seen enough ends it without an error.
pub(crate) fn stream(write: impl FnOnce(&mut dyn std::io::Write) -> Result<(), CliError>) -> Result<(), CliError> {
    let mut out = Stream { out: std::io::BufWriter::new(std::io::stdout().lock()), is_closed: false };
    let written = write(&mut out).and_then(|()| out.flush().map_err(|error| CliError::unwritten(&error)));
    if out.is_closed { Ok(()) } else { written }
}

struct Stream<'a> {
    out: std::io::BufWriter<std::io::StdoutLock<'a>>,
    is_closed: bool,
}

impl std::io::Write for Stream<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let flushed = self.out.flush();
        self.note(flushed)
    }
}

impl Stream<'_> {
    fn note<T>(&mut self, done: std::io::Result<T>) -> std::io::Result<T> {
        self.is_closed |= done.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe);
        done
    }
}

/// A closed pipe means that the reader has seen enough, as with `| head`.
fn ignore_closed_pipe(written: std::io::Result<()>) -> std::io::Result<()> {
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

pub(crate) fn note(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = writeln!(stderr, "{}", text.trim_end_matches('\n'));
}

pub(crate) fn segment(text: &str) {
    let mut stdout = anstream::stdout().lock();
    let _ = write!(stdout, "{text}");
}

#[cfg(test)]
mod tests {
    use super::columns;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        let rows = [row(&["a", "größe", ""]), row(&["bcd", "e", "the end"]), row(&["f"])];
        assert_eq!(columns(&rows), "a    größe\nbcd  e      the end\nf");
        assert_eq!(columns(&[]), "");
    }
}
