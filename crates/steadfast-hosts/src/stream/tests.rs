//! What the real clients printed (captures of Claude Code 2.1.197 and Codex 0.166.0), and streams that were cut.

use serde_json::json;

use super::*;
use steadfast_model::reading::Tokens;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/samples");

fn read_text(host: Host, text: &str) -> AgentStream {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs_err::write(file.path(), text).unwrap();
    read(host, file.path()).unwrap()
}

fn codex_sample(name: &str) -> AgentStream {
    let sample: Value =
        serde_json::from_str(&fs_err::read_to_string(format!("{SAMPLES}/codex/exec/{name}.json")).unwrap()).unwrap();
    let lines: Vec<String> = sample["stdout_events"].as_array().unwrap().iter().map(Value::to_string).collect();
    read_text(Host::Codex, &lines.join("\n"))
}

fn claude_files(roots: &[PathBuf], session_id: &str) -> Vec<PathBuf> {
    let session = SessionSpan { session_id, subagents: &[], started_at_ms: 0, ended_at_ms: 0 };
    (adapter(Host::Claude).session_files)(roots, &session)
}

#[test]
fn claude_names_session_answer_and_usage() {
    let stream = read(Host::Claude, Path::new(&format!("{SAMPLES}/claude/stream/tools-mcp-subagent.jsonl"))).unwrap();
    let expected = AgentStream {
        session_id: Some("bd216a1f-d1a9-49dd-94fd-e2d7b4b540e6".into()),
        final_text: Some("All done.".into()),
        is_complete: true,
        usage: Some(AttemptUsage {
            tokens: Tokens { input: 212, output: 176, cache_creation: 456, cache_creation_1h: 0, cache_read: 4018 },
            cost_micros: 10_319,
            cost_unknown: false,
            tokens_unknown: false,
        }),
        ..AgentStream::default()
    };
    assert_eq!(stream, expected);
}

