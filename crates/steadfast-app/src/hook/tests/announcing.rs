//! What the user reads when the agent has changed the goal with one of our tools.

use super::*;
use steadfast_model::goal::NewGoal;
use steadfast_model::goal::proof::Evidence;
use steadfast_model::goal::wait::{Wait, WaitFor};

impl World {
    fn tool_done(&self, tool_name: &str) -> HookReply {
        self.own_tool(OwnToolDone { tool_name: tool_name.into(), ..OwnToolDone::default() })
    }

    fn completion_refused(&self, refusal: &str) -> Option<String> {
        let refusal = Some(refusal.to_owned());
        let done = OwnToolDone { tool_name: "update_goal".into(), claims_complete: true, refusal, is_batch: false };
        self.own_tool(done).message
    }

    fn own_tool(&self, done: OwnToolDone) -> HookReply {
        self.hook("PostToolUse", HookEvent::OwnToolDone(done), at(9))
    }

    fn start_with(&mut self, objective: &str, verify: &[&str]) -> Goal {
        let verify = verify.iter().map(|command| (*command).to_owned()).collect();
        let new = NewGoal { objective: objective.into(), verify, ..NewGoal::default() };
        let place = self.place();
        action::start(&mut self.store, &place, new, USER, START).unwrap()
    }

    /// The agent does something to the goal, then the hook of its tool runs.
    fn change_by_worker(&mut self, change: impl FnOnce(&Goal) -> Result<change::Change, change::Refusal>) {
        action::apply(&mut self.store, SESSION, WORKER, at(5), change).unwrap();
    }
}

fn goal_of(objective: &str, verify: &[&str]) -> World {
    let mut world = World::new();
    world.start_with(objective, verify);
    world
}

fn evidence(command: &str, exit_code: Option<i32>, timed_out: bool) -> Evidence {
    Evidence {
        command: command.into(),
        exit_code,
        timed_out,
        duration_ms: 1,
        output_sha256: String::new(),
        output_tail: "the last lines".into(),
        git_commit: None,
        git_dirty: None,
        created_at_ms: at(4),
    }
}

fn says(reply: HookReply) -> String {
    reply.message.unwrap_or_default()
}

#[test]
fn the_end_of_a_goal_says_who_vouches_for_it() {
    let mut world = goal_of("Say hello", &[]);
    world.complete_by_worker(at(5));
    assert_eq!(says(world.tool_done("update_goal")), "◎ goal complete (unverified): the agent's own word");

    let mut world = goal_of("Say hello", &["cargo test", "cargo clippy"]);
    let goal = world.goal();
    let runs = goal.verify.iter().map(|command| evidence(command, Some(0), false)).collect::<Vec<_>>();
    let proof = action::add_evidence(&mut world.store, &goal, &runs, WORKER, at(5)).unwrap();
    action::complete(
        &mut world.store,
        SESSION,
        &action::Claim::Agent { judged: false, verified: Some(proof) },
        WORKER,
        at(6),
    )
    .unwrap();
    assert_eq!(says(world.tool_done("update_goal")), "◎ goal complete: verified (cargo test, cargo clippy)");

    let mut world = goal_of("Say hello", &[]);
    world.change_by_worker(|goal| change::verdict(goal, "complete", None, &[], at(4)));
    let claim = action::Claim::Agent { judged: true, verified: None };
    action::complete(&mut world.store, SESSION, &claim, WORKER, at(6)).unwrap();
    assert_eq!(says(world.tool_done("update_goal")), "◎ goal complete: judged by the evaluator");
}

#[test]
fn a_goal_that_waits_for_the_sign_off_says_what_to_type() {
    let mut world = goal_of("Say hello", &[]);
    world.change_by_worker(|goal| {
        Ok(change::Change {
            goal: Goal { sign_off: true, ..goal.clone() },
            events: Vec::new(),
            span: change::Span::Keep,
        })
    });
    world.complete_by_worker(at(5));
    let shown = "◎ the agent says that the goal is done: /goal-complete signs off, /goal-resume sends it back to work";
    assert_eq!(says(world.tool_done("update_goal")), shown);
}

#[test]
fn a_refused_completion_names_the_failing_command() {
    for (run, shown) in [
        (evidence("cargo test", Some(101), false), "◎ completion refused: `cargo test` failed (exit 101)"),
        (evidence("cargo test", None, false), "◎ completion refused: `cargo test` was ended by a signal"),
        (evidence("cargo test", None, true), "◎ completion refused: `cargo test` took longer than its time limit"),
    ] {
        let mut world = goal_of("Say hello", &["true", "cargo test"]);
        let goal = world.goal();
        let runs = [evidence("true", Some(0), false), run];
        let refused = action::add_evidence(&mut world.store, &goal, &runs, WORKER, at(5)).unwrap_err();
        assert_eq!(world.completion_refused(&format!("Error: {refused}\nhint: x")).as_deref(), Some(shown));
        // An older failure is not the reason of another refusal.
        let other = world.completion_refused("the goal is paused (user)\nhint: the user must resume it first");
        assert_eq!(other.as_deref(), Some("◎ completion refused: the goal is paused (user)"));
        assert_eq!(world.completion_refused("argument `completed_by`: unknown variant"), None);
    }
}

