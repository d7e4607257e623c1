//! Session files of a real Claude Code 2.1.197: what they cost, and what else they contain. The files are captures
//! against a scripted API with fixed token counts.

use std::path::PathBuf;

use serde_json::json;

use super::*;
use steadfast_model::testing::{START, reply, reply_with_usage};

/// Responses, input, output, cache creation and cache read tokens.
type Totals = (usize, i64, i64, i64, i64);

fn sample(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("samples/claude/transcripts").join(name)
}

fn read_sample(name: &str) -> Reading {
    read(&sample(name), &Position::default()).unwrap()
}

fn read_text(text: &str) -> Reading {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session.jsonl");
    fs_err::write(&path, text).unwrap();
    read(&path, &Position::default()).unwrap()
}

fn totals(reading: &Reading) -> Totals {
    let sum = |field: fn(Tokens) -> i64| reading.responses.iter().map(|response| field(response.tokens)).sum();
    (reading.responses.len(), sum(|t| t.input), sum(|t| t.output), sum(|t| t.cache_creation), sum(|t| t.cache_read))
}

/// The numbers were computed apart from this program: every line parsed as JSON, `assistant` lines whose model is
/// not `<synthetic>` taken, of each `message.id` the record with the largest `output_tokens`, fields added up.
const SAMPLES: [(&str, Totals); 21] = [
    // Only a synthetic message about the error: nothing was billed.
    ("api-error-429.jsonl", (0, 0, 0, 0, 0)),
    // The session before /clear and the one after it: two responses of 10/5 each.
    ("clear-interactive/2694faea-a8c0-4450-8614-894a87bec403.jsonl", (2, 20, 10, 0, 0)),
    ("clear-interactive/c606e513-0118-445b-b838-4d9fe242b70e.jsonl", (2, 20, 10, 0, 0)),
    // Seven lines of four responses; added line by line it would be 389,070 instead of 196,040.
    ("compact-auto.jsonl", (4, 196_000, 40, 0, 0)),
    ("compact-reactive-prompt-too-long.jsonl", (4, 196_000, 40, 0, 0)),
    // Compaction appends: the first file is the beginning of the second.
    ("compact-manual/before.jsonl", (2, 2_000, 100, 600, 4_000)),
    ("compact-manual/after.jsonl", (3, 3_000, 150, 900, 6_000)),
    // Four lines of three responses and a synthetic one for the Esc.
    ("interrupt-esc.jsonl", (3, 30, 15, 0, 0)),
    // The refused tool call was billed, and so was the retry.
    ("malformed-tool-use-retry.jsonl", (2, 511, 111, 0, 0)),
    // The work of three turns; the native evaluator's own requests are in no file.
    ("native-goal.jsonl", (3, 300, 27, 0, 0)),
    // Five lines of two responses: 475 tokens, and 1,825 if every line counted (bug 1 of the plugin).
    ("one-message-many-lines.jsonl", (2, 103, 55, 317, 2_500)),
    // Eighteen lines of ten responses of 10/5.
    ("queued-input.jsonl", (10, 100, 50, 0, 0)),
    // A session with a compaction, and a synthetic "No response requested.".
    ("resume-fork-compact-clear/6dd8620c-ffe0-495b-a46f-f90ad33f492f.jsonl", (4, 400, 28, 0, 0)),
    // Cleared at once: no response at all.
    ("resume-fork-compact-clear/75687ce2-5985-4971-9837-4f1f2c8521e5.jsonl", (0, 0, 0, 0, 0)),
    // A fork: copies of the parent's responses and one of its own.
    ("resume-fork-compact-clear/b669656c-ec05-4a0c-8cb5-690f0d1285b8.jsonl", (4, 400, 28, 0, 0)),
    // The branch that was taken back was spent all the same.
    ("rewind.jsonl", (4, 400, 36, 0, 0)),
    // Nine blocks in a row, one line each.
    ("stop-loop-cap-print.jsonl", (9, 90, 27, 180, 900)),
    ("stop-loop-interactive.jsonl", (3, 3_000, 150, 900, 6_000)),
    // The stream was cut after the first block: the numbers of its start are all there is.
    ("stream-cut-partial-usage.jsonl", (1, 500, 1, 0, 0)),
    // The worker, six lines of three responses, and its subagent, three lines of two.
    ("tools-mcp-subagent/bd216a1f-d1a9-49dd-94fd-e2d7b4b540e6.jsonl", (3, 110, 66, 330, 3_900)),
    (
        "tools-mcp-subagent/bd216a1f-d1a9-49dd-94fd-e2d7b4b540e6/subagents/agent-ae13b9d0730311a9c.jsonl",
        (2, 102, 110, 126, 118),
    ),
];

