//! Reading session files in pieces, while they are written, after they were rewritten, and with broken lines.

use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::lines::ANCHOR_BYTES;
use super::*;
use crate::claude::transcript;
use crate::lines;
use steadfast_model::testing::{START, append, reply};

struct File {
    _directory: TempDir,
    path: PathBuf,
}

impl File {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("session.jsonl");
        Self { _directory: directory, path }
    }

    fn holding(bytes: &[u8]) -> Self {
        let file = Self::new();
        fs_err::write(&file.path, bytes).unwrap();
        file
    }

    fn read(&self, from: &Position) -> Reading {
        transcript::read(&self.path, from).unwrap()
    }
}

/// Responses, tokens and broken lines of a reading.
fn summary(reading: &Reading) -> (usize, i64, i64) {
    let tokens = reading.responses.iter().map(|response| response.tokens.charged()).sum();
    (reading.responses.len(), tokens, reading.broken_lines)
}

fn position(text: &str) -> Position {
    let from = text.len().saturating_sub(usize::try_from(ANCHOR_BYTES).unwrap());
    Position { offset: text.len() as u64, anchor: Anchor::of(&text.as_bytes()[from..]), carry: String::new() }
}

#[test]
fn a_missing_file_reads_as_empty() {
    let file = File::new();
    assert_eq!(file.read(&Position::default()), Reading::default());
    assert_eq!(end_of_file(&file.path).unwrap(), Position::default());
}

/// Bug 5 of the plugin: a line that was being written was skipped for good.
#[test]
fn a_partial_last_line_is_waited_for() {
    let first = reply("m1", START, [10, 1, 0, 0]);
    let second = reply("m2", START, [20, 2, 0, 0]);
    let (begun, rest) = second.split_at(second.len() / 2);
    let file = File::holding(format!("{first}{begun}").as_bytes());
    let reading = file.read(&Position::default());
    assert_eq!((summary(&reading), &reading.position), ((1, 11, 0), &position(&first)));

    let nothing = file.read(&reading.position);
    assert_eq!(nothing, Reading::nothing_new(reading.position.clone()));
    append(&file.path, rest);
    let later = file.read(&reading.position);
    assert_eq!(summary(&later), (1, 22, 0));
    assert_eq!(later.position, position(&format!("{first}{second}")));
}

/// Bug 11 of the plugin: one broken line froze everything after it.
#[test]
fn broken_lines_are_counted_and_skipped() {
    let good = reply("m1", START, [10, 1, 0, 0]);
    let cut = &good[..good.len() - 20];
    let other = reply("m2", START, [20, 2, 0, 0]);
    let zeros = "\0".repeat(40);
    let text = format!("{cut}\n{good}not json at all\n{zeros}\n\n{{\"type\":\"queue-operation\",\n{other}");
    let reading = File::holding(text.as_bytes()).read(&Position::default());
    assert_eq!(summary(&reading), (2, 33, 5));
    let bytes = [b"\xff\xfe\xfd\n", good.as_bytes()].concat();
    assert_eq!(summary(&File::holding(&bytes).read(&Position::default())), (1, 11, 1));
}

#[test]
fn the_last_and_largest_record_of_a_response_counts_at_the_time_of_the_first() {
    let lines = [
        reply("m1", START, [10, 1, 0, 0]),
        reply("m1", START + 5_000, [10, 40, 7, 9]),
        reply("m1", START + 9_000, [10, 3, 0, 0]),
    ];
    let reading = File::holding(lines.concat().as_bytes()).read(&Position::default());
    let expected = Response {
        id: "m1".into(),
        model: "claude-opus-4-8".into(),
        tokens: Tokens { input: 10, output: 40, cache_creation: 7, cache_read: 9, ..Tokens::default() },
        at_ms: START,
    };
    assert_eq!(reading.responses, [expected]);
}

#[test]
fn a_rewritten_file_is_read_again_from_its_start() {
    let [a, b, c] = ["a", "b", "c"].map(|id| reply(id, START, [1, 0, 0, 0]));
    let file = File::holding(format!("{a}{b}").as_bytes());
    let seen = file.read(&Position::default()).position;
    for (name, text) in [
        ("shorter", a.clone()),
        ("as long", format!("{b}{a}")),
        ("longer", format!("{c}{c}{a}{b}")),
        ("empty", String::new()),
    ] {
        fs_err::write(&file.path, &text).unwrap();
        let reading = file.read(&seen);
        assert!(reading.rewritten, "{name}");
        assert_eq!(reading.position, position(&text), "{name}");
        let whole = file.read(&Position::default());
        assert_eq!(reading.responses, whole.responses, "{name}");
    }
    fs_err::write(&file.path, format!("{a}{b}{c}")).unwrap();
    let appended = file.read(&seen);
    assert_eq!((appended.rewritten, summary(&appended)), (false, (1, 1, 0)));
}

