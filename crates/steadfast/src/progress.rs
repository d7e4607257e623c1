//! A progress bar on a terminal's stderr, shown only when the work takes longer than a second.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(1);
const BETWEEN: Duration = Duration::from_millis(100);
const CELLS: u64 = 24;

pub(crate) struct Bar {
    started: Instant,
    drawn: Option<Instant>,
    on_terminal: bool,
}

impl Bar {
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), drawn: None, on_terminal: std::io::stderr().is_terminal() }
    }

    pub(crate) fn show(&mut self, label: &str, done: u64, total: u64) {
        let due = self.drawn.map_or(self.started + PATIENCE, |drawn| drawn + BETWEEN);
        let now = Instant::now();
        if !self.on_terminal || now < due {
            return;
        }
        self.drawn = Some(now);
        // A terminal that went away is not an error.
        let _ = write!(std::io::stderr().lock(), "\r\x1b[K{}", line(label, done, total));
    }

    pub(crate) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

fn line(label: &str, done: u64, total: u64) -> String {
    let total = total.max(1);
    let done = done.min(total);
    let full = usize::try_from(done * CELLS / total).unwrap_or(0);
    let empty = usize::try_from(CELLS).unwrap_or(0) - full;
    format!("{label} {}{} {:3} %", "█".repeat(full), "░".repeat(empty), done * 100 / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_and_never_overflows() {
        assert!(line("x", 0, 0).contains("  0 %"));
        assert!(line("x", 250_000_000, 500_000_000).ends_with(" 50 %"));
        assert!(line("x", 9, 3).contains("100 %"));
        assert_eq!(line("x", 1, 7).chars().count(), line("x", 7, 7).chars().count());
    }
}
