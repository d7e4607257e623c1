//! The snapshot of small, full and over-full sessions for both hosts, word for word, and what must hold for any.

mod properties;
mod several;

use strum::IntoEnumIterator as _;

use super::*;
use steadfast_model::host::Host;
use steadfast_model::memory::stated::{StatedGoal, StatedStatus};
use steadfast_model::memory::{Category, GoalSummary, Importance, MemoryEvent, Task, TaskStatus};

pub(super) fn event(id: i64, category: Category, kind: &str, subject: &str, text: &str) -> MemoryEvent {
    MemoryEvent {
        id,
        session_id: "s-1".into(),
        category,
        kind: kind.into(),
        importance: Importance::Normal,
        subject: subject.into(),
        text: text.into(),
        repeats: 1,
        resolved: false,
        created_at_ms: id,
    }
}

pub(super) fn stated(objective: &str) -> StatedGoal {
    StatedGoal {
        id: 1,
        session_id: "s-1".into(),
        objective: objective.into(),
        status: StatedStatus::Active,
        goal_id: None,
        set_at_ms: 1,
        changed_at_ms: 1,
    }
}

fn durable(objective: &str, active: bool) -> GoalSummary {
    let standing =
        if active { "active, 1,200 of 10,000 tokens, 3m 04s" } else { "paused (user), 1,200 tokens, 3m 04s" };
    GoalSummary { objective: objective.into(), standing: standing.into(), active, set_at_ms: 10 }
}

pub(super) fn nothing(host: Host) -> SessionMemory {
    SessionMemory {
        session_id: "s-1".into(),
        host,
        goal: None,
        stated: None,
        events: Vec::new(),
        tasks: Vec::new(),
        compactions: 0,
    }
}

fn small(host: Host) -> SessionMemory {
    SessionMemory {
        stated: Some(stated("Fix the <parser> & ship it")),
        events: vec![
            event(1, Category::Goal, "set", "", "Fix the <parser> & ship it"),
            event(2, Category::Prompt, "prompt", "", "goal: Fix the <parser> & ship it"),
            event(3, Category::File, "read", "src/parser.rs", ""),
        ],
        ..nothing(host)
    }
}

/// Something of every kind.
fn full(host: Host) -> SessionMemory {
    let task = |id: &str, subject: &str, status| Task { id: id.into(), subject: subject.into(), status };
    let mut fixed = event(9, Category::Error, "exit", "cargo clippy", "unused import");
    fixed.resolved = true;
    let mut again = event(8, Category::Error, "exit", "cargo test", "\u{1b}[31mFAILED\u{1b}[0m parser::nested");
    again.repeats = 3;
    SessionMemory {
        goal: Some(durable("Ship v2 of the parser", true)),
        stated: Some(StatedGoal { set_at_ms: 20, ..stated("Ship v2 by Friday, docs too") }),
        events: vec![
            event(1, Category::Prompt, "prompt", "", "Hello"),
            event(2, Category::Intent, "investigate", "", ""),
            event(3, Category::File, "read", "src/lexer.rs", ""),
            event(4, Category::File, "read", "src/parser.rs", ""),
            event(5, Category::File, "edit", "src/parser.rs", ""),
            event(6, Category::Decision, "chosen", "", "Recursive descent, no generator"),
            event(7, Category::Rule, "stated", "", "Never touch </rules> vendored code & co"),
            again,
            fixed,
            event(10, Category::Fix, "exit", "cargo clippy", "removed the import in src/lexer.rs"),
            event(11, Category::Git, "commit", "", "Parse nested lists"),
            event(12, Category::Cwd, "changed", "", "/home/user/old"),
            event(13, Category::Cwd, "changed", "", "/home/user/parser"),
            event(14, Category::Environment, "variable", "", "RUST_LOG=debug"),
            event(15, Category::Subagent, "completed", "", "Look for other users of the lexer"),
            event(16, Category::Skill, "used", "", "release-notes"),
            event(17, Category::Skill, "used", "", "release-notes"),
            event(18, Category::Task, "created", "1", "Write the tests"),
            event(19, Category::Prompt, "prompt", "", "Ship v2 of the parser, I said.\nNow!"),
            event(20, Category::Intent, "implement", "", ""),
            event(21, Category::Prompt, "prompt", "", "goal: Ship v2 by Friday, docs too"),
            event(22, Category::Prompt, "prompt", "", "Is it <done>?"),
        ],
        tasks: vec![
            task("1", "Write the tests", TaskStatus::Completed),
            task("2", "Write the docs", TaskStatus::Pending),
            task("3", "Nested lists", TaskStatus::InProgress),
            task("4", "Given up", TaskStatus::Deleted),
        ],
        compactions: 2,
        ..nothing(host)
    }
}

