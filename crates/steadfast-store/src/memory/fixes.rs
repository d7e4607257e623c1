//! From an error to its fix. Hooks are separate processes, so the store finds the unresolved error and lists what was
//! done since then.

use rusqlite::params;

use super::{Db, StoreError, lossy};
use steadfast_model::memory::{Category, Finding, Importance};
use steadfast_model::text;

/// How many events are read.
const STEPS_READ: u32 = 200;
const FILES_LISTED: usize = 8;
const COMMANDS_LISTED: usize = 4;
const ERROR_KEPT: usize = 200;
const STEP_KEPT: usize = 100;

/// Kinds of file events that change nothing.
const LOOKING: [&str; 6] = ["read", "view", "search", "grep", "glob", "list"];

pub(super) const FAILING: &str = "SELECT id, text FROM session_events
     WHERE session_id = ?1 AND subject = ?2 AND category = 'error' AND resolved = 0 ORDER BY id DESC LIMIT 1";

pub(super) const RESOLVE: &str = "UPDATE session_events SET resolved = 1
     WHERE session_id = ?1 AND subject = ?2 AND category = 'error' AND resolved = 0 RETURNING repeats";

pub(super) const STEPS: &str = "SELECT category, kind, subject, text FROM session_events
     WHERE session_id = ?1 AND id > ?2 ORDER BY id DESC LIMIT ?3";

/// What happened between a failure and the success after it, in order.
#[derive(Default)]
struct Steps {
    files: Vec<String>,
    commands: Vec<String>,
}

impl Db<'_> {
    /// Resolves the errors about `subject`, if there are any, and returns what was done in between.
    pub(super) fn resolve_errors(self, session_id: &str, subject: &str) -> Result<Option<Finding>, StoreError> {
        let subject = text::cut(subject, super::SUBJECT_KEPT);
        let newest = self.first(FAILING, [session_id, &subject], |row| Ok((row.get(0)?, lossy(row, 1)?)))?;
        let Some((id, error)) = newest else { return Ok(None) };
        let repeats = self.all(RESOLVE, [session_id, &subject], |row| super::whole(row, 0))?;
        let times = repeats.into_iter().fold(0, i64::saturating_add);
        let steps = self.steps_since(session_id, id)?;
        let text = story(&subject, &error, times, &steps);
        Ok(Some(Finding { category: Category::Fix, kind: "fixed", importance: Importance::High, subject, text }))
    }

    fn steps_since(self, session_id: &str, error: i64) -> Result<Steps, StoreError> {
        let rows = self.all(STEPS, params![session_id, error, STEPS_READ], |row| {
            Ok((lossy(row, 0)?, lossy(row, 1)?, lossy(row, 2)?, lossy(row, 3)?))
        })?;
        let mut steps = Steps::default();
        for (category, kind, subject, text) in rows.into_iter().rev() {
            let (list, step) = match category.parse() {
                Ok(Category::File) if !LOOKING.contains(&kind.as_str()) => (&mut steps.files, subject),
                Ok(Category::Git | Category::Environment) => (&mut steps.commands, text),
                _ => continue,
            };
            let step = text::headline(&step, STEP_KEPT);
            if !step.is_empty() && !list.contains(&step) {
                list.push(step);
            }
        }
        Ok(steps)
    }
}

fn story(subject: &str, error: &str, times: i64, steps: &Steps) -> String {
    let times = if times > 1 { format!(" {times} times") } else { String::new() };
    let mut text = format!(
        "{} failed{times}: {}; works now",
        text::headline(subject, STEP_KEPT),
        text::headline(words_of(error), ERROR_KEPT)
    );
    let mut done = Vec::new();
    if !steps.files.is_empty() {
        done.push(format!("changes to {}", newest(&steps.files, FILES_LISTED)));
    }
    if !steps.commands.is_empty() {
        done.push(newest(&steps.commands, COMMANDS_LISTED));
    }
    if !done.is_empty() {
        text.push_str(" after ");
        text.push_str(&done.join(" and "));
    }
    text
}

/// Claude Code puts the exit code on a line of its own before the output, which is more useful.
fn words_of(error: &str) -> &str {
    let output = error.split_once('\n').filter(|(first, output)| {
        let code = first.strip_prefix("Exit code ");
        !output.trim().is_empty() && code.is_some_and(|code| code.trim_end().bytes().all(|byte| byte.is_ascii_digit()))
    });
    output.map_or(error, |(_, output)| output.trim_start())
}

/// The last few of a list: they are nearest to the success.
fn newest(list: &[String], most: usize) -> String {
    let left_out = list.len().saturating_sub(most);
    let more = if left_out > 0 { format!(" ({left_out} earlier left out)") } else { String::new() };
    format!("{}{more}", list.get(left_out..).unwrap_or_default().join(", "))
}
