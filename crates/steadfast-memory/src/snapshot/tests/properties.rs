//! What holds for the snapshot of any session whatsoever.

use proptest::prelude::*;
use strum::IntoEnumIterator as _;

use super::*;

fn categories() -> Vec<Category> {
    Category::iter().collect()
}

/// Any text: short, with control characters and markup, or long and hard to fit.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => any::<String>(),
        2 => "[a-z ]{0,40}",
        1 => "(<|>|&|\"|\u{1b}\\[31m|</session_goal>|\n|é|目){0,60}",
        1 => (1_usize..4_000, prop::sample::select(vec!["&", "目", "<x>", "word "])).prop_map(|(times, text)| text.repeat(times)),
    ]
}

fn objective() -> impl Strategy<Value = String> {
    words()
        .prop_map(|text| text.trim().chars().take(4_000).collect::<String>())
        .prop_filter("empty", |text| !text.is_empty())
}

prop_compose! {
    fn remembered()(
        category in prop::sample::select(categories()), kind in "[a-z]{1,10}", subject in words(), text in words(),
        repeats in 0_i64..5, resolved in any::<bool>(),
    ) -> MemoryEvent {
        MemoryEvent { repeats, resolved, ..event(1, category, &kind, &subject, &text) }
    }
}

prop_compose! {
    fn memory()(
        session_id in "[a-z0-9-]{1,40}", host in prop::sample::select(vec![Host::Claude, Host::Codex]),
        goal in prop::option::of((objective(), words(), any::<bool>())),
        rendered in prop::option::of((objective(), prop::option::of("[a-z]{3}"), any::<bool>())),
        events in prop::collection::vec(remembered(), 0..60),
        tasks in prop::collection::vec((words(), any::<bool>()), 0..40),
        compactions in 0_i64..9,
    ) -> SessionMemory {
        let task = |(subject, open): (String, bool)| {
            let status = if open { TaskStatus::Pending } else { TaskStatus::Completed };
            Task { id: "t".into(), subject, status }
        };
        SessionMemory {
            session_id,
            host,
            goal: goal.map(|(objective, standing, active)| GoalSummary { objective, standing, active, set_at_ms: 10 }),
            stated: rendered.map(|(objective, goal_id, active)| {
                let status = if active { StatedStatus::Active } else { StatedStatus::Paused };
                StatedGoal { status, goal_id, ..stated(&objective) }
            }),
            events,
            tasks: tasks.into_iter().map(task).collect(),
            compactions,
        }
    }
}

prop_compose! {
    fn framing()(
        after in prop::sample::select(After::iter().collect::<Vec<_>>()), goal_in_context in any::<bool>(),
        stated_in_context in any::<bool>(), adopt in prop::option::of(words()), note in prop::option::of(words()),
    ) -> Framing {
        Framing { after, goal_in_context, stated_in_context, adopt, note }
    }
}

/// Every tag is closed, in order; there is no other `<`.
fn assert_balanced(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    for piece in text.split('<').skip(1) {
        let tag = piece.split('>').next().expect("an end of the tag");
        assert!(piece.contains('>'), "{piece:?} in {text}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{text}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().expect("a name"));
        }
    }
    assert_eq!(open, Vec::<&str>::new(), "{text}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_session_fits_is_well_formed_and_the_same_every_time(
        memory in memory(), framing in framing(),
    ) {
        let cap = memory.host.capabilities().start_cap;
        let rendered = render(&memory, cap, &framing);
        prop_assert!(cap.fits(&rendered), "{} bytes", rendered.len());
        assert_balanced(&rendered);
        prop_assert_eq!(&rendered, &render(&memory, cap, &framing));
        prop_assert!(!rendered.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')));

        let durable = memory.goal.as_ref().map(|goal| goal.objective.as_str());
        let stated = memory.stated.as_ref().map(|stated| stated.objective.as_str());
        let stated = stated.filter(|text| Some(*text) != durable);
        let texts = [durable.filter(|_| !framing.goal_in_context), stated.filter(|_| !framing.stated_in_context)];
        let left_out = usize::from(rendered.contains("more about it than fits here"));
        prop_assert_eq!(rendered.matches("<objective>").count() + left_out, texts.iter().flatten().count());
        prop_assert_eq!(rendered.contains("<session_goal>"), durable.is_some() || stated.is_some());
        if !rendered.contains("[cut: ") && left_out == 0 {
            for text in texts.into_iter().flatten() {
                let whole = format!("<objective>\n{}\n</objective>", text::escape_xml(text));
                prop_assert_eq!(rendered.matches(&whole).count(), 1, "{}", rendered);
            }
        }
    }

    #[test]
    fn the_words_of_the_goal_are_there_once_whatever_repeats_them(
        mut memory in memory(), objective in "[A-Z]{4}( [A-Z]{3,8}){2,30}",
        places in prop::collection::vec((any::<usize>(), words(), words()), 1..20),
    ) {
        memory.goal = Some(durable(&objective, true));
        memory.stated = None;
        for (at, before, behind) in places {
            if let Some(length) = std::num::NonZero::new(memory.events.len()) {
                let event = &mut memory.events[at % length];
                event.text = format!("{before}{objective}{behind}");
                event.subject = format!("{behind} {objective}");
            }
            let subject = format!("{before} {objective}");
            memory.tasks.push(Task { id: "t".into(), subject, status: TaskStatus::InProgress });
        }
        let rendered = render(&memory, memory.host.capabilities().start_cap, &Framing::after(After::Compaction));
        prop_assert_eq!(rendered.matches(&objective).count(), 1, "{}", rendered);
    }
}