#[test]
fn the_end_of_a_file_is_the_end_of_its_last_whole_line() {
    let long = "x".repeat(200_000);
    for (text, expected) in [
        ("", ""),
        ("no newline yet", ""),
        ("one\n", "one\n"),
        ("one\ntwo\n", "one\ntwo\n"),
        ("one\ntwo\nthr", "one\ntwo\n"),
        (&format!("one\n{long}"), "one\n"),
        (&long, ""),
        (&format!("{long}\n{long}\n"), &format!("{long}\n{long}\n")),
    ] {
        let file = File::holding(text.as_bytes());
        let end = end_of_file(&file.path).unwrap();
        assert_eq!(end, position(expected), "{} bytes", text.len());
        assert_eq!(file.read(&end), Reading::nothing_new(end));
    }
}

#[test]
fn joining_a_later_reading_loses_nothing() {
    let queued = "{\"type\":\"queue-operation\",\"operation\":\"enqueue\"}\n";
    let first = format!("{}{queued}", reply("m1", START, [10, 1, 0, 0]));
    let second = format!("{}broken\n{queued}", reply("m1", START, [10, 5, 0, 0]));
    let file = File::holding(first.as_bytes());
    let mut joined = file.read(&Position::default());
    append(&file.path, &second);
    joined.extend(file.read(&joined.position));
    assert_eq!(joined, file.read(&Position::default()));
}

/// Lines of many kinds, in any order: a few responses with repeated records, broken lines, other records.
fn lines() -> impl Strategy<Value = Vec<String>> {
    let response = (0..6_u8, 0..500_i64, 0..300_i64)
        .prop_map(|(id, output, input)| reply(&format!("m{id}"), START, [input, output, 3, 4]));
    let other = prop_oneof![
        Just("{\"type\":\"queue-operation\",\"operation\":\"enqueue\"}\n".to_owned()),
        Just("{\"type\":\"queue-operation\",\"operation\":\"dequeue\"}\n".to_owned()),
        Just("{\"type\":\"user\",\"message\":{\"content\":\"ä\u{1F600}\"}}\n".to_owned()),
        Just("{\"broken\n".to_owned()),
    ];
    proptest::collection::vec(prop_oneof![3 => response, 1 => other], 0..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn reading_in_pieces_gives_the_same_as_reading_at_once(lines in lines(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let text = lines.concat();
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let whole = File::holding(bytes).read(&Position::default());

        let file = File::new();
        let mut pieces = Reading::default();
        for cut in cuts {
            fs_err::write(&file.path, &bytes[..cut]).unwrap();
            pieces.extend(file.read(&pieces.position));
        }
        prop_assert_eq!(pieces, whole);
    }

    #[test]
    fn reading_a_rewritten_file_never_counts_a_response_twice(lines in lines(), keep in any::<prop::sample::Index>()) {
        let text = lines.concat();
        let file = File::holding(text.as_bytes());
        let mut reading = file.read(&Position::default());
        let once = summary(&reading);
        let kept: String = lines[keep.index(lines.len() + 1).min(lines.len())..].concat();
        fs_err::write(&file.path, &kept).unwrap();
        reading.extend(file.read(&reading.position));
        prop_assert_eq!(summary(&reading).0, once.0);
        prop_assert_eq!(summary(&reading).1, once.1);
    }
}

#[test]
fn a_line_that_is_too_long_is_skipped_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file.jsonl");
    let mut file = fs_err::File::create(&path).unwrap();
    let long = LONGEST_LINE as u64 + 5;
    std::io::Write::write_all(&mut file, b"first\n").unwrap();
    file.seek(SeekFrom::Start(6 + long)).unwrap();
    std::io::Write::write_all(&mut file, b"\nlast\n").unwrap();
    let read = |from: &Position| {
        let mut lines = Vec::new();
        let reading = read_file(&path, from, |line, offset, _| lines.push((line.to_vec(), offset))).unwrap();
        (lines, reading)
    };
    let (lines, reading) = read(&Position::default());
    assert_eq!(lines, [(b"first\n".to_vec(), 0), (b"last\n".to_vec(), 7 + long)]);
    assert_eq!((reading.broken_lines, reading.position.offset), (1, 12 + long));

    // Without its end, it is left behind too; what is written later is read.
    file.set_len(12 + 2 * long).unwrap();
    let (lines, reading) = read(&reading.position);
    assert_eq!((lines.len(), reading.broken_lines, reading.position.offset), (0, 1, 12 + 2 * long));
    file.seek(SeekFrom::End(0)).unwrap();
    std::io::Write::write_all(&mut file, b" its end\nnew\n").unwrap();
    let (lines, reading) = read(&reading.position);
    assert!(!reading.rewritten && lines.last().is_some_and(|(line, _)| line == b"new\n"), "{}", lines.len());
    assert_eq!(end_of_file(&path).unwrap().offset, reading.position.offset);
}
