//! Rollouts of older clients, which wrote running totals and no records, and copied the history of a fork into its
//! file.

use super::*;

/// A capture as a client before `token_usage_record` would have written it.
fn without_records(name: &str) -> Vec<Value> {
    let mut lines = sample_lines(name);
    lines.retain(|line| line["type"] != "token_usage_record");
    lines
}

/// A total of input, cached and output tokens, and the last response's.
pub(super) fn total(at: &str, total: [i64; 3], last: [i64; 3]) -> Value {
    let usage = |[input, cached, output]: [i64; 3]| {
        json!({"input_tokens": input, "cached_input_tokens": cached, "output_tokens": output,
            "reasoning_output_tokens": 0, "total_tokens": input + output})
    };
    json!({"timestamp": at, "type": "event_msg", "payload": {"type": "token_count", "info":
        {"total_token_usage": usage(total), "last_token_usage": usage(last), "model_context_window": 258_400}}})
}

fn meta(at: &str, id: &str, forked_from: Option<&str>) -> Value {
    json!({"timestamp": at, "type": "session_meta", "payload": {"id": id, "timestamp": at, "forked_from_id": forked_from}})
}

fn turn(at: &str, turn_id: Option<&str>) -> Value {
    json!({"timestamp": at, "type": "turn_context", "payload": {"turn_id": turn_id, "model": "gpt-5.2-codex"}})
}

fn said(at: &str) -> Value {
    json!({"timestamp": at, "type": "response_item", "payload": {"type": "message", "role": "assistant",
        "content": [{"type": "output_text", "text": "so"}]}})
}

const PARENT: &str = "01a1de4d-469f-7d62-b479-f9ee8e1e36ee";
const PARENTS_TURN: &str = "01a1de4d-4703-7543-82e6-9ff931567171";
const FORK: &str = "01a1de4d-8506-73f3-a0d0-b3a5d72f1bcf";
const OWN_TURN: &str = "01a1de4d-855c-7921-8394-aa37abd326da";

/// A fork whose file begins with its parent's history. `copied_at` is the time of the copied lines.
pub(super) fn fork_with_history(copied_at: [&str; 4], turn_ids: bool) -> Vec<Value> {
    let [one, two, three, four] = copied_at;
    let id = |id: &'static str| turn_ids.then_some(id);
    vec![
        meta("2026-11-15T08:23:04.768Z", FORK, Some(PARENT)),
        meta(one, PARENT, None),
        turn(two, id(PARENTS_TURN)),
        said(two),
        total(three, [1_000, 100, 50], [1_000, 100, 50]),
        said(three),
        total(four, [4_300, 3_900, 52], [3_300, 3_800, 2]),
        turn("2026-11-15T08:23:06.816Z", id(OWN_TURN)),
        said("2026-11-15T08:23:07.463Z"),
        total("2026-11-15T08:23:07.464Z", [5_900, 5_400, 64], [1_600, 1_500, 12]),
        total("2026-11-15T08:23:09.464Z", [5_900, 5_400, 64], [1_600, 1_500, 12]),
    ]
}

pub(super) const REWRITTEN: [&str; 4] =
    ["2026-11-15T08:23:04.768Z", "2026-11-15T08:23:04.769Z", "2026-11-15T08:23:05.201Z", "2026-11-15T08:23:05.640Z"];
const KEPT: [&str; 4] =
    ["2026-11-15T08:22:48.870Z", "2026-11-15T08:22:48.947Z", "2026-11-15T08:22:50.138Z", "2026-11-15T08:22:57.811Z"];

#[test]
fn differences_of_the_totals_tell_the_same_as_records() {
    for (name, expected) in SAMPLES {
        let lines = without_records(name);
        assert_eq!(totals(&read_lines(&lines)), expected, "{name}");
    }
}

#[test]
fn what_a_total_adds_has_a_name_that_does_not_change() {
    let ids = |lines: &[Value]| -> Vec<String> { read_lines(lines).responses.into_iter().map(|r| r.id).collect() };
    let lines = without_records("tool-call.jsonl");
    let known = ids(&lines);
    let thread = "01a1de4f-1a32-7830-a4c2-a007e02dedb9";
    assert_eq!(known, ["#0.1000.100.30", "#0.2200.1100.50"].map(|total| format!("{thread}{total}")));
    assert_eq!(ids(&lines), known);
    // Without a `session_meta`, the file's own name has to do.
    let nameless = ids(&lines[1..]);
    assert_eq!(nameless[0], "rollout#0.1000.100.30");
}

#[test]
fn a_total_that_repeats_adds_nothing() {
    let at = "2026-11-15T08:00:00Z";
    let reading = read_lines(&[
        meta(at, "t", None),
        total(at, [100, 40, 10], [100, 40, 10]),
        total(at, [100, 40, 10], [100, 40, 10]),
        total(at, [250, 90, 15], [150, 50, 5]),
        total(at, [250, 90, 15], [0, 0, 0]),
    ]);
    assert_eq!(totals(&reading), (2, 160, 15, 0, 90));
}

