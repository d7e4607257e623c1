//! The read model of the search box: goals, runs, events and memory that match some words.

use serde::Serialize;

use super::now::Subject;
use steadfast_model::clock::Millis;
use steadfast_model::goal::Goal;
use steadfast_model::text;
use steadfast_store::{Db, EventRow, Hit, RunLine, Scope, StoreError};

/// Words of a query that count, and characters of each.
const WORDS_READ: usize = 8;
const WORD_READ: usize = 64;
/// Characters of a line that matched.
const LINE_SHOWN: usize = 240;
/// Characters before the first word that matched.
const BEFORE_MATCH: usize = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundKind {
    Goal,
    Run,
    Event,
    Memory,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    pub kind: FoundKind,
    /// What to open; null for the memory of a session without a goal.
    pub subject: Option<Subject>,
    pub session_id: Option<String>,
    pub title: String,
    /// The line that matched.
    pub line: String,
    pub project: Option<String>,
    pub at_ms: Millis,
}

/// What matches all words: goals first, then runs, events and memory; at most `most` of each, newest or best first.
pub fn find(db: Db<'_>, query: &str, most: usize) -> Result<Vec<Found>, StoreError> {
    let words: Vec<String> = query.split_whitespace().take(WORDS_READ).map(|word| text::cut(word, WORD_READ)).collect();
    if words.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for place in db.goals_with_words(&words, most)? {
        found.extend(db.goal_at_row(&place)?.map(|goal| of_goal(&goal, &words)));
    }
    found.extend(db.runs_with_words(&words, most)?.into_iter().map(of_run));
    for event in db.events_with_words(&words, most)? {
        found.push(of_event(db, &event, &words)?);
    }
    for hit in db.search(query, Scope::All, None, most)? {
        found.push(of_memory(db, hit, &words)?);
    }
    Ok(found)
}

fn subject(goal: &Goal) -> Subject {
    Subject::Goal { goal_id: goal.goal_id.clone(), session_id: goal.session_id.clone(), host: goal.host }
}

fn of_goal(goal: &Goal, words: &[String]) -> Found {
    Found {
        kind: FoundKind::Goal,
        subject: Some(subject(goal)),
        session_id: Some(goal.session_id.clone()),
        title: format!("goal, {}", <&str>::from(goal.status).replace('_', " ")),
        line: around(&goal.objective, words),
        project: goal.project_dir.clone(),
        at_ms: goal.created_at_ms,
    }
}

fn of_run(line: RunLine) -> Found {
    Found {
        kind: FoundKind::Run,
        title: format!("{}, {}", line.kind, line.status).replace('_', " "),
        line: format!("{} ({})", line.name, line.title),
        subject: Some(Subject::Run { run_id: line.run_id, name: line.name, kind: line.kind }),
        session_id: None,
        project: Some(line.project_dir),
        at_ms: line.started_at_ms,
    }
}

fn of_event(db: Db<'_>, event: &EventRow, words: &[String]) -> Result<Found, StoreError> {
    let goal = db.goal_with_id(&event.goal_id)?;
    Ok(Found {
        kind: FoundKind::Event,
        subject: goal.as_ref().map(subject),
        session_id: Some(event.session_id.clone()),
        title: event.kind.replace('_', " "),
        line: around(&event.payload.to_string(), words),
        project: goal.and_then(|goal| goal.project_dir),
        at_ms: event.created_at_ms,
    })
}

fn of_memory(db: Db<'_>, hit: Hit, words: &[String]) -> Result<Found, StoreError> {
    let goal = db.goal(&hit.event.session_id)?;
    let line = if hit.event.subject.is_empty() {
        hit.event.text.clone()
    } else {
        format!("{}: {}", hit.event.subject, hit.event.text)
    };
    Ok(Found {
        kind: FoundKind::Memory,
        subject: goal.as_ref().map(subject),
        session_id: Some(hit.event.session_id),
        title: hit.event.category.label().to_owned(),
        line: around(&line, words),
        project: hit.project,
        at_ms: hit.event.created_at_ms,
    })
}

/// The part of a text around the first word that is in it.
fn around(whole: &str, words: &[String]) -> String {
    let line = text::one_line(whole);
    let lower = line.to_lowercase();
    let at = words.iter().filter_map(|word| lower.find(&word.to_lowercase())).min().unwrap_or(0);
    // Lower case may have other lengths than the text itself; a few characters more or less do not matter.
    let skipped = lower.get(..at).map_or(0, |before| before.chars().count()).saturating_sub(BEFORE_MATCH);
    let rest: String = line.chars().skip(skipped).collect();
    let dots = if skipped > 0 { "… " } else { "" };
    text::headline(&format!("{dots}{rest}"), LINE_SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{START, World};
    use steadfast_model::goal::budget::Budget;

    #[test]
    fn a_goal_is_found_by_any_part_of_its_objective_and_by_all_words_only() {
        let mut world = World::new();
        let goal = world.start(Budget::default(), START);
        let first = goal.objective.split_whitespace().next().unwrap().to_uppercase();
        let found = find(world.store.read(), &first, 5).unwrap();
        assert_eq!(found.first().map(|found| found.kind), Some(FoundKind::Goal));
        assert_eq!(found.first().and_then(|found| found.subject.clone()), Some(subject(&goal)));
        assert_eq!(find(world.store.read(), &format!("{first} nowhere"), 5).unwrap(), []);
        assert_eq!(find(world.store.read(), "  ", 5).unwrap(), []);
        assert_eq!(find(world.store.read(), "%", 5).unwrap(), [], "no word is a pattern");
    }

    #[test]
    fn an_event_is_found_by_its_kind() {
        let mut world = World::new();
        let goal = world.start(Budget::default(), START);
        let found = find(world.store.read(), "goal_created", 5).unwrap();
        let kinds: Vec<FoundKind> = found.iter().map(|found| found.kind).collect();
        assert_eq!(kinds, [FoundKind::Event]);
        assert_eq!(found.first().and_then(|found| found.subject.clone()), Some(subject(&goal)));
    }

    #[test]
    fn the_line_shows_the_word_that_matched() {
        let long = format!("{} needle {}", "hay ".repeat(200), "straw ".repeat(200));
        let line = around(&long, &["NEEDLE".to_owned()]);
        assert!(line.contains("needle") && line.starts_with('…'), "{line}");
        assert!(line.chars().count() <= LINE_SHOWN);
        assert_eq!(around("İİİ needle", &["needle".to_owned()]), "İİİ needle");
    }
}