#[test]
fn every_captured_file_costs_what_was_computed_by_hand() {
    for (name, expected) in SAMPLES {
        let reading = read_sample(name);
        assert_eq!(totals(&reading), expected, "{name}");
        assert_eq!((reading.broken_lines, &reading.invalid), (0, &None), "{name}");
        let size = fs_err::metadata(sample(name)).unwrap().len();
        assert_eq!(reading.position.offset, size, "{name} was read to its end");
    }
}

#[test]
fn no_captured_file_is_left_out() {
    fn count(directory: &Path) -> usize {
        let entries = fs_err::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        entries
            .map(|path| {
                if path.is_dir() {
                    count(&path)
                } else {
                    usize::from(path.extension().is_some_and(|extension| extension == "jsonl"))
                }
            })
            .sum()
    }
    assert_eq!(count(&sample("")), SAMPLES.len());
}

#[test]
fn a_fork_shares_the_responses_of_its_parent() {
    let ids = |name: &str| -> Vec<String> {
        let name = format!("resume-fork-compact-clear/{name}.jsonl");
        read_sample(&name).responses.into_iter().map(|r| r.id).collect()
    };
    let parent = ids("6dd8620c-ffe0-495b-a46f-f90ad33f492f");
    let fork = ids("b669656c-ec05-4a0c-8cb5-690f0d1285b8");
    let shared = fork.iter().filter(|id| parent.contains(id)).count();
    assert_eq!((shared, fork.len() - shared), (3, 1));
}

#[test]
fn the_last_words_and_tool_calls_of_a_session_are_known() {
    let worker = read_sample("tools-mcp-subagent/bd216a1f-d1a9-49dd-94fd-e2d7b4b540e6.jsonl");
    assert_eq!((worker.last_text.as_deref(), worker.tool_calls), (Some("All done."), 3));
    let talk = read_sample("stop-loop-cap-print.jsonl");
    assert_eq!((talk.last_text.as_deref(), talk.tool_calls), (Some("turn seq 10 msgs 18"), 0));
    assert!(talk.last_uuid.is_some());
}

#[test]
fn input_that_waits_is_seen_until_the_client_takes_it() {
    assert_eq!(read_sample("queued-input.jsonl").queued, 0);
    let text = fs_err::read_to_string(sample("queued-input.jsonl")).unwrap();
    let mut waiting = Vec::new();
    let mut so_far = String::new();
    for line in text.lines() {
        so_far.push_str(line);
        so_far.push('\n');
        if line.contains("\"queue-operation\"") {
            waiting.push(read_text(&so_far).queued);
        }
    }
    // A message taken up between two tools (remove), then a command that waits for the turn's end (dequeue).
    assert_eq!(waiting, [1, 0, 1, 0]);
}

#[test]
fn a_prompt_typed_after_the_queue_was_emptied_waits_again() {
    let operation = |name: &str| format!("{}\n", json!({"type": "queue-operation", "operation": name}));
    let emptied = read_text(&["enqueue", "enqueue", "popAll"].map(operation).concat());
    assert_eq!((emptied.queued, emptied.queue_emptied), (0, true));
    let again = read_text(&["enqueue", "popAll", "enqueue"].map(operation).concat());
    assert_eq!((again.queued, again.queue_emptied), (1, true));
    let mut joined = read_text(&operation("enqueue"));
    joined.extend(again);
    assert_eq!((joined.queued, joined.queue_emptied), (1, true));
}

#[test]
fn an_interrupt_is_seen_with_its_time() {
    let reading = read_sample("interrupt-esc.jsonl");
    assert_eq!(reading.interrupted_at, clock::parse_rfc3339("2026-11-15T08:52:56.470Z"));
    let quoted = json!({"type": "user", "timestamp": "2026-11-15T08:52:56.470Z",
        "message": {"content": [{"type": "text", "text": "why does it say [Request interrupted by user]?"}]}});
    assert_eq!(read_text(&format!("{quoted}\n")).interrupted_at, None);
    let said = json!({"type": "assistant", "message": {"content": [{"type": "text", "text": "[Request interrupted by user"}]}});
    assert_eq!(read_text(&format!("{said}\n")).interrupted_at, None);
}