#[test]
fn totals_that_shrink_count_from_zero_again() {
    let at = "2026-11-15T08:00:00Z";
    let lines = [
        meta(at, "t", None),
        total(at, [100, 40, 10], [100, 40, 10]),
        // The client does this when the context is full: all counts are gone, and `last` is an estimate.
        total(at, [0, 0, 0], [0, 0, 0]),
        total(at, [100, 40, 10], [100, 40, 10]),
        total(at, [20, 0, 3], [20, 0, 3]),
        total(at, [50, 20, 5], [30, 20, 2]),
    ];
    let reading = read_lines(&lines);
    let spent: Vec<(i64, i64, i64)> =
        reading.responses.iter().map(|r| r.tokens).map(|t| (t.input, t.cache_read, t.output)).collect();
    assert_eq!(spent, [(60, 40, 10), (60, 40, 10), (20, 0, 3), (10, 20, 2)]);
    let reading = read_lines(&[
        lines[0].clone(),
        lines[5].clone(),
        json!({"timestamp": at, "type": "event_msg", "payload":
            {"type": "token_count", "info": {"total_token_usage": {"input_tokens": 7, "output_tokens": 1}}}}),
    ]);
    assert_eq!(totals(&reading), (2, 37, 6, 0, 20));
}

#[test]
fn a_total_that_a_compaction_lowers_adds_what_the_client_says_of_the_last_response() {
    let at = "2026-11-15T08:00:00Z";
    let [k10, k100] = [10_000, 100_000].map(|input| [input, 0, 0]);
    let lines = [
        meta(at, "t", None),
        total(at, k100, k100),
        total(at, [300_000, 0, 0], [200_000, 0, 0]),
        total(at, [250_000, 0, 0], k10),
        total(at, [250_000, 0, 0], k10),
        total(at, [260_000, 0, 0], k10),
        // Lowered once more, with nothing new to say.
        total(at, [240_000, 0, 0], k10),
    ];
    assert_eq!(totals(&read_lines(&lines)), (4, 320_000, 0, 0, 0));
    // The same beside a record.
    let record = json!({"timestamp": at, "type": "token_usage_record", "payload": {"turn_id": "u", "response_id": "r",
        "usage": {"input_tokens": 10_000, "output_tokens": 0}}});
    let [first, lowered] = [[110_000, 0, 0], [50_000, 0, 0]].map(|sum| total(at, sum, k10));
    let lines = [lines[0].clone(), lines[1].clone(), said(at), record, first, lowered];
    assert_eq!(totals(&read_lines(&lines)), (2, 110_000, 0, 0, 0));
}

#[test]
fn history_copied_into_a_fork_is_not_spent_again() {
    for (copied_at, turn_ids) in [(REWRITTEN, true), (REWRITTEN, false), (KEPT, true), (KEPT, false)] {
        let lines = fork_with_history(copied_at, turn_ids);
        let reading = read_lines(&lines);
        assert_eq!(totals(&reading), (1, 100, 12, 0, 1_500), "{copied_at:?} {turn_ids}");
        // Neither is it when the fork counts from zero, does not say that it is one, or has no totals of its parent.
        let mut from_zero = lines.clone();
        from_zero.splice(9.., [total("2026-11-15T08:23:07.464Z", [1_600, 1_500, 12], [1_600, 1_500, 12])]);
        assert_eq!(totals(&read_lines(&from_zero)), (1, 100, 12, 0, 1_500));
        let mut unsaid = lines.clone();
        unsaid[0] = meta("2026-11-15T08:23:04.768Z", FORK, None);
        assert_eq!(totals(&read_lines(&unsaid)), (1, 100, 12, 0, 1_500));
        let mut without_totals = lines;
        without_totals.remove(6);
        without_totals.remove(4);
        assert_eq!(totals(&read_lines(&without_totals)), (1, 100, 12, 0, 1_500));
    }
}

#[test]
fn records_copied_into_a_fork_are_not_spent_again() {
    let record = |thread: &str, turn: &str, response: &str| {
        json!({"timestamp": "2026-11-15T08:23:04.900Z", "type": "token_usage_record", "payload": {"thread_id": thread,
            "turn_id": turn, "response_id": response, "usage": {"input_tokens": 10, "output_tokens": 1}}})
    };
    let mut lines = fork_with_history(REWRITTEN, true);
    lines.insert(9, record(FORK, OWN_TURN, "r2"));
    lines.insert(4, record(PARENT, PARENTS_TURN, "r1"));
    let reading = read_lines(&lines);
    assert_eq!(totals(&reading), (1, 10, 1, 0, 0), "the record counts, not the total");
    // Even where nothing says that the lines are copies.
    let strangers = [
        meta(REWRITTEN[0], FORK, None),
        record(PARENT, PARENTS_TURN, "r1"),
        total(REWRITTEN[1], [10, 0, 1], [10, 0, 1]),
    ];
    assert_eq!(read_lines(&strangers).responses, []);
}

