//! However the files are read, each response is charged once and only in the goal's time.

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone, Copy)]
enum Step {
    Reply(i64),
    Again(usize),
    Subagent(i64),
    Read,
    Rewrite,
    Pause,
    Resume,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..1_000_i64).prop_map(Step::Reply),
        1 => (0..20_usize).prop_map(Step::Again),
        1 => (1..1_000_i64).prop_map(Step::Subagent),
        3 => Just(Step::Read),
        1 => Just(Step::Rewrite),
        1 => Just(Step::Pause),
        1 => Just(Step::Resume),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_order_of_reads_charges_each_response_once_and_only_in_the_goals_time(
        before in proptest::collection::vec(1..1_000_i64, 0..3),
        steps in proptest::collection::vec(step(), 0..25),
    ) {
        let mut world = World::new();
        let mut lines: Vec<String> = Vec::new();
        for (number, tokens) in before.iter().enumerate() {
            lines.push(reply(&format!("b{number}"), at(-60), [*tokens, 0, 0, 0]));
        }
        world.write(&lines.concat());
        world.start(Budget::default(), START);
        let (mut worker, mut subagents, mut running) = (0, 0, true);
        for (step, second) in steps.iter().zip(1..) {
            let now = at(second);
            match *step {
                Step::Reply(tokens) => {
                    let line = reply(&format!("m{second}"), now, [tokens, 0, 0, 0]);
                    world.write(&line);
                    lines.push(line);
                    worker += if running { tokens } else { 0 };
                }
                Step::Again(which) => {
                    let Some(line) = lines.get(which).cloned() else { continue };
                    world.write(&line);
                    lines.push(line);
                }
                Step::Subagent(tokens) => {
                    append(&world.subagent("a"), &reply(&format!("s{second}"), now, [0, tokens, 0, 0]));
                    subagents += if running { tokens } else { 0 };
                }
                Step::Read => {
                    world.account(now);
                }
                Step::Rewrite => {
                    // Read everything first: lines that vanish unread cannot be charged.
                    world.account(now);
                    lines.reverse();
                    fs_err::write(&world.transcript, lines.concat()).unwrap();
                }
                Step::Pause if running => {
                    world.pause(now);
                    running = false;
                }
                Step::Resume if !running => {
                    world.resume(now);
                    running = true;
                }
                Step::Pause | Step::Resume => {}
            }
        }
        world.account(START + 60 * MINUTE);
        prop_assert_eq!(world.tokens(), (worker, subagents));
    }
}
