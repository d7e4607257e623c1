//! From rollouts to the store: copies, forks and re-reading change nothing.

use proptest::prelude::*;
use serde_json::Value;
use steadfast_model::clock;

use super::*;
use crate::action::Place;
use crate::testing::{HOUR, new_goal};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../steadfast-hosts/samples/codex/rollout").join(name)
}

fn sample_lines(name: &str) -> Vec<Value> {
    let text = fs_err::read_to_string(sample(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn file_of(lines: &[Value]) -> String {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    lines.join("\n") + "\n"
}

/// The captures are of the hours before [`START`].
const EARLY: Millis = START - 6 * HOUR;

struct Machine {
    directory: tempfile::TempDir,
    store: Store,
}

impl Machine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("home/goals.db")).unwrap();
        Self { directory, store }
    }

    /// A session with a goal that was there before all captures.
    fn start(&mut self, session_id: &str) {
        let place = Place { session_id: session_id.into(), host: Host::Codex, project_dir: None, transcript: None };
        action::start(&mut self.store, &place, new_goal(Budget::default()), USER, EARLY).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs_err::write(&path, bytes).unwrap();
        path
    }

    fn put_sample(&self, name: &str) -> PathBuf {
        self.put(name, fs_err::read(sample(name)).unwrap())
    }

    fn enter(&mut self, session_id: &str, readings: &[FileReading]) {
        let goal = self.store.read().goal(session_id).unwrap().unwrap();
        self.store.write(|db| record(db, goal, readings, HOOK, START)).unwrap();
    }

    fn read_worker(&mut self, session_id: &str, path: &Path) {
        let readings = read_session(&self.store, Host::Codex, session_id, path).unwrap();
        self.enter(session_id, &readings);
    }

    fn read_agent(&mut self, session_id: &str, path: &Path) {
        let agent = path.file_name().unwrap().to_string_lossy();
        let readings = read_subagent(&self.store, Host::Codex, path, &agent).unwrap();
        self.enter(session_id, &readings);
    }

    fn tokens(&self, session_id: &str) -> (i64, i64) {
        let goal = self.store.read().goal(session_id).unwrap().unwrap();
        (goal.tokens_used, goal.subagent_tokens)
    }
}

/// What the responses of a capture count; the tests of the reader have the numbers.
fn counted(name: &str) -> i64 {
    let reading = (adapter(Host::Codex).read_counts)(&sample(name), &Position::default()).unwrap();
    reading.responses.iter().map(|response| response.tokens.charged()).sum()
}

#[test]
fn a_goal_is_charged_for_its_worker_and_its_subagents() {
    let mut machine = Machine::new();
    machine.start("s");
    let worker = machine.put_sample("subagent-v1.parent.jsonl");
    let child = machine.put_sample("subagent-v1.child.jsonl");
    for _ in 0..2 {
        machine.read_worker("s", &worker);
        machine.read_agent("s", &child);
        assert_eq!(machine.tokens("s"), (2_420, 1_010));
    }
    let goal = machine.store.read().goal("s").unwrap().unwrap();
    // 3,200 tokens of input and 230 of output, 1,200 cached, at $1.75, $14 and $0.175 a million; two responses of
    // 1,102.5 millionths are rounded up.
    assert_eq!((goal.cost_micros, goal.unpriced_tokens), (5_600 + 3_220 + 210 + 1, 0));
}

#[test]
fn all_captures_on_one_machine_are_told_apart_though_their_provider_repeats_its_ids() {
    let mut machine = Machine::new();
    machine.start("s");
    let captures = fs_err::read_dir(sample("")).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = captures.map(|name| name.into_string().unwrap()).collect();
    for name in &names {
        let path = machine.put_sample(name);
        machine.read_agent("s", &path);
    }
    let all: i64 = names.iter().map(|name| counted(name)).sum();
    assert_eq!(machine.tokens("s"), (0, all));
}

#[test]
fn a_copy_of_a_file_is_not_charged_again() {
    let mut machine = Machine::new();
    machine.start("s");
    for name in ["tool-call.jsonl", "manual-compaction.jsonl"] {
        let mut lines = sample_lines(name);
        let mut copy = lines.clone();
        if name == "tool-call.jsonl" {
            lines.retain(|line| line["type"] != "token_usage_record");
            copy.clone_from(&lines);
        }
        let before = machine.tokens("s").0;
        let first = machine.put(name, file_of(&lines));
        machine.read_worker("s", &first);
        let second = machine.put(&format!("copy of {name}"), file_of(&copy));
        machine.read_worker("s", &second);
        assert_eq!(machine.tokens("s").0 - before, counted(name));
    }
}

#[test]
fn a_fork_is_charged_for_its_own_responses_in_whatever_order_the_files_are_read() {
    for parent_first in [true, false] {
        let mut machine = Machine::new();
        machine.start("parent");
        machine.start("fork");
        let parent = machine.put_sample("stop-block-then-resume.jsonl");
        let fork = machine.put_sample("fork-of-previous.jsonl");
        if parent_first {
            machine.read_worker("parent", &parent);
        }
        machine.read_worker("fork", &fork);
        machine.read_worker("parent", &parent);
        assert_eq!((machine.tokens("parent").0, machine.tokens("fork").0), (452, 112));
    }
}

#[test]
fn a_goal_that_starts_in_the_middle_of_a_session_is_charged_from_there() {
    for with_records in [true, false] {
        let mut lines = sample_lines("stop-block-then-resume.jsonl");
        let resumed = lines.iter().position(|line| line["ordinal"] == 28).unwrap();
        let mut later = lines.split_off(resumed);
        if !with_records {
            lines.retain(|line| line["type"] != "token_usage_record");
            later.retain(|line| line["type"] != "token_usage_record");
        }
        let mut machine = Machine::new();
        let path = machine.put("rollout.jsonl", file_of(&lines));
        let place =
            Place { session_id: "s".into(), host: Host::Codex, project_dir: None, transcript: Some(path.clone()) };
        let now = clock::parse_rfc3339("2026-11-15T08:22:55Z").unwrap();
        action::start(&mut machine.store, &place, new_goal(Budget::default()), USER, now).unwrap();
        lines.extend(later);
        machine.put("rollout.jsonl", file_of(&lines));
        machine.read_worker("s", &path);
        assert_eq!(machine.tokens("s"), (112, 0));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Files that grow in any order, are read at any time, and are replaced by shorter ones in between.
    #[test]
    fn no_order_of_growing_reading_and_shrinking_changes_what_is_charged(
        steps in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..30),
    ) {
        let names = ["subagent-v1.parent.jsonl", "subagent-v1.child.jsonl", "subagent-v2.child-with-inherited-history.jsonl",
            "manual-compaction.jsonl", "fork-of-previous.jsonl"];
        let mut machine = Machine::new();
        machine.start("s");
        for (which, cut) in steps {
            let name = which.get(&names);
            let bytes = fs_err::read(sample(name)).unwrap();
            let path = machine.put(name, &bytes[..cut.index(bytes.len() + 1)]);
            machine.read_agent("s", &path);
        }
        for name in names {
            let path = machine.put_sample(name);
            machine.read_agent("s", &path);
        }
        let all: i64 = names.iter().map(|name| counted(name)).sum();
        prop_assert_eq!(machine.tokens("s"), (0, all));
    }
}