#[test]
fn the_first_total_of_a_fork_is_its_parents_until_the_model_answers() {
    let at = "2026-11-15T08:23:06Z";
    let lines = [
        meta(at, FORK, Some(PARENT)),
        turn(at, Some(OWN_TURN)),
        total(at, [4_300, 3_900, 52], [1_500, 1_400, 12]),
        said(at),
        total(at, [5_900, 5_400, 64], [1_600, 1_500, 12]),
    ];
    assert_eq!(totals(&read_lines(&lines)), (1, 100, 12, 0, 1_500));
    assert_eq!(read_lines(&lines[..3]).responses, []);
}

#[test]
fn a_session_that_an_older_and_a_newer_client_wrote_is_counted_once() {
    let name = "stop-block-then-resume.jsonl";
    let expected = totals(&read_sample(name));
    let lines = sample_lines(name);
    let records: Vec<usize> = (0..lines.len()).filter(|at| lines[*at]["type"] == "token_usage_record").collect();
    // Every choice of which of the four responses have a record.
    for choice in 0..1_usize << records.len() {
        let mut lines = lines.clone();
        for (bit, at) in records.iter().enumerate().rev() {
            if choice & (1 << bit) == 0 {
                lines.remove(*at);
            }
        }
        assert_eq!(totals(&read_lines(&lines)), expected, "{choice:b}");
    }
}

#[test]
fn a_total_that_is_no_whole_number_is_reported_by_name() {
    let mut lines = without_records("simple.jsonl");
    lines[11]["payload"]["info"]["total_token_usage"]["output_tokens"] = json!("50");
    let reading = read_lines(&lines);
    let invalid = reading.invalid.unwrap();
    assert_eq!((invalid.field, reading.responses.len()), ("output_tokens", 0));
    assert_eq!(invalid.offset, file_of(&lines[..11]).len() as u64);
}

fn subagent_meta(at: &str, id: &str) -> Value {
    json!({"timestamp": at, "type": "session_meta", "payload": {"id": id, "timestamp": at, "source": {"subagent":
        {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1, "agent_role": "explorer"}}}}})
}

/// The parent's totals again, at once and without its `session_meta`, then 100 in and 20 out of its own.
#[test]
fn totals_that_a_subagent_repeats_are_not_spent_again() {
    let start = "2026-11-15T08:23:04.768Z";
    let own = [
        total("2026-11-15T08:23:09.464Z", [1_600, 160, 320], [100, 10, 20]),
        total("2026-11-15T08:23:09.470Z", [1_600, 160, 320], [100, 10, 20]),
    ];
    let copied = [total(start, [700, 70, 140], [700, 70, 140]), total(start, [1_500, 150, 300], [800, 80, 160])];
    for turns in [vec![], vec![turn(start, None)]] {
        let lines = [&[subagent_meta(start, FORK)][..], &turns, &copied, &own].concat();
        let reading = read_lines(&lines);
        assert_eq!(totals(&reading), (1, 90, 20, 0, 10), "{turns:?}");
        assert_eq!(reading.parent.as_deref(), Some(PARENT));
        assert_eq!(reading.responses[0].agent_type, "explorer");
    }
    // One that repeats nothing counts from its first response on.
    let first = total("2026-11-15T08:23:09.464Z", [100, 10, 20], [100, 10, 20]);
    let reading =
        read_lines(&[subagent_meta(start, FORK), turn(start, Some(OWN_TURN)), said("2026-11-15T08:23:05.000Z"), first]);
    assert_eq!(totals(&reading), (1, 90, 20, 0, 10));
}

#[test]
fn usage_without_totals_counts_once() {
    let last = |at: &str, input: i64, output: i64| {
        json!({"timestamp": at, "type": "event_msg", "payload": {"type": "token_count", "info":
            {"last_token_usage": {"input_tokens": input, "output_tokens": output}, "model": "gpt-5.4"}}})
    };
    let at = "2026-11-15T08:23:04.768Z";
    let lines = [
        meta(at, PARENT, None),
        said(at),
        last(at, 10, 5),
        last(at, 10, 5),
        said(at),
        last(at, 10, 5),
        last(at, 20, 10),
    ];
    let reading = read_lines(&lines);
    assert_eq!(totals(&reading), (3, 40, 20, 0, 0));
    assert!(reading.responses.iter().all(|response| response.model == "gpt-5.4"));
}
