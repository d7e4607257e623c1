//! Text from prompts, transcripts and error messages.

use steadfast_hosts::trouble::{self, FARTHEST_RESET, Trouble};
use steadfast_model::directive::{self, Directive};
use steadfast_model::goal::{self, OBJECTIVE_MAX, item};
use steadfast_model::host::{Host, Screen};
use steadfast_model::redact::{MARK, redact};
use steadfast_model::{memory::stated, text};

pub(crate) fn redaction(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let clean = redact(&text).into_owned();
    assert!(clean.len() <= text.len() + 4_096 + MARK.len(), "{} of {} bytes", clean.len(), text.len());
    assert_eq!(redact(&clean), clean, "redacting twice differs, from {text:?}");
}

/// Escaping and cutting.
pub(crate) fn text(data: &[u8]) {
    let given = String::from_utf8_lossy(data);
    let is_shown = |text: &str| !text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t'));

    let escaped = text::escape_xml(&given);
    assert!(is_shown(&escaped) && !escaped.contains(['<', '>']), "{escaped:?}");
    for piece in escaped.split('&').skip(1) {
        assert!(["amp;", "lt;", "gt;"].iter().any(|name| piece.starts_with(name)), "{escaped:?}");
    }
    let printable = text::printable(&given);
    assert!(is_shown(&printable), "{printable:?}");
    assert_eq!(text::printable(&printable), printable);
    let line = text::one_line(&given);
    assert!(!line.contains('\n') && is_shown(&line), "{line:?}");

    for most in [0, 1, 7, 80, 1_000] {
        assert!(text::headline(&given, most).chars().count() <= most.max(1), "headline of {most}");
        assert!(
            text::cut(&given, most).chars().count() <= given.chars().count().min(most.max(1) + 40),
            "cut to {most}"
        );
        assert!(text::columns(&text::cut_to_columns(&given, most)) <= most.max(1), "{most} columns");
        assert!(given.starts_with(text::head(&given, most)));
        assert!(given.ends_with(text::tail(&given, most)));
    }
    for screen in Host::ALL.iter().copied().map(Screen::Client).chain([Screen::Terminal]) {
        screen.spell(&given);
    }
}

/// Goals and items in prompts.
pub(crate) fn prompt(data: &[u8]) {
    let given = String::from_utf8_lossy(data);
    if let Some((_, Directive::State(stated))) = directive::read(&given) {
        assert!(!stated.trim().is_empty() && given.contains(stated));
        stated::kept(stated);
    }
    if let Ok(objective) = goal::objective(&given) {
        assert!((1..=OBJECTIVE_MAX).contains(&objective.chars().count()));
        assert_eq!(goal::objective(&objective).as_deref(), Ok(objective.as_str()));
    }
    let items = item::of_markdown(&given);
    assert!(items.iter().all(|item| !item.trim().is_empty() && given.contains(item.as_str())));
    if let Ok(texts) = item::texts(&items) {
        assert_eq!(item::texts(&texts).as_ref(), Ok(&texts));
    }
}

/// What a client says about a failed turn.
pub(crate) fn error_message(data: &[u8]) {
    const NOW: i64 = 1_800_000_000_000;
    let message = String::from_utf8_lossy(data);
    let reset = trouble::reset_at(&message, NOW);
    assert!(reset.is_none_or(|at| (at - NOW).abs() <= FARTHEST_RESET), "{reset:?}");
    for status in [None, Some(400), Some(429), Some(529)] {
        if let Trouble::UsageLimit { until_ms: Some(until) } = trouble::judge(&message, status, NOW) {
            assert!((until - NOW).abs() <= FARTHEST_RESET, "{until}");
        }
    }
    trouble::judge_notice(&message, NOW);
    trouble::speaks_of_usage_limit(&message);
}
