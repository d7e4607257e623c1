//! With a key, nothing of a run can be read on the server; without it, or with another one, errors say so.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::world::{World, until};

fn key_file(world: &World, name: &str) -> String {
    let line = world.ok(&["fleet", "key"]);
    let path = world.dir.path().join(name);
    std::fs::write(&path, line).unwrap();
    path.display().to_string()
}

/// What the server has, by Temporal's own program.
fn exported(world: &World, arguments: &[&str]) -> Value {
    let output = world.temporal(&[arguments, &["--output", "json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn history(world: &World, workflow: &str) -> Value {
    exported(world, &["workflow", "show", "--workflow-id", workflow])
}

#[test]
fn nothing_can_be_read_in_an_exported_history_when_a_key_is_set() {
    let Some(mut world) = World::new() else { return };
    let key = key_file(&world, "key");
    world.variables.push(("STEADFAST_FLEET_KEY_FILE".into(), key));
    world.add_loop("work", "completion: fixed-n\ndelay: 0", "the quiet prompt of ${SESSION_NAME}");
    world.add_pipeline(
        "ask",
        "name: ask\ndefaults: {delay: 0}\nstages:\n  - {name: quiet, prompt: 'quiet', approve: 'Quietly?'}\n  \
         - {name: test, prompt: 'quiet', runs: 2, command: 'test -e quiet.txt', when: 'exists(\"quiet.txt\")'}\n",
    );
    let _worker = world.driver("w1", "1");
    let mark = world.dir.path().join("quiet-mark");
    let agent = world.agent(
        "secretive",
        &format!(
            "cat >/dev/null\necho quiet-file >quiet.txt\nprintf '{{\"summary\":\"quiet summary\"}}' >\"$STEADFAST_RESULT\"\n\
             if [ \"$STEADFAST_ITERATION\" = 2 ] && [ ! -e {0} ]; then : >{0}; echo 'quiet failure' >&2; exit 5; fi",
            mark.display()
        ),
    );
    world.start_loop("work", "hidden", &agent, &["--max", "2"]);
    let status = world.wait_end("hidden");
    assert_eq!(status["status"], json!("completed"), "{status}");
    world.ok(&["pipeline", "run", "ask", "asking", "--agent", &agent, "--fleet", "--detach"]);
    until("the stage waits", || (world.status("asking")["stages"][0]["status"] == "awaiting_approval").then_some(()));
    world.ok(&["fleet", "say", "asking", "a quiet word"]);
    world.ok(&["fleet", "approve", "asking", "--note", "a quiet note"]);
    assert_eq!(world.wait_end("asking")["status"], json!("completed"));
    let clear = Clear { runs: &["hidden", "asking", "nightly"] };
    for workflow in ["steadfast/hidden", "steadfast/asking", "steadfast-ledger"] {
        let history = history(&world, workflow);
        let count = clear.check(&history, workflow);
        assert!(count > 5, "{workflow} has {count} payloads");
        // What the list allows must not hide a mistake in the list itself.
        let text = history.to_string();
        for word in ["quiet", &world.repo().display().to_string(), "input_tokens", "fixed-n"] {
            assert!(!text.contains(word), "`{word}` can be read in {workflow}");
        }
    }
    // The note of a schedule is not encrypted, so it must not name the repository.
    world.ok(&["loop", "run", "work", "nightly", "--agent", &agent, "--fleet", "--cron", "0 3 1 1 *"]);
    let schedule = exported(&world, &["schedule", "describe", "--schedule-id", "steadfast/nightly"]);
    let repo = world.repo().display().to_string();
    assert!(!schedule.to_string().contains(&repo), "the repository can be read: {schedule}");
    let listed = until("the schedule is listed", || {
        let listed = world.json(&["fleet", "schedules"]);
        (listed["schedules"][0]["name"] == "nightly").then_some(listed)
    });
    assert_eq!(listed["schedules"][0]["note"], json!("0 3 1 1 *"), "{listed}");
    // Anyone without the key sees that the run exists, and no more.
    let mut other = world.command(&["fleet", "status", "hidden"]);
    let output = other.env_remove("STEADFAST_FLEET_KEY_FILE").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("key") && said.contains("STEADFAST_FLEET_KEY_FILE"), "{said}");
    let wrong = key_file(&world, "other-key");
    let output = world.command(&["fleet", "list"]).env("STEADFAST_FLEET_KEY_FILE", wrong).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("key"), "{said}");
}

#[test]
fn why_a_run_stands_is_readable_with_the_key_and_not_on_the_server() {
    let Some(mut world) = World::new() else { return };
    let key = key_file(&world, "key");
    world.variables.push(("STEADFAST_FLEET_KEY_FILE".into(), key));
    world.add_loop("work", "completion: fixed-n\ndelay: 0", "go");
    let _driver = world.driver("driver", "0");
    let _strict = world.worker("strict", &["--slots", "1", "--repo", "ssh://git.example.com/other.git"]);
    let agent = world.writer("0");
    world.start_loop("work", "stands", &agent, &["--max", "1"]);
    let page = until("the reason is shown", || {
        let page = world.ok(&["fleet", "status", "stands"]);
        page.contains("last try: ").then_some(page)
    });
    assert!(page.contains("this worker is not allowed to work on"), "{page}");
    let described = exported(&world, &["workflow", "describe", "--workflow-id", "steadfast/stands"]).to_string();
    assert!(described.contains("Encoded failure") && !described.contains("not allowed"), "{described}");
    world.ok(&["fleet", "kill", "stands", "--no-wait"]);
}

/// The texts that the server may read: everything else has to be encrypted.
struct Clear<'a> {
    runs: &'a [&'a str],
}

