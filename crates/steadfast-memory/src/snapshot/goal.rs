//! The part of a snapshot that is always there: how to search, and the goal. A goal that does not fit is cut, with a note
//! that says where the whole text is.

use minijinja::{Value, context};

use super::item::one_line;
use super::{After, Framing};
use steadfast_model::host::TextCap;
use steadfast_model::memory::SessionMemory;
use steadfast_model::memory::stated::{StatedGoal, StatedStatus, is_shortened};
use steadfast_model::{prompt, text};

const TEMPLATE: &str = include_str!("../../prompts/snapshot.md");

struct ShownGoal<'a> {
    objective: &'a str,
    /// The text is still in the conversation and is not repeated.
    in_context: bool,
    role: &'static str,
    mode: &'static str,
    durable: bool,
    standing: String,
    /// The command that adopts it, if it belongs to another session.
    adopt: Option<String>,
    /// Where the whole text is found if it has to be cut.
    whole: String,
}

/// The text within the room. The first goal stays whole if it fits alone; the other one is cut or left out, with a note.
pub(super) fn head(memory: &SessionMemory, framing: &Framing, cap: TextCap, room: usize) -> String {
    let goals = goals(memory, framing);
    let head = |keep: &[usize]| words(&goals, keep, memory, framing);
    let fits = |keep: &[usize], room: usize| cap.measure(&head(keep)) <= room;
    let whole = vec![usize::MAX; goals.len()];
    if fits(&whole, room) {
        return head(&whole);
    }
    // If a goal has to be cut anyway, leave a fifth for the last prompts and open tasks.
    let shortened = room - room / 5;
    // The longest beginning of a goal that fits behind those before it.
    let longest = |before: &[usize], length: usize, room: usize| {
        let (mut fitting, mut too_long) = (0, length);
        while too_long - fitting > 1 {
            let middle = fitting.midpoint(too_long);
            if fits(&[before, &[middle]].concat(), room) { fitting = middle } else { too_long = middle }
        }
        fitting
    };
    let length = |at: usize| goals.get(at).map_or(0, |goal| goal.objective.chars().count());
    if !fits(&[usize::MAX], room) {
        return head(&[longest(&[], length(0), shortened)]);
    }
    let room = if fits(&[usize::MAX], shortened) { shortened } else { room };
    match longest(&[usize::MAX], length(1), room) {
        kept if kept >= SECOND_GOAL_MIN => head(&[usize::MAX, kept]),
        _ => head(&[usize::MAX]),
    }
}

/// A second goal that would be cut shorter than this is left out.
const SECOND_GOAL_MIN: usize = 40;

/// The text with `keep` characters of each objective; further goals are left out.
fn words(goals: &[ShownGoal<'_>], keep: &[usize], memory: &SessionMemory, framing: &Framing) -> String {
    let host = memory.host;
    let note = framing.note.as_deref().map(phrase).filter(|note| !note.is_empty());
    let after: &'static str = framing.after.into();
    let values = |(goal, keep): (&ShownGoal<'_>, &usize)| {
        context! {
            objective => goal.shown_text(*keep), role => goal.role, mode => goal.mode, durable => goal.durable,
            standing => goal.standing.as_str(), adopt => goal.adopt.as_deref(),
        }
    };
    let values: Vec<Value> = goals.iter().zip(keep).map(values).collect();
    let left_out = goals.iter().skip(keep.len()).find(|goal| !goal.in_context).map(|goal| goal.whole.as_str());
    let values = context! {
        after, note, goals => values, left_out, recall => host.capabilities().recall_tool, tools => host.capabilities().tool_prefix
    };
    // The tests render every branch of the template; should it fail, keep at least the goal.
    let head = prompt::render(TEMPLATE, values).unwrap_or_else(|_| {
        let objectives: Vec<String> =
            goals.iter().zip(keep).filter_map(|(goal, keep)| goal.shown_text(*keep)).collect();
        format!("<session_goal>\n{}\n</session_goal>", objectives.join("\n"))
    });
    head + "\n"
}

/// The durable goal, then what the user stated, if that is something else.
fn goals<'a>(memory: &'a SessionMemory, framing: &Framing) -> Vec<ShownGoal<'a>> {
    let mut goals = Vec::new();
    let offered = framing.after == After::Clear;
    let durable = memory.goal.as_ref();
    if let Some(goal) = durable {
        goals.push(ShownGoal {
            objective: &goal.objective,
            in_context: framing.goal_in_context,
            role: "goal",
            mode: match (goal.active, offered) {
                (false, _) => "idle",
                (true, true) => "offered",
                (true, false) => "active",
            },
            durable: true,
            standing: phrase(goal.standing.trim_end().trim_end_matches('.')),
            adopt: framing.adopt.as_deref().map(|id| {
                let id: String = one_line(id).chars().take(8).collect();
                memory.host.spell(&format!("/goal-adopt {}", text::escape_xml(&id)))
            }),
            whole: format!("{}get_goal", memory.host.capabilities().tool_prefix),
        });
    }
    let differs = |stated: &&StatedGoal| durable.is_none_or(|goal| !stated.says(&goal.objective));
    if let Some(stated) = memory.stated.as_ref().filter(differs) {
        goals.push(ShownGoal {
            objective: &stated.objective,
            in_context: framing.stated_in_context,
            role: match durable {
                None => "goal",
                Some(goal) if stated.set_at_ms > goal.set_at_ms => "newer",
                Some(_) => "earlier",
            },
            mode: match (stated.status, offered) {
                (StatedStatus::Paused, _) => "paused",
                (_, true) => "offered",
                // What was set after it is what the user wants now.
                _ if durable.is_some_and(|goal| stated.set_at_ms <= goal.set_at_ms) => "superseded",
                _ => "active",
            },
            durable: false,
            standing: String::new(),
            adopt: None,
            whole: format!("`steadfast session show {} --json`", phrase(&memory.session_id)),
        });
    }
    goals
}

impl ShownGoal<'_> {
    /// The objective, escaped, maybe cut; none when it is in the conversation.
    fn shown_text(&self, keep: usize) -> Option<String> {
        let length = self.objective.chars().count();
        if self.in_context {
            return None;
        }
        if length <= keep {
            return Some(text::escape_xml(self.objective));
        }
        let start: String = self.objective.chars().take(keep).collect();
        let all = if is_shortened(self.objective) { "all that was kept" } else { "the whole text" };
        let start = text::escape_xml(&start);
        Some(format!("{start}… [cut: {keep} of {length} characters; {} has {all}]", self.whole))
    }
}

/// One line, bounded and escaped, because it may contain text from outside.
fn phrase(words: &str) -> String {
    text::escape_xml(&text::cut(&one_line(words), 300))
}
