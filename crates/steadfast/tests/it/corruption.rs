//! Damaged files: flipped bytes, lost pages and cut ends of everything that Steadfast keeps. Each command and hook works
//! with the right data or reports the damage; a recovery brings back all goals of the backup.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::env::{Env, Output};

/// A small generator of numbers, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % u64::try_from(end.max(1)).unwrap()).unwrap()
    }
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harm {
    Flip,
    Sector,
    Page,
    Cut,
}

fn harm(path: &Path, harm: Harm, random: &mut Random) {
    let mut bytes = fs::read(path).unwrap();
    let at = random.below(bytes.len());
    match harm {
        Harm::Flip => bytes[at] ^= 1 << random.below(8),
        Harm::Sector => overwrite(&mut bytes, at / 512 * 512, 512, 0),
        Harm::Page => overwrite(&mut bytes, at / 4_096 * 4_096, 4_096, 0xA5),
        Harm::Cut => bytes.truncate(at),
    }
    fs::write(path, bytes).unwrap();
}

fn overwrite(bytes: &mut [u8], at: usize, length: usize, value: u8) {
    let end = bytes.len().min(at + length);
    bytes[at..end].fill(value);
}

/// A home with two goals, their ledger, a finished goal and a backup, and what is true of it.
struct World {
    env: Env,
    home: Vec<(PathBuf, Vec<u8>)>,
    goals: Vec<(String, String, i64)>,
}

impl World {
    fn new() -> Self {
        let env = Env::new();
        env.start(&["Make every test pass", "--budget", "1M"]);
        // Fewer turns than make it pause without progress.
        for number in 0..2 {
            env.says("s1", &format!("m{number}"), "working", 100);
            env.stop("s1", "working", number > 0);
        }
        for session in ["s2", "s3"] {
            env.hook(session, &json!({"hook_event_name": "SessionStart", "source": "startup"}));
            env.run(&["goal", "start", "Write the docs", "--session", session]).succeeds();
        }
        env.run(&["goal", "abandon", "--session", "s3"]).succeeds();
        env.run(&["db", "backup"]).succeeds();
        let goals = goals_of(&env.run(&["goal", "history", "--all", "--format=json"]).succeeds().json());
        assert_eq!(goals.len(), 3);
        let home = files(&env.home()).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
        Self { env, home, goals }
    }

    /// Puts the home back as it was.
    fn restore(&self) {
        fs::remove_dir_all(self.env.home()).unwrap();
        for (path, bytes) in &self.home {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }

    fn history(&self) -> Output {
        self.env.run(&["goal", "history", "--all", "--format=json"])
    }

    fn hook(&self, event: &Value) -> Output {
        self.env.hook_output("s1", event)
    }
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() { found.extend(files(&entry)) } else { found.push(entry) }
    }
    found.sort();
    found
}

/// Session, goal and tokens of each goal.
fn goals_of(history: &Value) -> Vec<(String, String, i64)> {
    let goals = history["goals"].as_array().unwrap();
    let text = |goal: &Value, name: &str| goal[name].as_str().unwrap().to_owned();
    let mut goals: Vec<_> = goals
        .iter()
        .map(|goal| (text(goal, "session_id"), text(goal, "goal_id"), goal["tokens_used"].as_i64().unwrap_or(-1)))
        .collect();
    goals.sort();
    goals
}

/// Whether a call reports the damage in the documented way.
fn reports(output: &Output) -> bool {
    assert!(!output.stderr.contains("internal error") && !output.stderr.contains("panicked"), "{output:?}");
    output.code == 4 && [&output.stderr, &output.stdout].iter().any(|text| text.contains("hint"))
}

fn stop() -> Value {
    json!({"hook_event_name": "Stop", "stop_hook_active": true, "last_assistant_message": "x", "background_tasks": []})
}

