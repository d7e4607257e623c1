//! From what hooks saw to what is worth remembering: a pure function, so that every rule can be read and tested here.
//! Whatever it keeps is stripped of control characters, redacted and bounded; of long texts only the beginning or the
//! end is ever looked at, since this runs between two steps of the user's agent.

mod environment;
mod evidence;
mod git;
mod prompt;
mod shell;
mod tasks;

use std::path::Path;

use steadfast_model::memory::observation::{FileAction, Observation, attempt};
use steadfast_model::memory::{Category, Finding, Findings, Importance};
use steadfast_model::redact;
use steadfast_model::text;

/// The most characters kept of each kind of text.
const PROMPT_MAX: usize = 4_000;
const ERROR_MAX: usize = 1_000;
const MESSAGE_MAX: usize = 500;
const ONE_LINE_MAX: usize = 200;
const SUBJECT_MAX: usize = 300;

/// Files that tell an agent how to work.
const INSTRUCTION_FILES: [&str; 6] =
    ["CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", "AGENTS.override.md", "GEMINI.md", "copilot-instructions.md"];

/// What is worth remembering of what one hook call saw.
pub fn findings(observations: &[Observation]) -> Findings {
    let mut notes = Notes::default();
    for observation in observations {
        notes.take(observation);
    }
    notes.kept
}

#[derive(Default)]
struct Notes {
    kept: Findings,
}

impl Notes {
    fn take(&mut self, observation: &Observation) {
        match observation {
            Observation::Prompt(text) => prompt::note(self, text),
            Observation::Shell(shell) => shell::note(self, shell),
            Observation::File { action, path, to } => self.file(*action, path, to.as_deref()),
            Observation::Search { pattern, place } => {
                let about = if place.is_empty() { pattern } else { place };
                let text = if place.is_empty() { pattern.clone() } else { format!("{pattern} in {place}") };
                self.keep(Category::File, "search", Importance::Low, about, &text, ONE_LINE_MAX);
                self.worked(&attempt("search", about));
            }
            Observation::TaskAnnounced { .. } | Observation::TaskChanged { .. } | Observation::TaskList(_) => {
                tasks::note(self, observation);
            }
            // What the user decided holds until they decide otherwise.
            Observation::Answer { question, answer } => {
                let question = text::headline(&text::printable(question), ONE_LINE_MAX);
                let text = format!("{question} → {answer}");
                self.keep(Category::Decision, "answer", Importance::Critical, &question, &text, MESSAGE_MAX);
            }
            Observation::Plan { approved, plan, said } => {
                let kind = if *approved { "plan_approved" } else { "plan_rejected" };
                let text = if said.is_empty() { plan.clone() } else { format!("{said}\n\n{plan}") };
                let title = plan.trim_start_matches(['#', ' ']);
                self.keep(Category::Decision, kind, Importance::Critical, title, &text, MESSAGE_MAX);
            }
            Observation::Instructions { path } => self.instructions(path),
            Observation::Skill { name } => {
                self.keep(Category::Skill, "used", Importance::Normal, name, name, ONE_LINE_MAX);
            }
            // That one began is only interesting as long as it has not said anything.
            Observation::SubagentStarted { id, kind } => {
                self.keep(Category::Subagent, "started", Importance::Low, id, kind, ONE_LINE_MAX);
            }
            Observation::SubagentTasked { id, kind, task } => {
                let text = if kind.is_empty() { task.clone() } else { format!("{kind}: {task}") };
                self.keep(Category::Subagent, "tasked", Importance::Normal, id, &text, MESSAGE_MAX);
            }
            Observation::SubagentFinished { id, kind, message } => {
                let text = if kind.is_empty() { message.clone() } else { format!("{kind}: {message}") };
                self.keep(Category::Subagent, "finished", Importance::Normal, id, &text, MESSAGE_MAX);
            }
            Observation::Failed { attempt, output } => {
                // A look at something that is not there is part of looking around.
                let looking = attempt.starts_with("read:") || attempt.starts_with("search:");
                self.error(attempt, output, if looking { Importance::Normal } else { Importance::High });
            }
            Observation::Worked { attempt } => self.worked(attempt),
        }
    }

    fn file(&mut self, action: FileAction, path: &str, to: Option<&str>) {
        if action == FileAction::Read {
            self.keep(Category::File, "read", Importance::Low, path, path, SUBJECT_MAX);
            self.worked(&attempt("read", path));
            let name = Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if INSTRUCTION_FILES.contains(&name) {
                self.instructions(path);
            }
            return;
        }
        let now = to.unwrap_or(path);
        let text = to.map_or_else(|| path.to_owned(), |to| format!("{path} → {to}"));
        // What changed matters more than what was looked at, and less than why: the files themselves still have it.
        self.keep(Category::File, action.word(), Importance::Normal, now, &text, 2 * SUBJECT_MAX);
        // Whoever cannot edit a file writes it anew; whichever change went through ends the trouble with the file.
        for tried in [FileAction::Edit, FileAction::Write, FileAction::Delete, FileAction::Move, FileAction::Read] {
            self.worked(&attempt(tried.word(), path));
        }
        if let Some(to) = to {
            self.worked(&attempt(FileAction::Read.word(), to));
        }
    }

    /// The path alone: the client reads the file itself, and its text would soon be out of date.
    fn instructions(&mut self, path: &str) {
        self.keep(Category::Rule, "instructions", Importance::High, path, path, SUBJECT_MAX);
    }

    fn error(&mut self, attempt: &str, output: &str, importance: Importance) {
        let text = evidence::what_matters(output, ERROR_MAX);
        let text = if text.is_empty() { "failed without a word".to_owned() } else { text };
        let finding =
            Finding { category: Category::Error, kind: "failed", importance, subject: subject(attempt), text };
        self.kept.findings.push(finding);
    }

    fn worked(&mut self, attempt: &str) {
        let name = subject(attempt);
        if !name.is_empty() && !self.kept.worked.contains(&name) {
            self.kept.worked.push(name);
        }
    }

    /// Keeps the beginning of a text. What is empty once it is clean is nothing to remember.
    fn keep(
        &mut self,
        category: Category,
        kind: &'static str,
        importance: Importance,
        about: &str,
        text: &str,
        most: usize,
    ) {
        let text = clean(text, most);
        if !text.is_empty() {
            self.kept.findings.push(Finding { category, kind, importance, subject: subject(about), text });
        }
    }
}

/// The beginning of a text, safe to keep.
fn clean(text: &str, most: usize) -> String {
    // More than is kept, so that a secret at the edge is still seen whole.
    let window = text::head(text, most.saturating_mul(8).max(4_096));
    let printable = text::printable(window);
    let safe = redact::redact(printable.trim());
    if window.len() == text.len() {
        return text::cut(&safe, most);
    }
    let mut cut: String = safe.chars().take(most.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// A name to find something by: one line.
fn subject(text: &str) -> String {
    text::cut(clean(text, SUBJECT_MAX).lines().next().unwrap_or_default().trim(), SUBJECT_MAX)
}

#[cfg(test)]
mod tests;
