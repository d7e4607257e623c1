//! The promises of the demo. Each compares the facts that the scripted client recorded with the content of the store.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steadfast_model::text::thousands;

/// What happened, as counted outside Steadfast.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct DemoFacts {
    /// Tokens of the model's answers, each answer once.
    pub(super) tokens: i64,
    pub(super) warnings: usize,
    pub(super) continuations: usize,
    pub(super) compactions: usize,
    /// One entry per reminder of the goal: whether it had the objective word for word.
    pub(super) reminders: Vec<bool>,
    pub(super) refused: usize,
    pub(super) accepted: usize,
    pub(super) session_ends: usize,
    pub(super) kills: usize,
    /// Tokens of the answer that no hook had counted when the client was killed.
    pub(super) unseen_at_kill: i64,
    pub(super) store_survived: bool,
}

/// What is on disk at the end.
pub(super) struct FinalState {
    pub(super) goal: Value,
    pub(super) events: Vec<Value>,
    pub(super) transcript: String,
}

impl FinalState {
    fn count(&self, kind: &str) -> usize {
        self.events.iter().filter(|event| event["kind"] == json!(kind)).count()
    }

    /// The sum over all transcript lines, in which answers are counted several times.
    fn tokens_line_by_line(&self) -> i64 {
        let lines = self.transcript.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let fields = ["input_tokens", "cache_creation_input_tokens", "output_tokens"];
        lines.flat_map(|line| fields.map(|field| line["message"]["usage"][field].as_i64().unwrap_or(0))).sum()
    }
}

#[derive(Serialize)]
pub(super) struct Promise {
    pub(super) name: &'static str,
    pub(super) held: bool,
    pub(super) text: String,
}

pub(super) fn check(facts: &DemoFacts, end: &FinalState) -> Vec<Promise> {
    let goal = &end.goal;
    let counted = goal["total_tokens"].as_i64().unwrap_or(-1);
    let budget = goal["token_budget"].as_i64().unwrap_or_default();
    let promise = |name, held, text| Promise { name, held, text };
    let DemoFacts { warnings, continuations, reminders, refused, accepted, kills, .. } = facts;
    let (used, seen, unseen) = (thousands(facts.tokens), thousands(counted), thousands(facts.unseen_at_kill));
    let (left, limit, added_up) =
        (thousands(budget - counted), thousands(budget), thousands(end.tokens_line_by_line()));
    let reminded = reminders.iter().filter(|verbatim| **verbatim).count();
    vec![
        promise(
            "exact",
            counted == facts.tokens && facts.tokens > 0,
            format!(
                "The model used {used} tokens; Steadfast counted {seen}. All transcript lines add up to {added_up}."
            ),
        ),
        promise(
            "budget",
            facts.warnings == 1 && end.count("limit_warning") == 1 && (1..budget).contains(&counted),
            format!("{warnings} warning at 80 %; the goal ended with {left} of {limit} tokens left."),
        ),
        promise(
            "driven",
            facts.continuations == 2 && end.count("continuation_injected") == 2 && facts.session_ends == 1,
            format!("Steadfast continued {continuations} turns; the session ended after the goal."),
        ),
        promise(
            "memory",
            facts.compactions == 1 && facts.reminders == [true, true] && goal["accounting_uncertain"] == json!(false),
            format!("The objective came back word for word {reminded} times: after the compaction and after the kill."),
        ),
        promise(
            "kill -9",
            facts.kills == 1
                && facts.store_survived
                && facts.unseen_at_kill > 0
                && end.count("session_resumed") == 1
                && end.count("goal_created") == 1,
            format!(
                "{kills} agent killed in a turn; the store stayed intact. {unseen} unseen tokens were counted later, once."
            ),
        ),
        promise(
            "proven",
            goal["status"] == json!("complete")
                && (facts.refused, facts.accepted) == (1, 1)
                && (end.count("verification_failed"), end.count("verification_passed")) == (1, 1)
                && goal["last_verification"]["exit_code"] == json!(0),
            format!("{refused} \"done\" refused because `sh check.sh` failed, {accepted} accepted after it passed."),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> (DemoFacts, FinalState) {
        let facts = DemoFacts {
            tokens: 900,

            warnings: 1,
            continuations: 2,
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
        let end = FinalState {
            goal: json!({
                "total_tokens": 900, "token_budget": 1000, "status": "complete", "accounting_uncertain": false,
                "last_verification": {"exit_code": 0},
            }),
            events: kinds.iter().map(|kind| json!({"kind": kind})).collect(),
            transcript: String::new(),
        };
        (facts, end)
    }

    fn broken(corrupt: impl FnOnce(&mut DemoFacts, &mut FinalState)) -> Vec<&'static str> {
        let (mut facts, mut end) = kept();
        corrupt(&mut facts, &mut end);
        let promises = check(&facts, &end);
        promises.iter().filter(|p| !p.held).map(|p| p.name).collect()
    }

    #[test]
    fn every_promise_fails_when_its_facts_are_wrong() {
        assert!(broken(|_, _| {}).is_empty());
        assert_eq!(broken(|_, end| end.goal["total_tokens"] = json!(901)), ["exact"]);
        assert_eq!(broken(|_, end| end.goal = Value::Null).len(), 4);
        assert_eq!(broken(|facts, _| facts.warnings = 2), ["budget"]);
        assert_eq!(broken(|facts, _| facts.continuations = 1), ["driven"]);
        assert_eq!(broken(|facts, _| facts.reminders[1] = false), ["memory"]);
        assert_eq!(broken(|facts, _| facts.kills = 0), ["kill -9"]);
        assert_eq!(broken(|facts, _| facts.store_survived = false), ["kill -9"]);
        assert_eq!(broken(|facts, _| facts.refused = 0), ["proven"]);
        assert_eq!(broken(|_, end| end.goal["status"] = json!("active")), ["proven"]);
    }

    #[test]
    fn a_line_by_line_counter_counts_repeated_usage_again() {
        let line = json!({"message": {"id": "m", "usage": {
            "input_tokens": 1, "cache_creation_input_tokens": 2, "cache_read_input_tokens": 40, "output_tokens": 3,
        }}});
        let (_, mut end) = kept();
        end.transcript = format!("{line}\n{line}\n{{\"type\":\"user\"}}\n");
        assert_eq!(end.tokens_line_by_line(), 12);
    }
}