#[test]
fn a_damaged_store_is_reported_with_its_path_and_the_command_that_recovers_it() {
    let world = World::new();
    let mut bytes = fs::read(world.env.store()).unwrap();
    overwrite(&mut bytes, 100, 4_000, 0xA5);
    fs::write(world.env.store(), &bytes).unwrap();
    let store = world.env.store().display().to_string();
    for arguments in [&["goal", "history", "--all"][..], &["goal", "status", "--session", "s1"], &["db", "check"]] {
        let output = world.env.run(arguments);
        output.fails_with(4, &store);
        assert!(output.stderr.contains("nothing was changed; `steadfast db recover`"), "{output:?}");
    }
    let doctor = world.env.run(&["doctor"]);
    assert!(doctor.code == 4 && doctor.stdout.contains("`steadfast db recover`"), "{doctor:?}");
    let start = json!({"hook_event_name": "SessionStart", "source": "startup"});
    let told = world.hook(&start);
    let message = told.json()["systemMessage"].as_str().unwrap().to_owned();
    assert!(told.code == 0 && message.contains(&store) && message.contains("steadfast db recover"), "{message}");
    assert_eq!(world.hook(&stop()).stdout, "", "a session hears of it once");
    assert!(fs::read(world.env.store()).unwrap() == bytes, "nothing was changed");

    let recovered = world.env.run(&["db", "recover", "--json"]).succeeds().json();
    assert_eq!(recovered["outcome"], "rebuilt");
    crate::schemas::check("db-recover.schema.json", &recovered);
    assert!(fs::read(recovered["kept"].as_str().unwrap()).unwrap() == bytes, "the damaged file is kept");
    assert_eq!(goals_of(&world.history().succeeds().json()), world.goals);
    let goal = world.env.status();
    assert_eq!((goal["status"].as_str(), goal["paused_reason"].as_str()), (Some("paused"), Some("degraded")));
    assert_eq!(world.env.event_kinds().last().map(String::as_str), Some("paused_degraded"));
    assert_eq!(recovered["paused"].as_array().unwrap().len(), 2);
    world.env.goal(&["resume"]).succeeds();
    let again = world.env.run(&["db", "recover", "--json"]).succeeds().json();
    assert_eq!(again["outcome"], "not_needed");
}

#[test]
fn a_flipped_byte_in_the_schema_is_named_and_repaired_without_a_loss() {
    let world = World::new();
    let bytes = fs::read(world.env.store()).unwrap();
    // A condition, which SQLite does not look at, and a column that statements name.
    for text in ["continuations_remaining >= 0", "briefed_hash TEXT"] {
        world.restore();
        let at = bytes.windows(text.len()).rposition(|window| window == text.as_bytes()).unwrap();
        let mut damaged = bytes.clone();
        damaged[at + text.len() - 1] ^= 1;
        damaged[at] ^= u8::from(text.ends_with("TEXT"));
        fs::write(world.env.store(), damaged).unwrap();
        for arguments in [&["db", "check"][..], &["doctor"]] {
            let output = world.env.run(arguments);
            let said = output.stdout.clone() + &output.stderr;
            assert!(output.code == 4 && said.contains("schema"), "{text}: {output:?}");
            assert!(said.contains("`steadfast db recover`"), "{text}: {output:?}");
        }
        let recovered = world.env.run(&["db", "recover", "--json"]).succeeds().json();
        assert_eq!(
            (recovered["outcome"].as_str(), &recovered["unreadable"]),
            (Some("rebuilt"), &Value::Null),
            "{text}"
        );
        assert_eq!(goals_of(&world.history().succeeds().json()), world.goals, "{text}");
        world.env.run(&["db", "check"]).succeeds();
    }
}

#[test]
fn a_store_that_lost_its_content_never_begins_empty() {
    let world = World::new();
    for is_removed in [false, true] {
        fs::write(world.env.store(), "").unwrap();
        if is_removed {
            fs::remove_file(world.env.store()).unwrap();
        }
        world.env.run(&["goal", "start", "Something else", "--session", "s9"]).fails_with(4, "db.20");
        let told = world.hook(&json!({"hook_event_name": "SessionStart", "source": "startup"}));
        assert!(told.json()["systemMessage"].as_str().unwrap().contains("steadfast db recover"), "{told:?}");
        assert!(fs::metadata(world.env.store()).map_or(0, |file| file.len()) == 0);
        world.env.run(&["db", "recover"]).succeeds();
        assert_eq!(goals_of(&world.history().succeeds().json()), world.goals);
    }
}

