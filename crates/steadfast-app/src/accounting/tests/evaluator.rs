//! The evaluator's tokens are a part of the subagents' tokens, whatever is read again.

use super::*;

impl World {
    /// The file of a subagent of this kind.
    fn subagent_of_kind(&self, id: &str, kind: &str) -> PathBuf {
        let file = self.subagent(id);
        append(&file.with_extension("meta.json"), &json!({"agentType": kind, "spawnDepth": 1}).to_string());
        file
    }

    fn evaluator_tokens(&self) -> i64 {
        self.goal().evaluator_tokens
    }
}

#[test]
fn only_the_evaluators_tokens_are_its_own_also_after_a_rescan_a_pause_and_a_fork() {
    let mut world = running_goal();
    let judge = world.subagent_of_kind("a1", "steadfast:goal-evaluator");
    let other = world.subagent_of_kind("a2", "goal-evaluator");
    world.write(&reply("m1", at(1), [3, 0, 0, 0]));
    append(&judge, &reply("j1", at(1), [100, 1, 0, 9]));
    append(&other, &reply("o1", at(1), [20, 0, 0, 0]));
    append(&world.subagent("a3"), &reply("o2", at(1), [5, 0, 0, 0]));
    world.account(at(2));
    assert_eq!((world.tokens(), world.evaluator_tokens()), ((3, 126), 101));

    // The same response with its last values, and a second one.
    append(&judge, &reply("j1", at(1), [100, 30, 0, 9]));
    append(&judge, &reply("j2", at(3), [7, 0, 0, 0]));
    world.account(at(4));
    assert_eq!((world.tokens(), world.evaluator_tokens()), ((3, 162), 137));

    // The client rewrites the file: everything in it is read again.
    let text = fs_err::read_to_string(&judge).unwrap();
    fs_err::write(&judge, format!("{{}}\n{text}")).unwrap();
    world.account(at(5));
    assert_eq!((world.tokens(), world.evaluator_tokens()), ((3, 162), 137));

    // Not while it is paused, and on after that.
    world.pause(at(6));
    append(&judge, &reply("j3", at(7), [1_000, 0, 0, 0]));
    world.account(at(8));
    world.resume(at(9));
    append(&judge, &reply("j4", at(10), [10, 0, 0, 0]));
    world.account(at(11));
    assert_eq!((world.tokens(), world.evaluator_tokens()), ((3, 172), 147));

    let fork = action::Place { session_id: "fork".into(), transcript: None, ..world.place() };
    let new = crate::testing::new_goal(Budget::default());
    let goal = action::start(&mut world.store, &fork, new, USER, at(-60)).unwrap();
    let readings = read_subagent(&world.store, Host::Claude, &judge, "a1").unwrap();
    let (forked, _) = world.store.write(|db| record(db, goal, &readings, HOOK, at(12))).unwrap();
    assert_eq!((forked.subagent_tokens, forked.evaluator_tokens), (0, 0), "a copy is charged once");
}

#[test]
fn in_codex_the_rollout_of_a_subagent_names_its_role() {
    let world = World::new();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../steadfast-hosts/samples/codex/rollout");
    let text = fs_err::read_to_string(samples.join("subagent-v1.child.jsonl")).unwrap();
    let kind = |text: &str| {
        let path = world.root.path().join("rollout.jsonl");
        fs_err::write(&path, text).unwrap();
        let reading = read_subagent(&world.store, Host::Codex, &path, "child").unwrap().remove(0);
        assert!(!reading.reading.responses.is_empty());
        reading.agent_type
    };
    assert_eq!(kind(&text), "default");
    let judged = text.replace("\"agent_role\": null", "\"agent_role\": \"goal-evaluator\"");
    assert!(Host::Codex.is_evaluator(&kind(&judged)));
}
