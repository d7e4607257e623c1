//! The text that restores a session: whatever the session remembers, it fits, and every element is closed.

use steadfast_memory::snapshot::{After, Framing, render};
use steadfast_model::host::{Host, TextCap};
use steadfast_model::memory::stated::{StatedGoal, StatedStatus};
use steadfast_model::memory::{Category, GoalSummary, Importance, MemoryEvent, SessionMemory, Task, TaskStatus};
use strum::IntoEnumIterator as _;

use crate::scratch;

pub(crate) fn run(data: &[u8]) {
    let (shape, data) = scratch::split_first(data);
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines().map(str::to_owned);
    let mut next = || lines.next().unwrap_or_default();
    let host = Host::ALL[usize::from(shape & 1)];
    let (objective, stated, note) = (next(), next(), next());
    let memory = SessionMemory {
        session_id: "s-1".into(),
        host,
        goal: (!objective.trim().is_empty()).then(|| GoalSummary {
            objective: objective.trim().to_owned(),
            standing: next(),
            active: shape & 2 == 0,
            set_at_ms: 10,
        }),
        stated: (!stated.trim().is_empty()).then(|| StatedGoal {
            id: 1,
            session_id: "s-1".into(),
            objective: stated.trim().to_owned(),
            status: if shape & 4 == 0 { StatedStatus::Active } else { StatedStatus::Paused },
            goal_id: None,
            set_at_ms: 1,
            changed_at_ms: 1,
        }),
        tasks: (0..3).map(|_| Task { id: "t".into(), subject: next(), status: TaskStatus::Pending }).collect(),
        events: text
            .lines()
            .zip(Category::iter().cycle())
            .zip(1..)
            .map(|((line, category), id)| event(id, category, line))
            .collect(),
        compactions: i64::from(shape),
    };
    let after = After::iter().nth(usize::from(shape >> 3) % After::iter().count()).unwrap_or(After::Resume);
    let framing = Framing {
        goal_in_context: shape & 64 != 0,
        stated_in_context: shape & 128 != 0,
        note: (!note.is_empty()).then_some(note),
        ..Framing::after(after)
    };
    let cap = host.capabilities().start_cap;
    let rendered = render(&memory, cap, &framing);
    assert_fits(&rendered, cap);
    assert_closed(&rendered);
    assert_eq!(render(&memory, cap, &framing), rendered);
}

fn event(id: i64, category: Category, line: &str) -> MemoryEvent {
    let (subject, text) = line.split_once('\t').unwrap_or(("", line));
    MemoryEvent {
        id,
        session_id: "s-1".into(),
        category,
        kind: "seen".into(),
        importance: Importance::Normal,
        subject: subject.to_owned(),
        text: text.to_owned(),
        repeats: id % 3,
        resolved: id % 5 == 0,
        created_at_ms: id,
    }
}

fn assert_fits(rendered: &str, cap: TextCap) {
    assert!(cap.fits(rendered), "{} bytes", rendered.len());
    assert!(!rendered.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')), "{rendered:?}");
}

/// Every element is closed, in order, and there is no other `<`.
fn assert_closed(rendered: &str) {
    let mut open: Vec<&str> = Vec::new();
    for piece in rendered.split('<').skip(1) {
        let (tag, _) = piece.split_once('>').expect("the end of a tag");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{rendered}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap_or_default());
        }
    }
    assert!(open.is_empty(), "{open:?} in {rendered}");
}