/// So many events of every category, with long texts.
pub(super) fn overfull(host: Host, events: i64) -> SessionMemory {
    let categories: Vec<Category> = Category::iter().collect();
    let events = (1..=events).map(|id| {
        let category = categories[usize::try_from(id).expect("small") % categories.len()];
        let text = format!("{category} number {id}: {}", "long <text> & more, ".repeat(30));
        event(id, category, "kind", &format!("src/deep/{id}/file_{id}.rs"), &text)
    });
    let tasks = (1..=60).map(|id| Task {
        id: id.to_string(),
        subject: format!("Task {id}: {}", "many words ".repeat(40)),
        status: if id % 10 == 0 { TaskStatus::InProgress } else { TaskStatus::Pending },
    });
    SessionMemory {
        goal: Some(durable(&"Make everything right, and then make it fast. ".repeat(20), true)),
        events: events.collect(),
        tasks: tasks.collect(),
        compactions: 7,
        ..nothing(host)
    }
}

fn rendered(memory: &SessionMemory, framing: &Framing) -> String {
    render(memory, memory.host.capabilities().start_cap, framing)
}

#[test]
fn snapshots_match_the_samples() {
    for (memory, after, wanted) in [
        (small(Host::Claude), After::Resume, include_str!("../../samples/snapshot/small.claude.txt")),
        (small(Host::Codex), After::Compaction, include_str!("../../samples/snapshot/small.codex.txt")),
        (full(Host::Claude), After::Compaction, include_str!("../../samples/snapshot/full.claude.txt")),
        (full(Host::Codex), After::Resume, include_str!("../../samples/snapshot/full.codex.txt")),
        (overfull(Host::Claude, 300), After::Compaction, include_str!("../../samples/snapshot/overfull.claude.txt")),
        (overfull(Host::Codex, 300), After::Compaction, include_str!("../../samples/snapshot/overfull.codex.txt")),
    ] {
        assert_eq!(rendered(&memory, &Framing::after(after)) + "\n", wanted);
    }
}

#[test]
fn sections_keep_their_order_and_count_what_is_left_out() {
    for host in [Host::Claude, Host::Codex] {
        let rendered = rendered(&full(host), &Framing::after(After::Compaction));
        let wanted = [
            "<session_resume ",
            "<how_to_search>",
            "<session_goal>",
            "<files ",
            "<errors ",
            "<fixes ",
            "<decisions ",
            "<rules ",
            "<git ",
            "<task_state ",
            "<environment ",
            "<subagents ",
            "<skills ",
            "<intent ",
            "<recent_user_messages ",
            "</session_resume>",
        ];
        let places: Vec<Option<usize>> = wanted.iter().map(|tag| rendered.find(tag)).collect();
        assert!(places.is_sorted() && places.iter().all(Option::is_some), "{places:?} in {rendered}");
        // Of four prompts the last three are shown, and of all else everything.
        assert!(rendered.contains("<left_out recent_user_messages=\"1\"/>"), "{rendered}");
    }
}

#[test]
fn any_number_of_events_fits_with_the_goal_whole() {
    for host in [Host::Claude, Host::Codex] {
        for events in [0, 1, 100, 1_000, 10_000] {
            let memory = overfull(host, events);
            let rendered = rendered(&memory, &Framing::after(After::Compaction));
            assert!(host.capabilities().start_cap.fits(&rendered), "{host} {events}");
            let goal = memory.goal.as_ref().expect("a goal");
            assert_eq!(rendered.matches(goal.objective.as_str()).count(), 1, "{host} {events}");
            assert!(rendered.contains("<left_out "), "{rendered}");
            assert!(events == 0 || rendered.contains(&format!("events=\"{events}\"")));
            // The newest prompt and the first task in work are there, whatever else is not.
            assert!(rendered.contains("[in_progress] Task 10:"), "{rendered}");
            let newest = memory.events.iter().rfind(|event| event.category == Category::Prompt);
            assert!(newest.is_none_or(|event| rendered.contains(&event.text[..20])), "{host} {events}");
        }
    }
}

#[test]
fn an_empty_memory_renders_nothing() {
    for after in After::iter() {
        assert_eq!(rendered(&nothing(Host::Claude), &Framing::after(after)), "");
    }
}

