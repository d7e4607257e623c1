//! The part of a snapshot that is always there: how to search, and the goal, whole if it fits at all. Only if it does
//! not is it cut, with a mark that tells where the whole text is.

use minijinja::{Value, context};

use super::item::one_line;
use super::{After, Framing};
use crate::host::Cap;
use crate::memory::Recollection;
use crate::memory::stated::{StatedGoal, StatedStatus, is_shortened};
use crate::prompt;
use crate::text;

const TEMPLATE: &str = include_str!("../../../prompts/snapshot.md");

/// One goal as the template words it.
struct Goal<'a> {
    objective: &'a str,
    /// The model has the text in its conversation, so that it is not told again.
    in_context: bool,
    role: &'static str,
    mode: &'static str,
    durable: bool,
    standing: String,
    /// What to type to take it over, if it is another session's.
    adopt: Option<String>,
    /// Where the whole text is, if it has to be cut.
    whole: String,
}

/// The text within the room. The first goal stays whole as long as it fits alone; the other is cut, or left out, and
/// both are told.
pub(super) fn head(recollection: &Recollection, framing: &Framing, cap: Cap, room: usize) -> String {
    let goals = goals(recollection, framing);
    let head = |keep: &[usize]| words(&goals, keep, recollection, framing);
    let fits = |keep: &[usize], room: usize| cap.measure(&head(keep)) <= room;
    let whole = vec![usize::MAX; goals.len()];
    if fits(&whole, room) {
        return head(&whole);
    }
    // Where a goal has to be cut anyway, a fifth is left to the last prompts and open tasks.
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
        kept if kept >= WORTH_TELLING => head(&[usize::MAX, kept]),
        _ => head(&[usize::MAX]),
    }
}

/// The shortest beginning of a second goal that is told: a few words say less than that there are more.
const WORTH_TELLING: usize = 40;

/// The text with so many characters of each objective; goals beyond those are left out.
fn words(goals: &[Goal<'_>], keep: &[usize], recollection: &Recollection, framing: &Framing) -> String {
    let host = recollection.host;
    let note = framing.note.as_deref().map(phrase).filter(|note| !note.is_empty());
    let after: &'static str = framing.after.into();
    let values: Vec<Value> = goals.iter().zip(keep).map(|(goal, keep)| goal.values(*keep)).collect();
    let left_out = goals.iter().skip(keep.len()).find(|goal| !goal.in_context).map(|goal| goal.whole.as_str());
    let values = context! {
        after, note, goals => values, left_out, recall => host.capabilities().recall_tool, tools => host.capabilities().tool_prefix
    };
    // The tests render every branch of the template; if it fails all the same, the goal must not be lost.
    let head = prompt::render(TEMPLATE, values).unwrap_or_else(|_| {
        let objectives: Vec<String> = goals.iter().zip(keep).filter_map(|(goal, keep)| goal.told(*keep)).collect();
        format!("<session_goal>\n{}\n</session_goal>", objectives.join("\n"))
    });
    head + "\n"
}

/// The durable goal, then what the user stated, if that is something else.
fn goals<'a>(recollection: &'a Recollection, framing: &Framing) -> Vec<Goal<'a>> {
    let mut goals = Vec::new();
    let offered = framing.after == After::Clear;
    let durable = recollection.goal.as_ref();
    if let Some(goal) = durable {
        goals.push(Goal {
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
                recollection.host.spell(&format!("/goal-adopt {}", text::escape_xml(&id)))
            }),
            whole: format!("{}get_goal", recollection.host.capabilities().tool_prefix),
        });
    }
    let differs = |stated: &&StatedGoal| durable.is_none_or(|goal| !stated.says(&goal.objective));
    if let Some(stated) = recollection.stated.as_ref().filter(differs) {
        goals.push(Goal {
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
            whole: format!("`steadfast session show {} --json`", phrase(&recollection.session_id)),
        });
    }
    goals
}

impl Goal<'_> {
    fn values(&self, keep: usize) -> Value {
        context! {
            objective => self.told(keep), role => self.role, mode => self.mode, durable => self.durable,
            standing => self.standing.as_str(), adopt => self.adopt.as_deref(),
        }
    }

    /// The objective, escaped, maybe cut; none when it is in the conversation.
    fn told(&self, keep: usize) -> Option<String> {
        (!self.in_context).then(|| self.text(keep))
    }

    fn text(&self, keep: usize) -> String {
        let length = self.objective.chars().count();
        if length <= keep {
            return text::escape_xml(self.objective);
        }
        let start: String = self.objective.chars().take(keep).collect();
        let all = if is_shortened(self.objective) { "all that was kept" } else { "the whole text" };
        format!("{}… [cut: {keep} of {length} characters; {} has {all}]", text::escape_xml(&start), self.whole)
    }
}

/// Words of ours that may hold words of others: one line, bounded, escaped.
fn phrase(words: &str) -> String {
    text::escape_xml(&text::cut(&one_line(words), 300))
}
