//! Turns a stored text into one line of a snapshot: printable, bounded, and without the text of the goal, which has its
//! own section.

use steadfast_model::directive::{self, Directive};
use steadfast_model::memory::SessionMemory;
use steadfast_model::text;

/// The longest text of one item, in characters, before it is escaped.
pub(super) const LONGEST: usize = 200;
/// Stands where an item repeats the goal.
const GOAL: &str = "[the session goal]";

/// Shortens texts and replaces the goals in them.
pub(super) struct Cleaner {
    /// On one line each, the longest first: one may contain another.
    objectives: Vec<String>,
}

impl Cleaner {
    pub(super) fn of(memory: &SessionMemory) -> Self {
        let goal = memory.goal.as_ref().map(|goal| &goal.objective);
        let stated = memory.stated.as_ref().map(|stated| &stated.objective);
        let mut objectives: Vec<String> = [goal, stated].into_iter().flatten().map(|text| one_line(text)).collect();
        objectives.retain(|objective| !objective.is_empty());
        objectives.sort_by_key(|objective| std::cmp::Reverse(objective.len()));
        objectives.dedup();
        Self { objectives }
    }

    /// The text on one line, at most [`LONGEST`] characters, not escaped yet.
    pub(super) fn line(&self, text: &str) -> String {
        text::cut(&self.without_goal(text::head(text, self.bytes_that_matter())), LONGEST)
    }

    /// The same, but of a text whose end matters more, like a path.
    pub(super) fn end_of_line(&self, text: &str) -> String {
        let line = self.without_goal(text::tail(text, self.bytes_that_matter()));
        let excess = line.chars().count().saturating_sub(LONGEST);
        if excess == 0 { line } else { ['…'].into_iter().chain(line.chars().skip(excess + 1)).collect() }
    }

    /// Far more than one line shows, and enough to find a goal in it.
    fn bytes_that_matter(&self) -> usize {
        20 * LONGEST + 2 * self.objectives.first().map_or(0, String::len)
    }

    fn without_goal(&self, text: &str) -> String {
        let mut line = one_line(text);
        if let Some((_, Directive::State(stated) | Directive::Edit(Some(stated)))) = directive::read(&line)
            && self.objectives.iter().any(|objective| objective == stated)
        {
            let before = line.len() - stated.len();
            line.truncate(before);
            return line + GOAL;
        }
        // A single short word does not mean the goal.
        for objective in self.objectives.iter().filter(|text| text.len() >= 12 || text.contains(' ')) {
            line = line.replace(objective.as_str(), GOAL);
        }
        line
    }
}

/// The value of an attribute: one line, bounded, escaped, quotes too.
pub(super) fn attribute(value: &str) -> String {
    text::escape_xml(&text::cut(&one_line(value), 80)).replace('"', "&quot;")
}

/// The text on one line: without control sequences, with single blanks.
pub(super) fn one_line(text: &str) -> String {
    text::printable(text).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaner(objectives: &[&str]) -> Cleaner {
        Cleaner { objectives: objectives.iter().map(|text| (*text).to_owned()).collect() }
    }

    #[test]
    fn control_sequences_are_removed() {
        for (text, line) in [
            ("\u{1b}[1;31merror\u{1b}[0m: no\r\n  such\tfile\u{0}", "error: no such file"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}]never ended\nnext line", "next line"),
            ("\u{1b}(Bplain", "plain"),
            ("ends in \u{1b}", "ends in"),
            ("\u{1b}[目", "目"),
        ] {
            assert_eq!(one_line(text), line, "{text:?}");
        }
    }

    #[test]
    fn the_goal_is_not_repeated() {
        let cleaner = cleaner(&["Ship the v2 release and inform all users", "Ship the v2 release", "go"]);
        for (text, line) in [
            ("goal: Ship the\nv2 release", "goal: [the session goal]"),
            ("/goal go", "/goal [the session goal]"),
            ("go ahead", "go ahead"),
            ("Please: Ship  the v2 release.", "Please: [the session goal]."),
            ("I said: Ship the v2 release and inform all users!", "I said: [the session goal]!"),
        ] {
            assert_eq!(cleaner.line(text), line, "{text:?}");
        }
    }

    #[test]
    fn items_are_bounded_where_it_hurts_least() {
        let cleaner = cleaner(&[]);
        let path = format!("/{}/name.rs", "目".repeat(300));
        assert!(cleaner.end_of_line(&path).starts_with('…') && cleaner.end_of_line(&path).ends_with("目/name.rs"));
        assert_eq!(cleaner.end_of_line(&path).chars().count(), LONGEST);
        assert_eq!(cleaner.line(&path).chars().count(), LONGEST);
        assert_eq!(attribute("a\"b\n<c>"), "a&quot;b &lt;c&gt;");
    }
}
