//! The text format of Prometheus, version 0.0.4.

use std::fmt::Write as _;

use super::family::Family;

pub(super) fn render(families: &[Family]) -> String {
    let mut page = String::new();
    for Family { spec, samples } in families {
        // Writing to a string cannot fail.
        let _ = writeln!(page, "# HELP {} {}", spec.name, escaped(spec.help, false));
        let _ = writeln!(page, "# TYPE {} {}", spec.name, spec.kind);
        for sample in samples {
            let pair = |(label, value): (&&str, &String)| format!("{label}=\"{}\"", escaped(value, true));
            let pairs: Vec<String> = spec.labels.iter().zip(&sample.values).map(pair).collect();
            let labels = if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) };
            let _ = writeln!(page, "{}{labels} {}", spec.name, sample.value);
        }
    }
    page
}

/// A help text has escapes for backslash and line feed; the value of a label also for the quote.
fn escaped(text: &str, is_label: bool) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '"' if is_label => escaped.push_str("\\\""),
            other => escaped.push(other),
        }
    }
    escaped
}
