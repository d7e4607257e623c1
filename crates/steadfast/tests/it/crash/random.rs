//! Random kills of random processes, several in a row, until the run is over. Times and victims come from a seed that a
//! failure prints; `STEADFAST_CRASH_SEED` repeats it, as far as timing allows.

use std::time::{Duration, Instant};

use super::world::{Part, Scenario, World};
use super::{assert_same, undisturbed};

/// The maximum number of kills in one run.
const MOST_IN_ONE_RUN: usize = 8;

/// Pseudo-random numbers, reproducible by their seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % sides
    }
}

fn seed() -> u64 {
    let chosen = std::env::var("STEADFAST_CRASH_SEED").ok().and_then(|seed| seed.parse().ok());
    chosen.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        u64::from(now.subsec_nanos()) ^ now.as_secs()
    })
}

#[expect(clippy::print_stdout, reason = "shown with a failure")]
fn print_seed(seed: u64) {
    println!("STEADFAST_CRASH_SEED={seed}");
}

/// Kills this many processes or groups, in as many runs as needed.
fn kill_at_random(scenario: Scenario, kills: usize) {
    let truth = undisturbed(scenario);
    let begun = Instant::now();
    undisturbed(scenario);
    let usual = u64::try_from(begun.elapsed().as_micros()).unwrap();
    let seed = seed();
    print_seed(seed);
    let mut done = 0;
    for run in 0_u64.. {
        if done >= kills {
            break;
        }
        let mut dice = Dice(seed.wrapping_add(run.wrapping_mul(1_000_003)));
        let world = World::new(scenario);
        let killed = disturb(&world, &mut dice, usual);
        let found = world.to_its_end();
        let what = format!("STEADFAST_CRASH_SEED={seed}, run {run} of {scenario:?}: {killed:?}");
        assert_same(&truth, &found, &world, &what);
        done += killed.len();
    }
}

/// The log of what was killed and when.
fn disturb(world: &World, dice: &mut Dice, usual: u64) -> Vec<(Duration, Vec<Part>)> {
    let begun = Instant::now();
    let mut killed = Vec::new();
    let mut engine = world.start("");
    while killed.len() < MOST_IN_ONE_RUN {
        std::thread::sleep(Duration::from_micros(dice.roll(usual / 2)));
        if engine.try_wait().unwrap().is_some() {
            return killed;
        }
        let parts = [Part::Engine, Part::Supervisor, Part::Agent];
        let chosen = 1 + dice.roll(7);
        let mut victims: Vec<Part> =
            parts.into_iter().enumerate().filter(|(at, _)| chosen >> at & 1 == 1).map(|(_, part)| part).collect();
        if victims == parts {
            // As in a power cut.
            victims.push(Part::Other);
        }
        if world.kill(&mut engine, |part| victims.contains(&part)) > 0 {
            killed.push((begun.elapsed(), victims.clone()));
        }
        if victims.contains(&Part::Engine) {
            engine.wait().unwrap();
            engine = world.spawn_resume("");
        }
    }
    engine.wait().unwrap();
    killed
}

#[test]
fn a_loop_survives_kills_at_random() {
    kill_at_random(Scenario::Fixed, 90);
}

#[test]
fn a_loop_with_a_rule_survives_kills_at_random() {
    kill_at_random(Scenario::Plateau, 90);
}

#[test]
fn a_pipeline_survives_kills_at_random() {
    kill_at_random(Scenario::Pipeline, 30);
}

#[test]
fn a_graph_with_a_merge_survives_kills_at_random() {
    kill_at_random(Scenario::Graph, 15);
}
