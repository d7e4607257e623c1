//! `[notify]`: which messages go where, and when. A wrong value is refused with the form that is right.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use steadfast_model::outbox::MessageKind;
use steadfast_model::outbox::quiet::QuietHours;
use strum::IntoEnumIterator as _;

use crate::env_vars;

#[derive(Clone, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct NotifyConfig {
    /// Whether messages show on the desktop; if absent, those about goals, and about runs that no terminal shows.
    pub desktop: Option<bool>,
    /// A program and its arguments; empty for none. It is never given to a shell.
    #[serde(deserialize_with = "command")]
    pub command: Vec<String>,
    #[serde(deserialize_with = "webhook")]
    pub webhook: Option<String>,
    /// What webhooks are signed with.
    pub webhook_secret: Option<String>,
    /// The environment variable that has it.
    pub webhook_secret_env: Option<String>,
    #[serde(deserialize_with = "events")]
    pub events: Vec<MessageKind>,
    #[serde(deserialize_with = "quiet_hours")]
    pub quiet_hours: Option<QuietHours>,
    /// What the rest after a failed delivery grows from.
    pub back_off_ms: i64,
}

impl Default for NotifyConfig {
    fn default() -> Self {
        Self {
            desktop: None,
            command: Vec::new(),
            webhook: None,
            webhook_secret: None,
            webhook_secret_env: None,
            events: MessageKind::iter().collect(),
            quiet_hours: None,
            back_off_ms: 10_000,
        }
    }
}

/// The address and the secret of a webhook are as good as passwords, so they are never shown.
impl std::fmt::Debug for NotifyConfig {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("NotifyConfig").field("events", &self.events).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the variable {0} of webhook_secret_env is not set")]
pub struct NoSecret(pub String);

impl NotifyConfig {
    /// The secret that webhooks are signed with, if they are.
    pub fn secret(&self) -> Result<Option<String>, NoSecret> {
        match (&self.webhook_secret, &self.webhook_secret_env) {
            (Some(secret), _) => Ok(Some(secret.clone())),
            (None, Some(name)) => env_vars::text(name).map(Some).ok_or_else(|| NoSecret(name.clone())),
            (None, None) => Ok(None),
        }
    }
}

fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let wrong = "`command` is a list of a program and its arguments, such as [\"my-notifier\", \"--urgent\"]";
    let words = Vec::<String>::deserialize(deserializer).map_err(|_| D::Error::custom(wrong))?;
    if words.first().is_some_and(String::is_empty) || words.iter().any(|word| word.contains('\0')) {
        return Err(D::Error::custom(wrong));
    }
    Ok(words)
}

fn webhook<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let url = String::deserialize(deserializer)?;
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let is_host = |rest: &str| !rest.is_empty() && !rest.starts_with(['/', ':', '?', '#']);
    let is_plain = url.chars().all(|c| c.is_ascii_graphic());
    match rest {
        Some(rest) if is_host(rest) && is_plain => Ok(Some(url)),
        None if is_host(&url) && is_plain && !url.contains("://") => {
            Err(D::Error::custom(format!("`webhook` is an address; did you mean \"https://{url}\"?")))
        }
        _ => Err(D::Error::custom("`webhook` is an address such as \"https://example.com/hook\"")),
    }
}

fn events<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<MessageKind>, D::Error> {
    let kind = |word: String| {
        word.parse().map_err(|_| {
            let words: Vec<&str> = MessageKind::iter().map(<&str>::from).collect();
            let nearest = words.iter().min_by_key(|known| strsim::osa_distance(known, &word)).unwrap_or(&"complete");
            let all = words.join(", ");
            D::Error::custom(format!("`events` has `{word}`; did you mean `{nearest}`? It knows {all}"))
        })
    };
    Vec::<String>::deserialize(deserializer)?.into_iter().map(kind).collect()
}

fn quiet_hours<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<QuietHours>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(|error| D::Error::custom(format!("`quiet_hours`: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn notify(text: &str) -> Result<NotifyConfig, String> {
        let read = toml::from_str::<Config>(&format!("[notify]\n{text}\n"));
        read.map(|config| config.notify).map_err(|error| error.to_string())
    }

    #[test]
    fn everything_is_reported_on_the_desktop_unless_the_file_says_otherwise() {
        let config = notify("").unwrap();
        assert_eq!(config, NotifyConfig::default());
        assert_eq!(config.events.len(), MessageKind::iter().count());
        let config = notify(
            "command = ['say', '-v']\nwebhook = 'http://[::1]:80/x?y'\nevents = ['complete', 'run_ended']\n\
             quiet_hours = '22:00-07:00'\nwebhook_secret = 's'",
        )
        .unwrap();
        assert_eq!(config.events, [MessageKind::Complete, MessageKind::RunEnded]);
        assert_eq!((config.command.len(), config.secret()), (2, Ok(Some("s".to_owned()))));
        assert!(!format!("{config:?}").contains("::1"), "addresses are as good as passwords");
    }

    #[test]
    fn a_wrong_value_is_refused_with_the_form_that_is_right() {
        for (text, expected) in [
            ("events = ['compleet']", "did you mean `complete`?"),
            (
                "events = ['limits']",
                "did you mean `limit`? It knows complete, blocked, limit, stalled, refused, run_ended",
            ),
            ("quiet_hours = '22-7'", "`quiet_hours`: `22-7` is no span of hours; write it as `22:00-07:00`"),
            ("webhook = 'example.com/x'", "did you mean \"https://example.com/x\"?"),
            ("webhook = 'ftp://example.com'", "`webhook` is an address such as"),
            ("webhook = 'https://'", "`webhook` is an address such as"),
            ("webhook = \"https://example.com/\\n\"", "`webhook` is an address such as"),
            ("command = 'say hello'", "`command` is a list"),
            ("command = ['']", "`command` is a list"),
        ] {
            let error = notify(text).unwrap_err();
            assert!(error.contains(expected) && error.contains("line 2"), "{text}: {error}");
        }
    }

    #[test]
    fn a_secret_that_is_not_there_is_an_error() {
        let config = notify("webhook_secret_env = 'STEADFAST_NO_SUCH_VARIABLE'").unwrap();
        assert_eq!(config.secret(), Err(NoSecret("STEADFAST_NO_SUCH_VARIABLE".into())));
        assert_eq!(notify("").unwrap().secret(), Ok(None));
    }
}
