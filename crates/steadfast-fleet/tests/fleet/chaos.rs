//! Random faults on workers and server while many runs work: nothing is lost, nothing is done twice.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::net::Net;
use crate::world::{Worker, World, skipped, until};

const RUNS: usize = 20;
const ITERATIONS: usize = 5;
const WORKERS: usize = 3;

/// A small generator, so that a failure can be repeated with its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

#[test]
fn twenty_runs_on_three_workers_survive_random_faults() {
    // Short beats, so that lost attempts are seen in seconds; a history of few steps, so that it is cut on the way.
    let Some(mut world) = World::with_config("heartbeat_seconds = 8\ncut_after = 12") else { return };
    let seed = std::env::var("FLEET_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or_else(|| u64::from(std::process::id()) * 0x9e37_79b9);
    let mut dice = Dice(seed | 1);
    world.add_loop("work", "completion: fixed-n\ndelay: 0\nlimits: {errors: 50}", "go");
    let nets: Vec<Option<Net>> = (0..WORKERS).map(|number| Net::new(u32::try_from(number).unwrap())).collect();
    if nets.iter().any(Option::is_none) {
        skipped("network namespaces are not allowed here: no partitions");
    }
    let start = |world: &World, number: usize| {
        let net = nets[number].as_ref();
        world.worker_at(&format!("w{number}"), &["--drive", "--slots", "4"], net)
    };
    let mut workers: Vec<Option<Worker>> = (0..WORKERS).map(|number| Some(start(&world, number))).collect();
    workers.iter().flatten().for_each(Worker::wait_ready);
    let agent = world.writer("1");
    let names: Vec<String> = (0..RUNS).map(|number| format!("r{number}")).collect();
    for name in &names {
        world.start_loop("work", name, &agent, &["--max", &ITERATIONS.to_string()]);
    }
    // Faults, one after the other, for half a minute.
    let begin = Instant::now();
    let mut done = Vec::new();
    while begin.elapsed() < Duration::from_secs(30) {
        let victim = usize::try_from(dice.roll(WORKERS as u64)).unwrap();
        match dice.roll(4) {
            0 => {
                done.push(format!("kill w{victim}"));
                if let Some(worker) = workers[victim].take() {
                    worker.kill();
                }
                std::thread::sleep(Duration::from_millis(500 + dice.roll(1_500)));
                workers[victim] = Some(start(&world, victim));
            }
            1 => {
                done.push(format!("stop w{victim}"));
                if let Some(worker) = &workers[victim] {
                    worker.signal("STOP");
                    std::thread::sleep(Duration::from_millis(1_000 + dice.roll(4_000)));
                    worker.signal("CONT");
                }
            }
            2 => {
                done.push(format!("cut w{victim}"));
                if let Some(net) = &nets[victim] {
                    net.connect(false);
                    std::thread::sleep(Duration::from_millis(1_000 + dice.roll(4_000)));
                    net.connect(true);
                }
            }
            _ => {
                done.push("server".to_owned());
                world.stop_server();
                std::thread::sleep(Duration::from_millis(300 + dice.roll(700)));
                world.restart_server();
            }
        }
        std::thread::sleep(Duration::from_millis(dice.roll(2_000)));
    }
    let about = |name: &str| format!("{name} (FLEET_SEED={seed}, {})", done.join(", "));
    let expected: Vec<String> = (1..=ITERATIONS).map(|number| number.to_string()).collect();
    let mut tokens = 0;
    for name in &names {
        let status: Value = world.wait_end(name);
        assert_eq!(status["status"], json!("completed"), "{}: {status}", about(name));
        assert_eq!(status["history"].as_array().unwrap().len(), ITERATIONS, "{}", about(name));
        assert_eq!(world.file_of(&format!("steadfast/{name}"), "log.txt"), expected.join("\n"), "{}", about(name));
        assert_eq!(world.commits_of(name).len(), ITERATIONS, "{}", about(name));
        tokens += status["tokens"].as_i64().unwrap_or(0);
    }
    let least = 15 * i64::try_from(RUNS * ITERATIONS).unwrap();
    let all_agents = 15 * i64::try_from(world.ran().len()).unwrap();
    // An agent that died in its first second had no heartbeat that could report what it used.
    assert!(tokens >= least && tokens <= all_agents, "{tokens} tokens of {all_agents}: {}", about("all"));
    assert!(
        all_agents > least || !done.iter().any(|fault| fault.starts_with("kill")),
        "no attempt was repeated: {}",
        about("all")
    );
    drop(workers);
    until("no agent is left", || {
        crate::world::processes_of(&world.dir.path().join("writer-1")).is_empty().then_some(())
    });
}