#[test]
fn a_stream_of_claude_that_was_cut_is_not_complete() {
    let whole = fs_err::read_to_string(format!("{SAMPLES}/claude/stream/tools-mcp-subagent.jsonl")).unwrap();
    let cut = whole.lines().filter(|line| !line.contains(r#""type": "result""#)).collect::<Vec<_>>().join("\n");
    let stream = read_text(Host::Claude, &format!("{cut}\n{{\"type\":\"result\",\"resu"));
    assert!(!stream.is_complete && stream.error.is_none());
    assert_eq!(stream.final_text.as_deref(), Some("All done."));
    assert_eq!(stream.session_id.as_deref(), Some("bd216a1f-d1a9-49dd-94fd-e2d7b4b540e6"));
}

#[test]
fn errors_of_claude_are_in_its_result() {
    let result = |fields: Value| {
        let mut event = json!({"type": "result", "subtype": "success", "is_error": true, "session_id": "s"});
        for (name, value) in fields.as_object().unwrap() {
            event[name] = value.clone();
        }
        event.to_string()
    };
    let limit = json!({"type": "rate_limit_event", "session_id": "s",
        "rate_limit_info": {"status": "rejected", "resetsAt": 1_794_751_200, "rateLimitType": "five_hour"}});
    let synthetic = json!({"type": "assistant", "error": "rate_limit", "message": {"model": "<synthetic>",
        "content": [{"type": "text", "text": "You've hit your limit"}]}});
    let refused = result(json!({"result": "You've hit your limit · resets 3pm (UTC)", "api_error_status": 429}));
    let error = |stream: &AgentStream| stream.error.clone().unwrap();

    let stream = read_text(Host::Claude, &format!("{limit}\n{synthetic}\n{refused}\n"));
    assert_eq!(
        (error(&stream), stream.final_text),
        (
            StreamError {
                message: "You've hit your limit · resets 3pm (UTC)".into(),
                status: Some(429),
                limit: Some(Some(1_794_751_200_000)),
            },
            None
        )
    );
    let stream = read_text(Host::Claude, &result(json!({"subtype": "error_max_turns", "errors": ["too many turns"]})));
    assert_eq!(error(&stream).message, "too many turns");
    // A warning that a limit is near, or one that was lifted, is no failure.
    let allowed = json!({"type": "rate_limit_event", "rate_limit_info": {"status": "allowed_warning", "resetsAt": 1}});
    let fine = result(json!({"is_error": false, "result": "done"}));
    let stream = read_text(Host::Claude, &format!("{limit}\n{allowed}\n{fine}"));
    assert_eq!((stream.error, stream.final_text.as_deref(), stream.is_complete), (None, Some("done"), true));
}

#[test]
fn codex_names_thread_answer_and_usage() {
    let stream = codex_sample("reasoning-and-phases");
    let expected = AgentStream {
        session_id: Some("01a1de6d-7d14-7a51-8ca0-0e17ea94c97d".into()),
        final_text: Some("final here".into()),
        is_complete: true,
        usage: Some(AttemptUsage {
            tokens: Tokens { input: 40, output: 30, cache_read: 10, ..Tokens::default() },
            cost_micros: 0,
            cost_unknown: true,
            tokens_unknown: false,
        }),
        ..AgentStream::default()
    };
    assert_eq!(stream, expected);
    assert_eq!(codex_sample("subagent").subagents, ["01a1de6d-d1b0-7823-85ff-5713a83898d4"]);
    let blocked = codex_sample("prompt-blocked-by-hook");
    assert_eq!((blocked.is_complete, blocked.final_text, blocked.error), (true, None, None));
    let interrupted = codex_sample("sigint");
    assert_eq!((interrupted.is_complete, interrupted.error), (false, None));
}

#[test]
fn failures_of_codex_are_told_apart() {
    use crate::trouble::{Trouble, judge};
    let noon = 1_794_744_000_000;
    for (name, expected) in [
        ("fail-400", Trouble::Other),
        ("fail-500", Trouble::Transient),
        ("fail-stream-cut", Trouble::Transient),
        ("fail-context-window", Trouble::Other),
    ] {
        let error = codex_sample(name).error.unwrap();
        assert_eq!(judge(&error.message, error.status, noon), expected, "{name}");
    }
    let error = codex_sample("fail-usage-limit").error.unwrap();
    let Trouble::UsageLimit { until_ms: Some(_) } = judge(&error.message, error.status, noon) else {
        panic!("{error:?}")
    };
}

#[test]
fn of_a_flood_the_beginning_and_the_end_are_read() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let start = json!({"type": "thread.started", "thread_id": "t1"}).to_string();
    let noise = format!("{}\n", json!({"type": "item.completed", "item": {"type": "x", "text": "y".repeat(1000)}}));
    let end = json!({"type": "item.completed", "item": {"type": "agent_message", "text": "\u{1b}[31mdone\u{0}"}});
    let text = format!("{start}\n{}{end}\n{}", noise.repeat(20_000), json!({"type": "turn.completed"}));
    fs_err::write(file.path(), text).unwrap();
    let stream = read(Host::Codex, file.path()).unwrap();
    assert_eq!(
        (stream.session_id.as_deref(), stream.final_text.as_deref(), stream.is_complete),
        (Some("t1"), Some("\u{1b}[31mdone\u{0}"), true)
    );
}

#[test]
fn usage_comes_from_the_sessions_own_files() {
    let root = tempfile::tempdir().unwrap();
    let project = root.path().join("-home-x");
    let sample = Path::new(SAMPLES).join("claude/transcripts/tools-mcp-subagent");
    let session = "bd216a1f-d1a9-49dd-94fd-e2d7b4b540e6";
    fs_err::create_dir_all(project.join(session).join("subagents")).unwrap();
    fs_err::copy(sample.join(format!("{session}.jsonl")), project.join(format!("{session}.jsonl"))).unwrap();
    for file in fs_err::read_dir(sample.join(session).join("subagents")).unwrap() {
        let file = file.unwrap();
        fs_err::copy(file.path(), project.join(session).join("subagents").join(file.file_name())).unwrap();
    }
    let roots = [root.path().to_owned()];
    assert_eq!(claude_files(&roots, session).len(), 2);
    assert!(claude_files(&roots, "../x").is_empty());
    let files = claude_files(&roots, session);
    // The same numbers as the stream of that very run.
    let all = |from| usage_of(Host::Claude, &files, from);
    assert_eq!(
        all(0).map(|usage| (usage.tokens.input, usage.tokens.output, usage.tokens.cache_creation)),
        Some((212, 176, 456))
    );
    assert_eq!(all(i64::MAX / 2), None);
}

#[test]
fn rollouts_are_found_by_thread_and_by_root() {
    let root = tempfile::tempdir().unwrap();
    let day = root.path().join("2026/11/15");
    let meta = |id: &str, root: &str| {
        json!({"type": "session_meta", "payload": {"id": id, "session_id": root}}).to_string() + "\n"
    };
    let ids: Vec<String> = (0..4).map(|n| format!("01936f0e-5d3a-7c11-8a11-00000000000{n}")).collect();
    fs_err::create_dir_all(&day).unwrap();
    for (id, session) in [(&ids[0], &ids[0]), (&ids[1], &ids[0]), (&ids[2], &ids[2]), (&ids[3], &ids[3])] {
        fs_err::write(day.join(format!("rollout-2026-11-15T10-00-00-{id}.jsonl")), meta(id, session)).unwrap();
    }
    let noon = 1_794_744_000_000;
    let roots = [root.path().to_owned()];
    let found = (adapter(Host::Codex).session_files)(
        &roots,
        &SessionSpan { session_id: &ids[0], subagents: &ids[3..], started_at_ms: noon, ended_at_ms: noon + 1000 },
    );
    let mut names: Vec<String> =
        found.iter().map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    let expected: Vec<String> =
        [0, 1, 3].iter().map(|at: &usize| format!("rollout-2026-11-15T10-00-00-{}", ids[*at])).collect();
    assert_eq!(names, expected);
}

#[test]
fn last_words_of_many_megabytes_and_with_broken_bytes_are_still_last_words() {
    let result =
        |text: &str| json!({"type": "result", "subtype": "success", "is_error": false, "result": text}).to_string();
    let long = "x".repeat(11 << 20);
    let stream = read_text(Host::Claude, &format!("a warning\n{}\n", result(&long)));
    assert!(stream.is_complete && stream.final_text == Some(long));

    let file = tempfile::NamedTempFile::new().unwrap();
    let mut bytes = result("broken @ here").into_bytes();
    let at = bytes.iter().position(|byte| *byte == b'@').unwrap();
    bytes[at] = 0xff;
    fs_err::write(file.path(), bytes).unwrap();
    let stream = read(Host::Claude, file.path()).unwrap();
    assert_eq!((stream.is_complete, stream.final_text.as_deref()), (true, Some("broken \u{fffd} here")));
}

#[test]
fn people_see_words_and_tools_and_nothing_of_the_machinery() {
    let claude = |line: &str| readable(Host::Claude, line);
    let codex = |line: &str| readable(Host::Codex, line);
    let said = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I look.\u001b[2J"},{"type":"tool_use","name":"Bash","input":{"command":"cargo test\nls"}}]}}"#;
    assert_eq!(claude(said).as_deref(), Some("I look.\n· Bash cargo test …"));
    assert_eq!(claude(r#"{"type":"system","subtype":"init"}"#), None);
    assert_eq!(claude(r#"{"type":"result","is_error":true,"result":"limit"}"#).as_deref(), Some("! limit"));
    assert_eq!(claude("plain \u{7}words").as_deref(), Some("plain words"));
    let ran = r#"{"type":"item.completed","item":{"type":"command_execution","command":"ls -l"}}"#;
    assert_eq!(codex(ran).as_deref(), Some("· ls -l"));
    let changed = r#"{"type":"item.completed","item":{"type":"file_change","changes":[{"path":"a"},{"path":"b"}]}}"#;
    assert_eq!(codex(changed).as_deref(), Some("· changed a, b"));
    assert_eq!(codex(r#"{"type":"turn.completed","usage":{}}"#), None);
}