#[test]
fn a_store_without_a_backup_begins_anew_only_when_the_user_says_so() {
    let env = Env::new();
    env.start(&["Ship it"]);
    for is_removed in [false, true] {
        fs::write(env.store(), "").unwrap();
        if is_removed {
            fs::remove_file(env.store()).unwrap();
        }
        for command in ["loop list", "goal start x --session s2", "db check", "doctor"] {
            let refused = env.run(&command.split(' ').collect::<Vec<_>>());
            assert!(refused.code == 4, "{refused:?}");
            let said = format!("{}{}", refused.stdout, refused.stderr);
            assert!(said.contains("goals.db.begun") && said.contains("with `--empty` it begins anew"), "{said}");
        }
        env.run(&["db", "recover"]).fails_with(4, "there is no backup");
        env.run(&["db", "recover", "--empty", "--dry-run"]).succeeds();
        let begun = env.run(&["db", "recover", "--empty"]);
        assert_eq!(begun.code, 0, "{begun:?}");
        assert!(begun.stdout.contains("began with an empty store"), "{begun:?}");
        assert_eq!(begun.stdout.contains("damaged file: "), !is_removed, "{begun:?}");
        env.start(&["Ship something else"]);
    }
    env.run(&["db", "recover", "--empty"]).fails_with(3, "not damaged");
    fs::remove_dir_all(env.home()).unwrap();
    env.start(&["Begin anew"]);
}

#[test]
fn a_store_in_use_is_not_recovered() {
    let world = World::new();
    // A page that only the ledger needs.
    let page: u64 = world.env.sql("SELECT rootpage FROM sqlite_schema WHERE name = 'responses'")[0][0].parse().unwrap();
    let mut bytes = fs::read(world.env.store()).unwrap();
    overwrite(&mut bytes, usize::try_from(page - 1).unwrap() * 4_096, 4_096, 0xA5);
    fs::write(world.env.store(), &bytes).unwrap();
    let holder =
        std::process::Command::new("sleep").arg("60").stdin(fs::File::open(world.env.store()).unwrap()).spawn();
    let mut holder = holder.unwrap();
    let refused = world.env.run(&["db", "recover"]);
    refused.fails_with(3, &format!("sleep 60 (pid {})", holder.id()));
    assert!(fs::read(world.env.store()).unwrap() == bytes);
    holder.kill().unwrap();
    holder.wait().unwrap();
    let dry = world.env.run(&["db", "recover", "--dry-run", "--json"]).succeeds().json();
    assert_eq!((dry["outcome"].as_str(), dry["kept"].is_null()), (Some("rebuilt"), true));
    world.env.run(&["db", "recover"]).succeeds();
    assert_eq!(goals_of(&world.history().succeeds().json()), world.goals, "totals come from the goals and the backup");
}

#[test]
fn damage_is_reported_or_harmless_wherever_it_is() {
    const TRIALS: usize = 120;
    let world = World::new();
    let mut random = Random(20_261_116);
    let (mut reported, mut harmless, mut undetected) = (0, 0, 0);
    for trial in 0..TRIALS {
        world.restore();
        let harm_kind = [Harm::Flip, Harm::Sector, Harm::Page, Harm::Cut][trial % 4];
        let is_store = trial % 8 < 6;
        let targets: Vec<PathBuf> = files(&world.env.home())
            .into_iter()
            .filter(|path| (*path == world.env.store()) == is_store && fs::metadata(path).unwrap().len() > 0)
            .collect();
        let target = targets[random.below(targets.len())].clone();
        harm(&target, harm_kind, &mut random);
        let about = format!("trial {trial}: {harm_kind:?} of {}", target.display());
        let history = world.history();
        let is_right = history.code == 0 && goals_of(&history.json()) == world.goals;
        match (reports(&history), is_right) {
            (true, _) => reported += 1,
            (_, true) => harmless += 1,
            // SQLite has no checksums: a value in a cell can change unseen, but not more than a sector.
            _ => {
                assert!(is_store && matches!(harm_kind, Harm::Flip | Harm::Sector), "{about}: {history:?}");
                let ids = |goals: &[(String, String, i64)]| goals.iter().map(|goal| goal.1.clone()).collect::<Vec<_>>();
                let same = history.code == 0 && ids(&goals_of(&history.json())) == ids(&world.goals);
                let named = world.env.run(&["db", "check"]).code == 4;
                assert!(same || named, "{about}: other goals, and no check names the damage: {history:?}");
                undetected += 1;
            }
        }
        for event in [json!({"hook_event_name": "SessionStart", "source": "resume"}), stop()] {
            let output = world.hook(&event);
            assert!(output.code == 0 && output.stderr.is_empty(), "{about}: {output:?}");
        }
        let recovered = world.env.run(&["db", "recover", "--json"]);
        assert!(recovered.code == 0, "{about}: {recovered:?}");
        let after = world.history();
        assert!(after.code == 0, "{about}: {after:?}");
        let found = goals_of(&after.json());
        if recovered.json()["outcome"] == "rebuilt" {
            let is_there = |goal: &(String, String, i64)| found.iter().any(|other| other.1 == goal.1);
            assert!(world.goals.iter().all(is_there), "{about}: {found:?} of {recovered:?}");
        }
        let log = fs::read_to_string(world.env.home().join("log/hooks.log")).unwrap_or_default();
        assert!(!log.contains("internal error"), "{about}: {log}");
    }
    assert!(
        reported > 0 && harmless > 0,
        "of {TRIALS} trials {reported} reported, {harmless} harmless, {undetected} not seen"
    );
}

