//! Printing: data on stdout, everything else on stderr, colour only on a terminal.

use std::io::Write as _;

use anstyle::{AnsiColor, Style};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use steadfast_core::text;

use crate::failure::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    Json,
}

/// What a command has to say: for scripts, for people, and its exit code.
#[derive(Debug, Clone, Default)]
pub(crate) struct Done {
    pub(crate) text: String,
    pub(crate) json: Value,
    pub(crate) code: u8,
}

/// Prints what a command has to say; fails if it cannot be written.
pub(crate) fn print(done: &Done, format: Format) -> std::io::Result<()> {
    match format {
        Format::Text if done.text.is_empty() => Ok(()),
        Format::Text => write_line(&done.text),
        Format::Json if done.json.is_null() => Ok(()),
        Format::Json => data(&done.json),
    }
}

/// One line that says what is wrong and one that says what to type, whatever line breaks words from outside have.
pub(crate) fn print_failure(failure: &Failure, format: Format) {
    let message = if failure.is_list { failure.message.clone() } else { text::one_line(&failure.message) };
    let hint = text::one_line(&failure.hint);
    if format == Format::Json {
        let mut error = json!({"kind": failure.kind, "message": message, "hint": hint});
        if let (Some(faults), Some(fields)) = (&failure.faults, error.as_object_mut()) {
            fields.insert("faults".to_owned(), Value::clone(faults));
        }
        // Where stdout cannot be written, stderr has the message.
        if data(&json!({"error": error})).is_ok() {
            return;
        }
    }
    let red = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    let cyan = Style::new().bold().fg_color(Some(AnsiColor::Cyan.into()));
    note(&format!("{red}error:{red:#} {message}\n{cyan}hint:{cyan:#} {hint}"));
}

/// Writes one of many lines of data; if that fails, so will the next one.
pub(crate) fn line(text: &str) {
    let _ = write_line(text);
}

/// Whether somebody who reads along still does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Listens,
    IsGone,
}

/// Writes lines for somebody who reads along, perhaps none: a reader that went away is noticed at once.
pub(crate) fn lines<'a>(lines: impl IntoIterator<Item = &'a str>) -> Result<Reader, Failure> {
    for line in lines {
        match try_write_line(line) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(Reader::IsGone),
            Err(error) => return Err(Failure::unwritten(&error)),
        }
    }
    Ok(if is_reader_gone() { Reader::IsGone } else { Reader::Listens })
}

fn is_reader_gone() -> bool {
    let stdout = std::io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = PollFlags::ERR | PollFlags::HUP;
    poll(&mut polled, Some(&at_once)).is_ok() && polled.iter().any(|polled| polled.revents().intersects(gone))
}

fn write_line(text: &str) -> std::io::Result<()> {
    wanted(try_write_line(text))
}

fn try_write_line(text: &str) -> std::io::Result<()> {
    let mut stdout = anstream::stdout().lock();
    writeln!(stdout, "{}", text.trim_end_matches('\n')).and_then(|()| stdout.flush())
}

/// Rows in columns as wide as their widest cell; the last column is as long as it is.
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

/// Writes JSON as it is: there are no colours in it that a pipe would not want, and it may be long.
pub(crate) fn data(json: &impl serde::Serialize) -> std::io::Result<()> {
    let mut stdout = std::io::BufWriter::new(std::io::stdout().lock());
    let written = serde_json::to_writer_pretty(&mut stdout, json).map_err(std::io::Error::from);
    wanted(written.and_then(|()| stdout.write_all(b"\n")).and_then(|()| stdout.flush()))
}

/// A reader that went away wants no more, which is no failure.
fn wanted(written: std::io::Result<()>) -> std::io::Result<()> {
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes a line for people.
pub(crate) fn note(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = writeln!(stderr, "{}", text.trim_end_matches('\n'));
}

/// Writes text without a line break.
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
