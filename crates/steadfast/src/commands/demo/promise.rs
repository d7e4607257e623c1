//! The promises of the demo. Each compares the facts that the scripted client recorded with the content of the store.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steadfast_model::text::thousands;

/// What happened, as counted outside Steadfast.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct DemoFacts {
    /// The id of the session file's last line; none in a new session.
    pub(super) last_line: Option<String>,
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

/// What the store has at the end.
pub(super) struct FinalState {
    pub(super) goal: Value,
    pub(super) events: Vec<Value>,
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
    let count = |kind: &str| end.events.iter().filter(|event| event["kind"] == json!(kind)).count();
    let promise = |name, held, text| Promise { name, held, text };
    let DemoFacts { warnings, continuations, refused, accepted, kills, .. } = facts;
    let reminded = facts.reminders.iter().filter(|verbatim| **verbatim).count();
    let (used, seen, unseen) = (thousands(facts.tokens), thousands(counted), thousands(facts.unseen_at_kill));
    let (left, limit) = (thousands(budget - counted), thousands(budget));
    vec![
        promise(
            "exact",
            counted == facts.tokens && facts.tokens > 0,
            format!("The model used {used} tokens; Steadfast counted {seen}."),
        ),
        promise(
            "budget",
            facts.warnings == 1 && count("limit_warning") == 1 && (1..budget).contains(&counted),
            format!("{warnings} warning at 80 %; the goal ended with {left} of {limit} tokens left."),
        ),
        promise(
            "driven",
            facts.continuations == 2 && count("continuation_injected") == 2 && facts.session_ends == 1,
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
                && (count("session_resumed"), count("goal_created")) == (1, 1),
            format!(
                "{kills} agent killed in a turn; the store stayed intact. {unseen} unseen tokens counted later, once."
            ),
        ),
        promise(
            "proven",
            goal["status"] == json!("complete")
                && (facts.refused, facts.accepted) == (1, 1)
                && (count("verification_failed"), count("verification_passed")) == (1, 1)
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
            last_line: None,
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
}