/// SQLite reads the log up to its first damaged frame, and drops what is behind it without a word.
#[test]
fn damage_inside_the_log_is_named_before_anything_is_dropped() {
    let world = World::new();
    let env = &world.env;
    let log = env.home().join("goals.db-wal");
    // While another process has the store open, the log stays.
    let reader = rusqlite::Connection::open(env.store()).unwrap();
    reader.query_row("SELECT count(*) FROM goals", [], |_| Ok(())).unwrap();
    for session in ["s5", "s6", "s7"] {
        env.run(&["goal", "start", "Only the log has it", "--session", session]).succeeds();
    }
    let files = [env.store(), log.clone()].map(|path| (path.clone(), fs::read(path).unwrap()));
    drop(reader);
    let put = |flip: Option<usize>| {
        let _ = fs::remove_file(env.home().join("goals.db-shm"));
        for (path, bytes) in &files {
            let mut bytes = bytes.clone();
            if let Some(at) = flip.filter(|_| path == &log) {
                bytes[at] ^= 1;
            }
            fs::write(path, bytes).unwrap();
        }
    };
    put(None);
    assert_eq!(env.run(&["db", "check"]).succeeds().stdout, "ok\n");
    put(Some(32 + 24 + 100));
    let before = files_and_bytes(&world);
    let check = env.run(&["db", "check"]);
    check.fails_with(4, "goals.db-wal is damaged at frame 1");
    assert!(check.stderr.contains("steadfast db recover"), "{check:?}");
    let doctor = env.run(&["doctor"]);
    assert!(doctor.code == 4 && doctor.stdout.contains("is damaged at frame 1"), "{doctor:?}");
    assert!(files_and_bytes(&world) == before, "nothing was changed");
    let recovered = env.run(&["db", "recover", "--json"]).succeeds().json();
    assert_eq!(recovered["outcome"], "rebuilt");
    let kept = recovered["kept"].as_str().unwrap();
    assert!(fs::read(format!("{kept}-wal")).unwrap() == before[1].1, "the damaged log is kept");
    let found = goals_of(&world.history().succeeds().json());
    assert!(world.goals.iter().all(|goal| found.iter().any(|other| other.1 == goal.1)), "{found:?}");
}

/// The store and its log, as they are.
fn files_and_bytes(world: &World) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = [world.env.store(), world.env.home().join("goals.db-wal")];
    paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap_or_default())).collect()
}

/// The store has the truth: each file is written again, and the damaged one is kept and named.
#[test]
fn a_damaged_state_file_is_named_kept_and_written_again() {
    for file in ["loop-state-r.json", "loop-sessions.json", "loop-completions.json"] {
        for cut in [true, false] {
            let world = crate::runs::World::new();
            world.loop_type("count", "completion: fixed-n\n");
            world.loop_run(&["count", "r"], "echo done", &["--max", "1"]).succeeds();
            let path = world.claude(file);
            let mut bytes = fs::read(&path).unwrap();
            if cut {
                bytes.truncate(bytes.len() / 2);
            } else {
                let length = bytes.len();
                overwrite(&mut bytes, length / 2, 64, 0);
            }
            fs::write(&path, &bytes).unwrap();
            let status = world.run(&["loop", "status", "r", "--json"]);
            assert_eq!(status.succeeds().json()["status"], "completed", "{file}");
            let resumed = world.run(&["loop", "resume", "r", "--max", "2"]);
            let aside = path.with_file_name(format!("{file}.broken-1"));
            let words = format!("{}{}{}", status.stderr, resumed.succeeds().stdout, resumed.stderr);
            assert!(words.contains(&aside.display().to_string()), "{file} is not named: {resumed:?}");
            assert!(fs::read(&aside).unwrap() == bytes, "{file} is kept as it was");
            serde_json::from_slice::<Value>(&fs::read(&path).unwrap()).unwrap();
        }
    }
}