#[test]
fn a_goal_that_does_not_fit_is_cut_and_says_where_the_rest_is() {
    for (host, text, goal, rest) in [
        (Host::Codex, "目", true, "mcp__steadfast__get_goal has the whole text]"),
        (Host::Codex, "目", false, "`steadfast session show s-1 --json` has the whole text]"),
        (Host::Claude, "&", true, "; get_goal has the whole text]"),
        (Host::Claude, "<", false, "`steadfast session show s-1 --json` has the whole text]"),
    ] {
        let objective = text.repeat(4_000);
        let mut memory = overfull(host, 200);
        memory.goal = goal.then(|| durable(&objective, true));
        memory.stated = (!goal).then(|| stated(&objective));
        let rendered = rendered(&memory, &Framing::after(After::Compaction));
        assert!(host.capabilities().start_cap.fits(&rendered));
        assert!(rendered.contains(rest) && rendered.contains(" of 4000 characters; "), "{rendered}");
        let kept = rendered.matches(&text::escape_xml(text)).count();
        assert!(kept > 1_200, "{host} keeps {kept} of {text}");
        assert!(rendered.contains("<recent_user_messages") && rendered.contains("<task_state"), "{rendered}");
    }
    // 4,000 characters of plain text are whole in both.
    for host in [Host::Claude, Host::Codex] {
        let objective = "word ".repeat(800);
        let memory = SessionMemory { goal: Some(durable(&objective, true)), ..overfull(host, 200) };
        assert!(rendered(&memory, &Framing::after(After::Resume)).contains(&objective));
    }
}

#[test]
fn a_goal_in_the_conversation_is_not_repeated() {
    let memory = full(Host::Claude);
    let framing = Framing { goal_in_context: true, ..Framing::after(After::Resume) };
    let rendered_once = rendered(&memory, &framing);
    assert!(!rendered_once.contains("Ship v2 of the parser"), "{rendered_once}");
    assert!(
        rendered_once.contains("The goal of this session is in the conversation above, word for word."),
        "{rendered_once}"
    );
    assert!(rendered_once.contains("Standing: active, 1,200 of 10,000 tokens, 3m 04s."), "{rendered_once}");
    assert_eq!(rendered_once.matches("Ship v2 by Friday, docs too").count(), 1);
    let framing = Framing { stated_in_context: true, ..framing };
    assert!(!rendered(&memory, &framing).contains("<objective>"));
    let mut earlier = memory;
    earlier.stated = Some(stated("Something else"));
    let rendered = rendered(&earlier, &framing);
    assert!(rendered.contains("Stated by the user before that; it is in the conversation above"), "{rendered}");
}

#[test]
fn the_same_goal_stated_and_durable_is_one() {
    let memory = SessionMemory {
        goal: Some(durable("Ship it now", true)),
        stated: Some(stated("Ship it now")),
        events: vec![
            event(1, Category::Prompt, "prompt", "", "objective: Ship it now"),
            event(2, Category::Decision, "chosen", "", "First: Ship it now"),
            event(3, Category::File, "edit", "Ship it now", ""),
        ],
        tasks: vec![Task { id: "1".into(), subject: "Ship it now".into(), status: TaskStatus::Pending }],
        ..nothing(Host::Codex)
    };
    assert_eq!(rendered(&memory, &Framing::after(After::Compaction)).matches("Ship it now").count(), 1);
}

#[test]
fn a_goal_that_does_not_run_is_not_worked_on() {
    let paused = StatedGoal { status: StatedStatus::Paused, ..stated("Ship it") };
    for (goal, stated, said) in [
        (Some(durable("Ship it", false)), None, "It is not running now: do not work on it unless asked."),
        (None, Some(paused), "It is paused: do not work on it unless asked."),
    ] {
        let memory = SessionMemory { goal, stated, ..nothing(Host::Claude) };
        let rendered = rendered(&memory, &Framing::after(After::Compaction));
        assert!(rendered.contains(said) && !rendered.contains("Work toward it"), "{rendered}");
    }
}

#[test]
fn what_was_cleared_is_offered_and_not_ordered() {
    for (host, command) in [(Host::Claude, "/goal-adopt 0123abcd"), (Host::Codex, "$goal-adopt 0123abcd")] {
        let mut memory = full(host);
        let adopt = Some("0123abcd-ffff".into());
        let offer = rendered(&memory, &Framing { adopt, ..Framing::after(After::Clear) });
        assert!(offer.contains("an offer, not an order: do nothing about it unless the user asks"), "{offer}");
        assert!(offer.contains(&format!("{command} adopts it here.")), "{offer}");
        memory.goal = None;
        let offer = rendered(&memory, &Framing::after(After::Clear));
        assert!(offer.contains("The goal of the session before /clear:"), "{offer}");
        assert!(offer.contains("Do not work on it unless asked.") && !offer.contains("Work toward"), "{offer}");
    }
}

#[test]
fn a_note_is_one_line_of_data() {
    let note = Some("Accounting became\nuncertain: run /goal-reconcile </session_goal>".into());
    let rendered = rendered(&small(Host::Claude), &Framing { note, ..Framing::after(After::Fork) });
    assert!(
        rendered.contains("\nAccounting became uncertain: run /goal-reconcile &lt;/session_goal&gt;\n"),
        "{rendered}"
    );
    assert!(rendered.contains("This session was forked from another one."), "{rendered}");
}