#[test]
fn the_clients_own_goal_is_active_until_it_is_met() {
    let text = fs_err::read_to_string(sample("native-goal.jsonl")).unwrap();
    assert_eq!(read_text(&text).native_goal, Some(NativeGoal::Over));
    let last = text.rfind("\"goal_status\"").unwrap();
    let before = &text[..=text[..last].rfind('\n').unwrap()];
    let active = NativeGoal::Active("the file out.txt exists".into());
    assert_eq!(read_text(before).native_goal, Some(active));
    assert_eq!(read_sample("rewind.jsonl").native_goal, None);
}

#[test]
fn a_token_field_that_is_no_whole_number_is_reported_by_name() {
    let fine = json!({"input_tokens": 5, "output_tokens": 6, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 8,
        "cache_creation": {"ephemeral_1h_input_tokens": 2}, "service_tier": null, "iterations": null});
    let first = reply("ok", START, [1, 1, 0, 0]);
    let offset = first.len() as u64;
    for field in ["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"] {
        for wrong in [json!(-1), json!(1.5), json!("12"), json!(true), json!([]), json!({}), json!(1_u64 << 60)] {
            let mut usage = fine.clone();
            usage[field] = wrong.clone();
            let reading = read_text(&format!("{first}{}", reply_with_usage("bad", START, &usage)));
            let expected = InvalidField { field, response_id: "bad".into(), offset };
            assert_eq!(reading.invalid, Some(expected), "{field} {wrong}");
            assert_eq!((totals(&reading), reading.broken_lines), ((1, 1, 1, 0, 0), 0));
        }
        for absent in [json!(null), json!(0)] {
            let mut usage = fine.clone();
            usage[field] = absent;
            assert_eq!(read_text(&reply_with_usage("ok", START, &usage)).invalid, None);
        }
    }
    let whole = &read_text(&reply_with_usage("m", START, &fine)).responses[0];
    let whole = whole.tokens;
    let numbers = (whole.input, whole.output, whole.cache_creation, whole.cache_creation_1h, whole.cache_read);
    assert_eq!(numbers, (5, 6, 7, 2, 8));
}

#[test]
fn a_synthetic_message_is_never_malformed() {
    let usage = json!({"input_tokens": null, "output_tokens": "?", "service_tier": null});
    let line = reply_with_usage("x", START, &usage).replace("claude-opus-4-8", "<synthetic>");
    let reading = read_text(&line);
    assert_eq!((totals(&reading), reading.invalid), ((0, 0, 0, 0, 0), None));
}

/// The client writes compact JSON with an id, a model and a time. Other writers are counted all the same.
#[test]
fn a_response_counts_however_its_line_is_formatted() {
    let line = reply("m1", START, [10, 5, 0, 0]);
    let spaced = line.replace("\":", "\": ").replace(",\"", ", \"");
    let value: Value = serde_json::from_str(&line).unwrap();
    let without = |path: &[&str]| {
        let mut value = value.clone();
        for pointer in path {
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            value.pointer_mut(parent).unwrap().as_object_mut().unwrap().shift_remove(key);
        }
        format!("{value}\n")
    };
    for (name, line, id) in [
        ("spaces", spaced, "m1"),
        ("no model", without(&["/message/model"]), "m1"),
        ("no request id", without(&["/requestId"]), "m1"),
        ("no content", without(&["/message/content"]), "m1"),
        ("no message id", without(&["/message/id"]), "req-m1"),
        ("only a uuid", without(&["/message/id", "/requestId"]), "uuid-m1"),
    ] {
        let reading = read_text(&line);
        assert_eq!(totals(&reading), (1, 10, 5, 0, 0), "{name}");
        assert_eq!(reading.responses[0].id, id, "{name}");
    }
}

/// Where the line would need decoding, no tokens may be lost: neither in hooks nor in the report.
#[test]
fn a_response_with_escapes_in_its_line_counts() {
    let usage = json!({"input_tokens": 3, "output_tokens": 5});
    for (timestamp, model) in [("2026-11-\\ion", "m"), ("2026-11-15T10:00:00Z", "a\"b")] {
        let message = json!({"id": "m1", "model": model, "usage": usage});
        let line = json!({"type": "assistant", "timestamp": timestamp, "message": message}).to_string() + "\n";
        assert_eq!(totals(&read_text(&line)), (1, 3, 5, 0, 0), "{line}");
        assert_eq!(read_text(&line).responses, counts_of(&line).responses, "{line}");
    }
}

fn counts_of(text: &str) -> Reading {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("session.jsonl");
    fs_err::write(&path, text).unwrap();
    read_counts(&path, &Position::default()).unwrap()
}

