//! Classifies an agent's error message: a used-up plan and when it resets, a transient error, or one that only the user
//! can fix. The phrases are those of Claude Code, Codex and the services behind them.

mod reset;

use steadfast_model::clock::Millis;

pub use reset::{FARTHEST_RESET, reset_at};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The plan is used up until this time, if one is named.
    UsageLimit {
        until_ms: Option<Millis>,
    },
    /// Overloaded, network, server error.
    Transient,
    /// Login, billing or permission: trying again changes nothing.
    Hopeless,
    Other,
}

/// Judges an error message, with the HTTP status where one is known. Only for text from an agent's error channel:
/// in the text of its work the same words mean nothing.
pub fn judge(message: &str, status: Option<u16>, now: Millis) -> Trouble {
    let lower = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if speaks_of_usage_limit(message) && (status == Some(429) || (status.is_none() && says(PLANS))) {
        return Trouble::UsageLimit { until_ms: reset_at(message, now) };
    }
    match status {
        Some(408 | 409 | 429 | 500..=599) => return Trouble::Transient,
        Some(401..=403) => return Trouble::Hopeless,
        _ => {}
    }
    if says(HOPELESS) {
        Trouble::Hopeless
    } else if says(TRANSIENT) {
        Trouble::Transient
    } else {
        Trouble::Other
    }
}

/// Without a status, "limit" can mean anything: only these are limits of an account.
const PLANS: &[&str] = &[
    "usage limit",
    "usage_limit",
    "usage credits",
    "extra usage",
    "insufficient_quota",
    "hit your",
    "reached your",
    "exceeded your",
    "hour limit",
    "daily limit",
    "weekly limit",
    "monthly limit",
    "session limit",
    "spend limit",
];

const HOPELESS: &[&str] = &[
    "invalid api key",
    "please run /login",
    "not logged in",
    "authentication_error",
    "authentication failed",
    "401 unauthorized",
    "oauth token",
    "credit balance is too low",
    "cannot be used with root",
];

const TRANSIENT: &[&str] = &[
    "overloaded",
    "high demand",
    "temporarily",
    "try again later",
    "too many requests",
    "rate limit",
    "rate_limit",
    "stream disconnected",
    "stream closed",
    "stream error",
    "connection",
    "network",
    "socket hang up",
    "econnreset",
    "econnrefused",
    "enotfound",
    "etimedout",
    "eai_again",
    "fetch failed",
    "timed out",
    "timeout",
    "internal server error",
    "bad gateway",
    "service unavailable",
    "gateway time",
    "error sending request",
    "api error: 5",
    "status 5",
];

/// How clients begin to say that a plan is used up.
const NOTICES: &[&str] = &[
    "you've hit your",
    "you've reached your",
    "you've exceeded your",
    "you're out of",
    "claude ai usage limit",
    "claude usage limit",
    "usage limit reached",
    "5-hour limit reached",
    "daily limit",
    "weekly limit",
    "monthly limit",
    "session limit",
    "opus weekly limit",
    "sonnet weekly limit",
];
const LONGEST_NOTICE: usize = 300;

/// Judges one line among the words of any program: whether it is a client's notice of a used-up plan and nothing else.
/// In the middle of other words the same message is only quoted.
pub fn judge_notice(line: &str, now: Millis) -> Option<Trouble> {
    let lower = line.to_lowercase().replace('\u{2019}', "'").replace("you have ", "you've ");
    let words = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    let words = words.strip_prefix("error:").map_or(words, str::trim_start);
    let is_notice = NOTICES.iter().any(|notice| words.starts_with(notice)) && words.chars().count() <= LONGEST_NOTICE;
    Some(judge(line, None, now)).filter(|trouble| is_notice && matches!(trouble, Trouble::UsageLimit { .. }))
}

/// Whether a message says that an account's plan is used up, and not merely that requests come too fast.
pub fn speaks_of_usage_limit(message: &str) -> bool {
    let lower = message.to_lowercase();
    let says = |word: &&str| lower.contains(word);
    if [
        "usage_limit_reached",
        "usage_limit_exceeded",
        "insufficient_quota",
        "out of usage credits",
        "out of extra usage",
    ]
    .iter()
    .any(says)
    {
        return true;
    }
    // Requests or tokens a minute are a matter of seconds.
    let too_fast = ["per min", "per sec", "(tpm)", "(rpm)"].iter().any(says);
    let used_up = ["reset", "reached", "hit your", "exceeded your"].iter().any(says);
    lower.contains("limit") && used_up && !too_fast
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Millis = 1_794_744_000_000; // 2026-11-15T12:00:00Z

    #[test]
    fn troubles_are_distinguished() {
        let limit = |until: Option<Millis>| Trouble::UsageLimit { until_ms: until };
        let table = [
            ("You've hit your limit · resets 3pm (UTC)", Some(429), limit(Some(NOON + 3 * 3_600_000))),
            ("5-hour limit reached", None, limit(None)),
            ("You're out of extra usage · resets 8pm (America/Chicago)", None, limit(Some(NOON + 14 * 3_600_000))),
            ("You're out of extra usage · resets 3pm (UTC)", Some(429), limit(Some(NOON + 3 * 3_600_000))),
            ("usage_limit_reached", Some(429), limit(None)),
            ("error: iteration limit reached", None, Trouble::Other),
            ("API Error: Request rejected (429) · scripted 429", Some(429), Trouble::Transient),
            (
                "Rate limit reached for gpt-5 on tokens per min (TPM). Please try again in 1.2s.",
                None,
                Trouble::Transient,
            ),
            ("We’re currently experiencing high demand, which may cause temporary errors.", None, Trouble::Transient),
            (
                "stream disconnected before completion: stream closed before response.completed",
                None,
                Trouble::Transient,
            ),
            ("API Error: 529 {\"type\":\"overloaded_error\"}", Some(529), Trouble::Transient),
            ("API Error: 500 Internal server error", None, Trouble::Transient),
            ("Invalid API key · Please run /login", Some(401), Trouble::Hopeless),
            ("Invalid API key · Please run /login", None, Trouble::Hopeless),
            ("{\"error\": {\"message\": \"bad scripted\"}}", None, Trouble::Other),
            ("Codex ran out of room in the model's context window.", None, Trouble::Other),
            ("", None, Trouble::Other),
        ];
        for (message, status, expected) in table {
            assert_eq!(judge(message, status, NOON), expected, "{message}");
        }
    }

    #[test]
    fn a_notice_is_a_line_of_its_own() {
        for (line, is_notice) in [
            ("You’ve hit your limit · resets 3pm (UTC)", true),
            ("  ⚠ Error: You've hit your usage limit. Try again in 2 hours.", true),
            ("Claude AI usage limit reached|1794751200", true),
            ("5-hour limit reached ∙ resets 3pm", true),
            ("expected \"ok\", got \"5-hour limit reached; resets 3am.\"", false),
            ("test quota: 5-hour limit reached; resets 3am.", false),
            ("You've hit your stride", false),
            ("", false),
        ] {
            assert_eq!(judge_notice(line, NOON).is_some(), is_notice, "{line}");
        }
    }
}
