//! Removes secrets from lines that come one after the other.

use steadfast_model::redact::redact;

/// Whether secrets are shown, and where the last line was.
#[derive(Debug)]
pub struct Clean {
    shows_secrets: bool,
    /// Inside of a private key, whose lines look like any other data.
    in_key: bool,
}

impl Clean {
    /// For the lines of one output, from its beginning.
    pub fn unless(shows_secrets: bool) -> Self {
        Self { shows_secrets, in_key: false }
    }

    /// Looks at the lines before those to show: a private key may begin in them.
    pub(super) fn after(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.lines(lines);
        self
    }

    /// Another file follows.
    pub fn begin_anew(&mut self) {
        self.in_key = false;
    }

    /// The lines to show.
    pub fn lines(&mut self, lines: impl IntoIterator<Item = String>) -> Vec<String> {
        lines.into_iter().filter_map(|line| self.line(&line)).collect()
    }

    /// The line to show; `None` for the rest of a private key.
    pub fn line(&mut self, line: &str) -> Option<String> {
        if self.shows_secrets {
            return Some(line.to_owned());
        }
        let begins =
            line.rfind("-----BEGIN ").filter(|at| line.get(*at..).is_some_and(|rest| rest.contains("PRIVATE KEY")));
        let ends = line.rfind("-----END ");
        let was_in_key = self.in_key;
        self.in_key = (begins.is_some() && begins > ends) || (was_in_key && ends.is_none());
        if was_in_key {
            return None;
        }
        // A line may be several, as a message of an agent is.
        Some(redact(line).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_removed_also_over_several_lines() {
        let key = concat!("ghp_", "0123456789abcdefghijABCDEFGHIJ012345");
        let lines = [
            "one",
            &format!("use {key}"),
            "-----BEGIN RSA PRIVATE KEY-----",
            "MIIEow",
            "-----END RSA PRIVATE KEY-----",
            "two",
        ];
        let mut clean = Clean::unless(false);
        let shown: Vec<String> = lines.iter().filter_map(|line| clean.line(line)).collect();
        assert_eq!(shown, ["one", "use [redacted]", "[redacted]", "two"]);
        let mut raw = Clean::unless(true);
        assert_eq!(lines.iter().filter_map(|line| raw.line(line)).count(), 6);
    }
}
