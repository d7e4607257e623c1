use super::*;
use steadfast_model::goal::{NewGoal, change};
use steadfast_model::hook::HookEvent;
use steadfast_model::host::Host;

const NOW: Millis = 1_000_000;

fn active(host: Host) -> Goal {
    let new = NewGoal { objective: "Port the parser".into(), ..NewGoal::default() };
    Goal { goal_id: "g".into(), ..Goal::start(new, "s", host, None, NOW - 500) }
}

fn paused(host: Host) -> Goal {
    change::pause(&active(host), NOW - 100).unwrap().goal
}

/// The reply when the commands turned `before` into `after`.
fn decided(host: Host, in_turn: bool, before: Option<Goal>, after: Option<&Goal>, other_text: bool) -> HookReply {
    let input = HookInput {
        host,
        event_name: "UserPromptSubmit".into(),
        session_id: "s".into(),
        transcript: None,
        cwd: "/".into(),
        project_dir: "/".into(),
        turn_id: Some("t1".into()),
        event: HookEvent::PreCompact,
        observations: Vec::new(),
    };
    let typed = Typed { input: &input, prompt: None, goal: before, in_turn, now: NOW };
    let text = "done\nnext: x".to_owned();
    let answered = Answered { verbs: vec!["resume"], text, other_text, asked_to_continue: false };
    let work = typed.work(&answered, after).unwrap();
    typed.decide(&answered, after, work).unwrap()
}

#[test]
fn at_an_idle_prompt_only_a_goal_that_moves_needs_the_model() {
    let host = Host::Codex;
    let status = decided(host, false, Some(active(host)), Some(&active(host)), false);
    assert_eq!((status.block.as_deref(), status.context), (Some("done\nnext: x"), None));
    let edited = Goal { objective: "Another".into(), ..paused(host) };
    assert!(decided(host, false, Some(paused(host)), Some(&edited), false).block.is_some(), "it stays paused");

    let resumed = active(host);
    let reply = decided(host, false, Some(paused(host)), Some(&resumed), false);
    assert_eq!((reply.block, reply.message.as_deref()), (None, Some("done\nnext: continues now")));
    assert!(reply.context.unwrap().contains("Port the parser"));

    // A background hook of Claude Code begins the turn.
    let host = Host::Claude;
    assert!(decided(host, false, Some(paused(host)), Some(&active(host)), false).block.is_some());
}

#[test]
fn a_new_goal_or_text_goes_to_the_model_of_every_host() {
    for host in Host::ALL {
        let started = Goal { created_at_ms: NOW, ..active(*host) };
        let reply = decided(*host, false, None, Some(&started), false);
        assert!(reply.block.is_none() && reply.context.unwrap().contains("started a durable goal"));
        let adopted = decided(*host, false, None, Some(&active(*host)), false);
        assert!(adopted.context.unwrap().contains("taken over from another session"));
        let edited = Goal { objective: "Another".into(), ..started.clone() };
        let reply = decided(*host, false, Some(started), Some(&edited), false);
        assert!(reply.context.unwrap().contains("changed its objective"));
    }
}

#[test]
fn nothing_blocks_a_prompt_in_mid_turn_or_one_with_other_text() {
    let host = Host::Codex;
    let goal = active(host);
    let reply = decided(host, true, Some(goal.clone()), Some(&goal), false);
    assert_eq!((reply.block, reply.message.as_deref()), (None, Some("done\nnext: x")));
    assert!(reply.context.unwrap().ends_with("Continue with your work."));
    let stopped = change::pause(&goal, NOW).unwrap().goal;
    let reply = decided(host, true, Some(goal.clone()), Some(&stopped), false);
    assert!(reply.block.is_none() && reply.context.unwrap().contains("End your turn now"));
    let resumed = decided(host, true, Some(stopped), Some(&goal), false);
    assert!(resumed.context.unwrap().contains("Port the parser"), "a model that winds up is told to continue");
    let reply = decided(host, false, Some(paused(host)), Some(&paused(host)), true);
    assert!(reply.block.is_none() && reply.context.unwrap().ends_with("The rest of the message is for you."));
}
