//! Turns the observations of a hook into findings: a pure function. All text is stripped of control characters, redacted
//! and bounded. Only the beginning or the end of a long text is read, since the user's agent waits for the hook.

mod environment;
mod evidence;
mod git;
mod prompt;
mod shell;
mod tasks;

use std::path::Path;

use steadfast_model::memory::observation::{FileAction, Observation, attempt};
use steadfast_model::memory::{Category, Finding, Findings, Importance};
use steadfast_model::{redact, text};

/// The most characters kept of an error, a line and a subject.
const ERROR_MAX: usize = 1_000;
pub(crate) const ONE_LINE_MAX: usize = 200;
const SUBJECT_MAX: usize = 300;
/// The longest text of any event.
const STORED_MAX: usize = 4_000;

const INSTRUCTION_FILES: [&str; 6] =
    ["CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md", "GEMINI.md", "copilot-instructions.md"];

pub fn findings(observations: &[Observation]) -> Findings {
    let mut notes = Notes::default();
    for observation in observations {
        notes.take(observation);
    }
    notes.0
}

#[derive(Default)]
struct Notes(Findings);

impl Notes {
    fn take(&mut self, observation: &Observation) {
        match observation {
            Observation::Prompt(text) => prompt::note(self, text),
            Observation::Shell(shell) => shell::note(self, shell),
            Observation::File { action, path, to } => self.file(*action, path, to.as_deref()),
            Observation::Search { pattern, path } => {
                let about = if path.is_empty() { pattern } else { path };
                let text = if path.is_empty() { pattern.clone() } else { format!("{pattern} in {path}") };
                self.keep(Category::File, "search", Importance::Low, about, &text);
                self.worked(&attempt("search", about));
            }
            Observation::TaskAnnounced { id, subject, status } => {
                tasks::put(self, id, subject.as_deref(), Some(*status));
            }
            Observation::TaskChanged { id, subject, status } => tasks::put(self, id, subject.as_deref(), *status),
            Observation::TaskList(list) => tasks::replace(self, list),
            // A decision of the user holds until they change it.
            Observation::Answer { question, answer } => {
                let question = text::headline(&text::printable(question), ONE_LINE_MAX);
                let text = format!("{question} → {answer}");
                self.keep(Category::Decision, "answer", Importance::Critical, &question, &text);
            }
            Observation::Plan { approved, plan, said } => {
                let kind = if *approved { "plan_approved" } else { "plan_rejected" };
                let text = if said.is_empty() { plan.clone() } else { format!("{said}\n\n{plan}") };
                let title = plan.trim_start_matches(['#', ' ']);
                self.keep(Category::Decision, kind, Importance::Critical, title, &text);
            }
            Observation::Instructions { path } => self.instructions(path),
            Observation::Skill { name } => {
                self.keep(Category::Skill, "used", Importance::Normal, name, name);
            }
            // Only of interest until the subagent reports something.
            Observation::SubagentStarted { id, kind } => {
                self.keep(Category::Subagent, "started", Importance::Low, id, kind);
            }
            Observation::SubagentTasked { id, kind, task } => {
                let text = if kind.is_empty() { task.clone() } else { format!("{kind}: {task}") };
                self.keep(Category::Subagent, "tasked", Importance::Normal, id, &text);
            }
            Observation::SubagentFinished { id, kind, message } => {
                let text = if kind.is_empty() { message.clone() } else { format!("{kind}: {message}") };
                self.keep(Category::Subagent, "finished", Importance::Normal, id, &text);
            }
            Observation::Failed { attempt, output } => {
                // Reading something that does not exist is part of exploring.
                let looking = attempt.starts_with("read:") || attempt.starts_with("search:");
                self.error(attempt, output, if looking { Importance::Normal } else { Importance::High });
            }
            Observation::Worked { attempt } => self.worked(attempt),
        }
    }

    fn file(&mut self, action: FileAction, path: &str, to: Option<&str>) {
        if action == FileAction::Read {
            self.keep(Category::File, "read", Importance::Low, path, path);
            self.worked(&attempt("read", path));
            let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if INSTRUCTION_FILES.contains(&name) {
                self.instructions(path);
            }
            return;
        }
        let now = to.unwrap_or(path);
        let text = to.map_or_else(|| path.to_owned(), |to| format!("{path} → {to}"));
        // Changes matter more than reads, and less than decisions: the files still contain them.
        self.keep(Category::File, action.word(), Importance::Normal, now, &text);
        // Any successful change resolves earlier errors with the file: agents write a file they cannot edit.
        for tried in [FileAction::Edit, FileAction::Write, FileAction::Delete, FileAction::Move, FileAction::Read] {
            self.worked(&attempt(tried.word(), path));
        }
        if let Some(to) = to {
            self.worked(&attempt(FileAction::Read.word(), to));
        }
    }

    /// Only the path: the client reads the file itself, and a copy would become outdated.
    fn instructions(&mut self, path: &str) {
        self.keep(Category::Rule, "instructions", Importance::High, path, path);
    }

    fn error(&mut self, attempt: &str, output: &str, importance: Importance) {
        let text = evidence::what_matters(output, ERROR_MAX);
        let text = if text.is_empty() { "failed without a word" } else { &text };
        self.keep(Category::Error, "failed", importance, attempt, text);
    }

    fn worked(&mut self, attempt: &str) {
        let name = subject(attempt);
        if !name.is_empty() && !self.0.worked.contains(&name) {
            self.0.worked.push(name);
        }
    }

    /// Keeps the beginning of a text unless it is empty once it is clean.
    fn keep(&mut self, category: Category, kind: &'static str, importance: Importance, about: &str, text: &str) {
        let most = most_of(category);
        let text = clean(text, most);
        if !text.is_empty() {
            self.0.findings.push(Finding { category, kind, importance, subject: subject(about), text });
        }
    }
}

/// The most characters kept of an event's text.
fn most_of(category: Category) -> usize {
    match category {
        // Bounded already.
        Category::Goal => usize::MAX,
        Category::Prompt => 4_000,
        Category::Error | Category::Task => ERROR_MAX,
        Category::File => 2 * SUBJECT_MAX,
        Category::Decision | Category::Rule | Category::Git | Category::Subagent => 500,
        _ => ONE_LINE_MAX,
    }
}

/// The text of an event that another machine stored, with the bounds it has here. The store writes the texts of fixes.
pub(crate) fn stored_text(category: Category, text: &str) -> String {
    clean(text, if category == Category::Fix { STORED_MAX } else { most_of(category).min(STORED_MAX) })
}

/// The same for a subject, a task or a path: one line.
pub(crate) fn stored_line(text: &str, most: usize) -> String {
    text::cut(clean(text, most).lines().next().unwrap_or_default().trim(), most)
}

/// The beginning of a text: printable, redacted, at most `most` characters.
pub(crate) fn clean(text: &str, most: usize) -> String {
    // More than is kept, so that a secret at the edge is recognized.
    let window = text::head(text, most.saturating_mul(8).max(4_096));
    let printable = text::printable(window);
    let mut safe = redact::redact(printable.trim());
    if window.len() < text.len() {
        safe += "…";
    }
    text::cut(&safe, most)
}

/// A subject to find events by: one line.
pub(crate) fn subject(text: &str) -> String {
    stored_line(text, SUBJECT_MAX)
}

#[cfg(test)]
mod tests;