/// Names of activities, signals, workflows, queues and what the SDK calls itself and its markers.
const NAMES: [&str; 20] = [
    "answer",
    "attempt",
    "check",
    "condition",
    "core_local_activity",
    "decide",
    "finish",
    "record",
    // The server's own id of a task that the answer to another one began.
    "request-from-RespondWorkflowTaskCompleted",
    "say",
    "set_caps",
    "spent",
    "steadfast",
    "steadfast-agent-command",
    "steadfast-check-command",
    "steadfast-ledger",
    "steadfast-run",
    "temporal-rust",
    "TemporalTimeout:Heartbeat",
    "TemporalTimeout:StartToClose",
];
/// Memo keys of ours. All other names of fields are Temporal's.
const MEMO: [&str; 2] = ["repo", "status"];
/// What the SDK writes beside the result of a local activity: numbers, times, and the name of the activity.
const MARKER: [&str; 10] = [
    "activation_index",
    "seq",
    "attempt",
    "activity_id",
    "activity_type",
    "complete_time",
    "original_schedule_time",
    "backoff",
    "seconds",
    "nanos",
];

impl Clear<'_> {
    /// Fails on any text that is not of an allowed kind. Returns the number of encrypted payloads.
    fn check(&self, value: &Value, path: &str) -> usize {
        match value {
            Value::Object(fields) if fields.contains_key("metadata") && fields.contains_key("data") => {
                Self::check_payload(value, path)
            }
            Value::Object(fields) => {
                let is_memo = path.ends_with("emo.fields");
                let check = |(name, inner): (&String, &Value)| {
                    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
                    assert!(is_name && (!is_memo || MEMO.contains(&name.as_str())), "a field {path}.{name}");
                    self.check(inner, &format!("{path}.{name}"))
                };
                fields.iter().map(check).sum()
            }
            Value::Array(values) => values.iter().map(|inner| self.check(inner, path)).sum(),
            Value::String(text) => {
                assert!(self.allows(text), "`{text}` can be read at {path}");
                0
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }

    fn check_payload(payload: &Value, path: &str) -> usize {
        let bytes = |value: &Value| STANDARD.decode(value.as_str().unwrap_or_default()).unwrap();
        let metadata = payload["metadata"].as_object().unwrap();
        let data = bytes(&payload["data"]);
        if path.ends_with("markerRecordedEventAttributes.details.data.payloads") {
            let marker: Value = serde_json::from_slice(&data).unwrap();
            check_marker(&marker, path);
            return 0;
        }
        let names: Vec<&str> = metadata.keys().map(String::as_str).collect();
        assert_eq!(names, ["encoding", "encryption-key-id"], "{path}: {payload}");
        assert_eq!(bytes(&metadata["encoding"]), b"binary/encrypted", "{path} is not encrypted: {payload}");
        let key_id = String::from_utf8(bytes(&metadata["encryption-key-id"])).unwrap();
        assert!(key_id.strip_prefix('k').is_some_and(is_digits), "{path}: {key_id}");
        // A nonce, a tag and something between.
        assert!(data.len() > 28 && std::str::from_utf8(&data).is_err(), "{path} is text: {payload}");
        1
    }

    fn allows(&self, text: &str) -> bool {
        let is_run = text.strip_prefix("steadfast/").is_some_and(|name| self.runs.contains(&name));
        NAMES.contains(&text)
            || is_run
            || is_number_or_time(text)
            || is_id(text)
            || is_constant(text)
            || is_worker(text)
    }
}

fn check_marker(value: &Value, path: &str) {
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                assert!(MARKER.contains(&name.as_str()), "a field {name} of a marker at {path}");
                check_marker(inner, path);
            }
        }
        Value::String(text) => assert!(text == "decide" || is_digits(text), "`{text}` in a marker at {path}"),
        Value::Array(_) => panic!("a list in a marker at {path}"),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `12`, `1.1.1`, `0.05s`, `2026-11-18T07:56:38.519624529Z`.
fn is_number_or_time(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b':' | b'T' | b'Z' | b's');
    text.starts_with(|first: char| first.is_ascii_digit()) && text.bytes().all(is_part)
}

/// An id of an attempt (`1-2-1`, `check-1-2-1`, `condition-2`), an id that the server or the SDK made, or nothing.
fn is_id(text: &str) -> bool {
    let of_attempt = ["", "check-", "condition-"].iter().filter_map(|prefix| text.strip_prefix(prefix));
    let mut of_attempt = of_attempt.map(|id| id.split('-').all(is_digits));
    let is_uuid = text.len() == 36 && text.split('-').count() == 5 && text.split('-').all(is_hex);
    text.is_empty() || is_uuid || (text.len() == 8 && is_hex(text)) || of_attempt.any(|is_one| is_one)
}

/// `EVENT_TYPE_TIMER_FIRED`.
fn is_constant(text: &str) -> bool {
    text.contains('_') && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
}

/// `HOST/PID`, and the queue that the SDK makes for a worker.
fn is_worker(text: &str) -> bool {
    let Some((host, process)) = text.split_once('/') else { return text == "history-service" };
    let (pid, queue) = process.split_once('-').unwrap_or((process, "0"));
    host == std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim() && is_digits(pid) && is_hex(queue)
}
