//! Progress of a run on stderr: one line for each event, and on a terminal a live line below them.

use std::io::{IsTerminal as _, Write as _};

use steadfast_app::overview::runs::progress::{event_line, live_line};
use steadfast_engine::observer::{Observer, SavedStep};
use steadfast_model::run::{Plan, Run, RunStatus};
use steadfast_model::{clock, text};

use crate::output;

const NARROWEST: usize = 40;
const USUAL_WIDTH: usize = 100;

pub(super) struct Progress {
    on_terminal: bool,
    /// Whether the live line is on the screen.
    is_drawn: bool,
    shown: Option<(Plan, Run)>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { on_terminal: std::io::stderr().is_terminal(), is_drawn: false, shown: None }
    }

    pub(super) fn show(&mut self, plan: &Plan, run: &Run) {
        self.shown = Some((plan.clone(), run.clone()));
        self.draw();
    }

    pub(super) fn line(&mut self, text: &str) {
        self.clear();
        output::note(text);
    }

    pub(super) fn draw(&mut self) {
        let Some((plan, run)) = self.shown.as_ref().filter(|_| self.on_terminal) else { return };
        if run.status != RunStatus::Running {
            self.clear();
            return;
        }
        let width = terminal_size::terminal_size_of(std::io::stderr())
            .map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0))
            .max(NARROWEST);
        let line = text::cut(&live_line(plan, run, clock::now()), width - 1);
        // A closed terminal is not an error.
        let _ = write!(std::io::stderr().lock(), "\r\x1b[K{line}");
        self.is_drawn = true;
    }

    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(std::io::stderr().lock(), "\r\x1b[K");
        }
    }
}

impl Observer for Progress {
    fn saved(&mut self, step: &SavedStep<'_>, _notes: &mut Vec<String>) {
        let command = format!("steadfast {}", step.plan.kind);
        for line in step.records.iter().filter_map(|record| event_line(&command, step.plan, step.run, record)) {
            self.line(&line);
        }
        self.show(step.plan, step.run);
    }

    fn idle(&mut self) {
        self.draw();
    }

    fn note(&mut self, message: &str) {
        self.line(&text::printable(message));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
