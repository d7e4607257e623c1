//! However a rollout is cut into pieces, reading them one after the other gives what reading it at once does.

use proptest::prelude::*;

use super::older::{REWRITTEN, fork_with_history};
use super::*;
// A result that is read without its call has another fingerprint.
use crate::codex::rollout::read_counts as read;

/// Every capture, each also as an older client would have written it, and forks that hold their parent's history.
fn files() -> Vec<String> {
    let mut files = Vec::new();
    for (name, _) in SAMPLES {
        let mut lines = sample_lines(name);
        files.push(file_of(&lines));
        lines.retain(|line| line["type"] != "token_usage_record");
        files.push(file_of(&lines));
    }
    files.push(file_of(&fork_with_history(REWRITTEN, true)));
    files.push(file_of(&fork_with_history(REWRITTEN, false)));
    files
}

fn read_in_pieces(path: &Path, bytes: &[u8], cuts: &[usize]) -> Reading {
    let mut reading = Reading::default();
    for cut in cuts.iter().copied().chain([bytes.len()]) {
        fs_err::write(path, &bytes[..cut]).unwrap();
        let later = read(path, &reading.position).unwrap();
        reading.extend(later);
    }
    reading
}

#[test]
fn a_file_cut_at_any_byte_tells_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rollout.jsonl");
    for lines in [fork_with_history(REWRITTEN, true), fork_with_history(REWRITTEN, false)] {
        let text = file_of(&lines);
        fs_err::write(&path, &text).unwrap();
        let whole = read(&path, &Position::default()).unwrap();
        for cut in 0..text.len() {
            assert_eq!(read_in_pieces(&path, text.as_bytes(), &[cut]), whole, "cut at {cut}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_file_cut_into_any_pieces_tells_the_same(
        file in any::<prop::sample::Index>(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let text = file.get(&files()).clone();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.sort_unstable();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rollout.jsonl");
        fs_err::write(&path, &text).unwrap();
        let whole = read(&path, &Position::default()).unwrap();
        prop_assert_eq!(read_in_pieces(&path, text.as_bytes(), &cuts), whole);
    }

    /// A goal that starts in the middle of a session sets the position to the end of the file without reading it.
    #[test]
    fn what_follows_a_position_that_remembers_nothing_is_read_as_well(
        file in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let text = file.get(&files()).clone();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rollout.jsonl");
        fs_err::write(&path, &text.as_bytes()[..cut.index(text.len() + 1)]).unwrap();
        let position = read(&path, &Position::default()).unwrap().position;
        let forgetful = lines::end_of_file(&path).unwrap();
        prop_assert_eq!((&*forgetful.carry, forgetful.offset), ("", position.offset));
        fs_err::write(&path, &text).unwrap();
        prop_assert_eq!(read(&path, &forgetful).unwrap(), read(&path, &position).unwrap());
    }

    /// A file that is replaced by another is read anew, with nothing remembered of the first.
    #[test]
    fn a_rewritten_file_is_read_from_its_start(
        before in any::<prop::sample::Index>(),
        after in any::<prop::sample::Index>(),
    ) {
        let files = files();
        let (before, after) = (before.get(&files), after.get(&files));
        prop_assume!(before != after);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rollout.jsonl");
        fs_err::write(&path, before).unwrap();
        let position = read(&path, &Position::default()).unwrap().position;
        fs_err::write(&path, after).unwrap();
        let again = read(&path, &position).unwrap();
        let fresh = read(&path, &Position::default()).unwrap();
        prop_assert!(again.rewritten);
        prop_assert_eq!(again.responses, fresh.responses);
        prop_assert_eq!(again.position, fresh.position);
    }
}