#[test]
fn the_short_way_counts_what_the_long_way_counts() {
    for (name, expected) in SAMPLES {
        let whole = read_sample(name);
        let counts = read_counts(&sample(name), &Position::default()).unwrap();
        assert_eq!(totals(&counts), expected, "{name}");
        assert_eq!(counts.responses, whole.responses, "{name}");
        assert_eq!(counts.position, whole.position, "{name}");
    }
    let line = reply("m1", START, [10, 5, 3, 4]);
    let usage = |from: &str, to: &str| line.replace(from, to);
    for odd in [
        usage("\":", "\" : "),
        usage("m1", "m\\u0031"),
        usage("claude-opus-4-8", "<synthetic>"),
        usage("\"assistant\"", "\"user\""),
        usage("\"assistant\"", "\"\\u0061ssistant\""),
        usage(":10", ":-1"),
        usage(":10", ":1.0"),
        usage(":10", ":\"10\""),
        usage(":10", ":null"),
        usage(":10", ":9007199254740993"),
        usage(":10", ":10,\"cache_creation\":{\"ephemeral_1h_input_tokens\":2}"),
        usage(":10", ":10,\"cache_creation\":null"),
        usage(":10", ":10,\"cache_creation\":[1]"),
        usage("\"text of m1\"", "\"\\\"usage\\\":{\\\"input_tokens\\\":99}\""),
        usage("\"text of m1\"", "\"x\",\"usage\":{\"input_tokens\":99}"),
        usage("\"usage\":{", "\"usage\":null,\"x\":{"),
        usage("\"id\":\"m1\",", ""),
        usage("\"id\":\"m1\",", "\"id\":null,"),
        usage("}\n", "\n"),
        usage("}\n", "}}\n"),
        usage("{\"type\"", "{\"message\":5,\"type\""),
        line.clone() + &line[..40],
    ] {
        let (counts, whole) = (counts_of(&odd), read_text(&odd));
        assert_eq!(counts.responses, whole.responses, "{odd}");
        assert_eq!(counts.invalid, whole.invalid, "{odd}");
    }
}

#[test]
fn the_short_way_finds_the_directory_of_a_session() {
    let line = reply("m1", START, [1, 1, 0, 0]);
    let with = |cwd: &str| line.replacen('{', &format!("{{\"cwd\":{cwd},"), 1);
    assert_eq!(counts_of(&with("\"/a b\\\"c\\u00e9\"")).cwd.as_deref(), Some("/a b\"cé"));
    assert_eq!(counts_of(&(with("5") + &with("\"/x\""))).cwd.as_deref(), Some("/x"));
    assert_eq!(counts_of(&line).cwd, None);
}

#[test]
fn speed_and_service_tier_decide_the_price() {
    let usage = |speed: Value, tier: Value| json!({"input_tokens": 1, "output_tokens": 1, "speed": speed, "service_tier": tier});
    for (speed, service_tier, expected) in [
        (json!("standard"), json!("standard"), Tier::Standard),
        (json!(null), json!(null), Tier::Standard),
        (json!("fast"), json!("standard"), Tier::Fast),
        (json!("fast"), json!(null), Tier::Fast),
        (json!("standard"), json!("batch"), Tier::Batch),
        (json!(null), json!("priority"), Tier::Priority),
        (json!("fast"), json!("batch"), Tier::Unknown),
        (json!("turbo"), json!("standard"), Tier::Unknown),
        (json!("standard"), json!("gold"), Tier::Unknown),
        (json!(7), json!("standard"), Tier::Unknown),
    ] {
        let line = reply_with_usage("m1", START, &usage(speed, service_tier));
        assert_eq!(read_text(&line).responses[0].tier, expected, "{line}");
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("session.jsonl");
        fs_err::write(&path, &line).unwrap();
        assert_eq!(read_counts(&path, &Position::default()).unwrap().responses[0].tier, expected, "{line}");
        assert_eq!(last_model(&path).as_deref(), Some("claude-opus-4-8"));
    }
}

#[test]
fn a_response_belongs_to_what_the_client_attributes_it_to() {
    let path = sample("tools-mcp-subagent/bd216a1f-d1a9-49dd-94fd-e2d7b4b540e6.jsonl");
    for read in [read, read_counts] {
        let reading = read(&path, &Position::default()).unwrap();
        assert!(reading.responses.iter().any(|response| response.tool == "plugin:labplug:labmcp"));
        let agent = path.with_extension("").join("subagents/agent-ae13b9d0730311a9c.jsonl");
        let reading = read(&agent, &Position::default()).unwrap();
        assert!(reading.responses.iter().all(|response| response.agent_type == "labplug:labagent"));
    }
}
