//! What the demo promises, held against two witnesses: the story as the agent told it while it happened, and
//! what Steadfast has in its store at the end.

use serde_json::{Value, json};
use steadfast_model::text::thousands;

use super::story::StoryEvent;

/// The story in numbers, counted by the audience.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// What the model handed out, each answer once.
    pub(super) tokens: i64,
    pub(super) answers: usize,
    pub(super) lines: usize,
    pub(super) warnings: usize,
    pub(super) continued: usize,
    pub(super) compactions: usize,
    pub(super) reminders: Vec<bool>,
    pub(super) refused: usize,
    pub(super) accepted: usize,
    pub(super) session_ends: usize,
    pub(super) kills: usize,
    /// Tokens of the answer that nobody had counted when the agent was killed.
    pub(super) unseen_at_kill: i64,
    pub(super) store_survived: bool,
}

impl Tally {
    pub(super) fn note(&mut self, event: &StoryEvent) {
        match event {
            StoryEvent::Answered { tokens, lines } => {
                self.tokens += tokens;
                self.lines += lines;
                self.answers += 1;
            }
            StoryEvent::Warned => self.warnings += 1,
            StoryEvent::Continued => self.continued += 1,
            StoryEvent::Compacted => self.compactions += 1,
            StoryEvent::Reminded { verbatim } => self.reminders.push(*verbatim),
            StoryEvent::CompletionRefused => self.refused += 1,
            StoryEvent::CompletionAccepted => self.accepted += 1,
            StoryEvent::SessionEnded => self.session_ends += 1,
            StoryEvent::Scene(_) | StoryEvent::Said(..) | StoryEvent::Accounted | StoryEvent::InMidTurn => {}
        }
    }
}

/// What is on disk at the end.
pub(super) struct Record {
    pub(super) goal: Value,
    pub(super) events: Vec<Value>,
    pub(super) transcript: String,
}

impl Record {
    fn count(&self, kind: &str) -> usize {
        self.events.iter().filter(|event| event["kind"] == json!(kind)).count()
    }

    /// What a counter gets that adds up the transcript line by line.
    fn tokens_line_by_line(&self) -> i64 {
        let lines = self.transcript.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines
            .map(|line| {
                let usage = &line["message"]["usage"];
                ["input_tokens", "cache_creation_input_tokens", "output_tokens"]
                    .iter()
                    .filter_map(|field| usage[*field].as_i64())
                    .sum::<i64>()
            })
            .sum()
    }
}

pub(super) struct Promise {
    pub(super) label: &'static str,
    pub(super) text: String,
    pub(super) held: bool,
}

pub(super) fn check(tally: &Tally, record: &Record) -> Vec<Promise> {
    let goal = &record.goal;
    let counted = goal["total_tokens"].as_i64().unwrap_or(-1);
    let budget = goal["token_budget"].as_i64().unwrap_or_default();
    let promise = |label, held, text| Promise { label, text, held };
    vec![
        promise(
            "exact",
            counted == tally.tokens && tally.tokens > 0,
            format!(
                "{} tokens handed out in {} answers, {} counted. The transcript repeats them on {} lines; added up \
                 they would make {}.",
                thousands(tally.tokens),
                tally.answers,
                thousands(counted),
                tally.lines,
                thousands(record.tokens_line_by_line())
            ),
        ),
        promise(
            "budget",
            tally.warnings == 1 && record.count("limit_warning") == 1 && (1..budget).contains(&counted),
            format!(
                "{} warning at 80 %; the goal ended with {} of {} tokens left.",
                tally.warnings,
                thousands(budget - counted),
                thousands(budget)
            ),
        ),
        promise(
            "driven",
            tally.continued == 2 && record.count("continuation_injected") == 2 && tally.session_ends == 1,
            format!("{} turns that would have ended went on; the session ended with the goal.", tally.continued),
        ),
        promise(
            "memory",
            tally.compactions == 1 && tally.reminders == [true, true] && goal["accounting_uncertain"] == json!(false),
            format!(
                "The objective came back word for word {} times: after the compaction and after the kill.",
                tally.reminders.iter().filter(|verbatim| **verbatim).count()
            ),
        ),
        promise(
            "kill -9",
            tally.kills == 1
                && tally.store_survived
                && tally.unseen_at_kill > 0
                && record.count("session_resumed") == 1
                && record.count("goal_created") == 1,
            format!(
                "{} agent killed in mid-turn. The store stayed whole, and the {} tokens no hook had seen were counted \
                 after the resume, once.",
                tally.kills,
                thousands(tally.unseen_at_kill)
            ),
        ),
        promise(
            "proven",
            goal["status"] == json!("complete")
                && (tally.refused, tally.accepted) == (1, 1)
                && (record.count("verification_failed"), record.count("verification_passed")) == (1, 1)
                && goal["last_verification"]["exit_code"] == json!(0),
            format!(
                "{} \"done\" refused because `sh check.sh` failed, {} accepted after it passed.",
                tally.refused, tally.accepted
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> (Tally, Record) {
        let tally = Tally {
            tokens: 900,
            answers: 2,
            lines: 5,
            warnings: 1,
            continued: 2,
            compactions: 1,
            reminders: vec![true, true],
            refused: 1,
            accepted: 1,
            session_ends: 1,
            kills: 1,
            unseen_at_kill: 7,
            store_survived: true,
        };
        let kinds = [
            "goal_created",
            "limit_warning",
            "continuation_injected",
            "verification_failed",
            "continuation_injected",
            "session_resumed",
            "verification_passed",
        ];
        let record = Record {
            goal: json!({
                "total_tokens": 900, "token_budget": 1000, "status": "complete", "accounting_uncertain": false,
                "last_verification": {"exit_code": 0},
            }),
            events: kinds.iter().map(|kind| json!({"kind": kind})).collect(),
            transcript: String::new(),
        };
        (tally, record)
    }

    fn broken(doctor: impl FnOnce(&mut Tally, &mut Record)) -> Vec<&'static str> {
        let (mut tally, mut record) = kept();
        doctor(&mut tally, &mut record);
        let promises = check(&tally, &record);
        promises.iter().filter(|p| !p.held).map(|p| p.label).collect()
    }

    #[test]
    fn a_true_story_keeps_every_promise_and_a_false_one_does_not() {
        assert!(broken(|_, _| {}).is_empty());
        assert_eq!(broken(|_, record| record.goal["total_tokens"] = json!(901)), ["exact"]);
        assert_eq!(broken(|_, record| record.goal = Value::Null).len(), 4);
        assert_eq!(broken(|tally, _| tally.warnings = 2), ["budget"]);
        assert_eq!(broken(|tally, _| tally.continued = 1), ["driven"]);
        assert_eq!(broken(|tally, _| tally.reminders[1] = false), ["memory"]);
        assert_eq!(broken(|tally, _| tally.kills = 0), ["kill -9"]);
        assert_eq!(broken(|tally, _| tally.store_survived = false), ["kill -9"]);
        assert_eq!(broken(|tally, _| tally.refused = 0), ["proven"]);
        assert_eq!(broken(|_, record| record.goal["status"] = json!("active")), ["proven"]);
    }

    #[test]
    fn a_line_by_line_counter_counts_repeated_usage_again() {
        let line = json!({"message": {"id": "m", "usage": {
            "input_tokens": 1, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 40, "output_tokens": 3,
        }}});
        let (_, mut record) = kept();
        record.transcript = format!("{line}\n{line}\n{{\"type\":\"user\"}}\n");
        assert_eq!(record.tokens_line_by_line(), 12);
    }
}