#[test]
fn other_changes_of_the_agent_are_one_line_each() {
    let mut world = goal_of("Port the parser", &[]);
    world.change_by_worker(|goal| change::edit(goal, "Say hello\nand no more".into(), at(5)));
    let shown = says(world.tool_done("update_objective"));
    assert_eq!(shown, "◎ objective changed: \"Port the parser\" → \"Say hello and no more\"");

    world.change_by_worker(|goal| change::block(goal, "no key\u{1b}[31m\nfor the\u{202e} server", at(5)));
    assert_eq!(says(world.tool_done("update_goal")), "◎ goal blocked: no key for the server");
    world.change_by_worker(|goal| change::resume(goal, at(5)));
    assert_eq!(says(world.tool_done("resume_goal")), "◎ goal resumed by the agent");
    world.change_by_worker(|goal| change::abandon(goal, at(5)));
    assert_eq!(says(world.tool_done("abandon_goal")), "◎ goal abandoned by the agent: \"Say hello and no more\"");

    let world = goal_of(&"word ".repeat(40), &[]);
    let shown = says(world.tool_done("create_goal"));
    assert!(shown.starts_with("◎ goal started by the agent: \"word word") && shown.ends_with("…\""), "{shown}");
    assert!(shown.chars().count() < 100, "{shown}");
}

#[test]
fn a_wait_says_what_for_and_until_when() {
    let mut world = goal_of("Port the parser", &[]);
    world.change_by_worker(|goal| change::wait(goal, WaitFor::Time, Some(at(9) + 60 * MINUTE), at(5)));
    let until = clock::to_local(at(9) + 60 * MINUTE);
    let shown = says(world.tool_done("wait_goal"));
    assert!(shown.starts_with("◎ goal waits until ") && until.ends_with(shown.rsplit(' ').next().unwrap()), "{shown}");
    let mut goal = world.goal();
    for (wait_for, what) in [
        (WaitFor::Command("gh run watch".into()), "◎ goal waits for `gh run watch`, until "),
        (WaitFor::File("/tmp/done".into()), "◎ goal waits for the file /tmp/done, until "),
        (
            WaitFor::Process { pid: 77, started: String::new(), boot: String::new() },
            "◎ goal waits for process 77, until ",
        ),
    ] {
        let wait = Some(Wait::new(wait_for, None, at(9)));
        let after = Goal { wait, ..goal.clone() };
        let change = change::Change { goal: after, events: Vec::new(), span: change::Span::Keep };
        goal = world.store.write(|db| db.save(&goal, change, WORKER)).unwrap();
        let shown = says(world.tool_done("wait_goal"));
        assert!(shown.starts_with(what) && shown.ends_with(" at the latest"), "{shown}");
    }
}

#[test]
fn nothing_is_said_about_what_changed_nothing() {
    let world = goal_of("Port the parser", &[]);
    for tool in ["update_goal", "update_objective", "abandon_goal", "wait_goal"] {
        assert_eq!(world.tool_done(tool), HookReply::default(), "{tool}");
    }
    let refused =
        OwnToolDone { tool_name: "abandon_goal".into(), refusal: Some("no".into()), ..OwnToolDone::default() };
    assert_eq!(world.own_tool(refused), HookReply::default());
    assert_eq!(World::new().tool_done("update_goal"), HookReply::default());
}

/// Codex reports a call of our own tool like any other: what it cost is charged.
#[test]
fn a_call_that_is_a_batch_is_charged_as_well() {
    let mut world = goal_of("Port the parser", &[]);
    world.change_by_worker(|goal| change::edit(goal, "Say hello".into(), at(3)));
    let before = world.goal().total_tokens();
    world.write(&reply("m1", at(6), [500, 0, 0, 0]));
    let done = |is_batch| OwnToolDone { tool_name: "update_objective".into(), is_batch, ..OwnToolDone::default() };
    assert!(says(world.own_tool(done(false))).starts_with("◎ objective changed: "));
    assert_eq!(world.goal().total_tokens(), before);
    assert!(says(world.own_tool(done(true))).starts_with("◎ objective changed: "));
    assert_eq!(world.goal().total_tokens(), before + 500);
}
