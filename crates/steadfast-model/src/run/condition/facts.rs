//! The facts that a condition can use, and which comparisons make sense for each.

use super::{Comparison, Operand};

/// The beginning of the names of marker fields.
pub(super) const FIELDS: &str = "fields.";

const FACTS: [(&str, FactKind); 6] = [
    ("status", FactKind::Words(&["completed", "failed", "skipped"])),
    ("reason", FactKind::Text),
    ("exit_code", FactKind::Number),
    ("decision", FactKind::Words(&["continue", "stop", "error"])),
    ("summary", FactKind::Text),
    ("iterations", FactKind::Number),
];

#[derive(Debug, Clone, Copy)]
enum FactKind {
    /// One of these.
    Words(&'static [&'static str]),
    Text,
    Number,
    /// A marker field: a text, or a number where it is compared with one.
    Field,
}

/// The stage and the fact in a name such as `review.fields.risk`.
pub(super) fn split(name: &str) -> Option<(&str, &str)> {
    // A stage may have a dot in its name, so both are looked for from the end.
    let by_field = name.rfind(".fields.").map(|dot| name.split_at(dot));
    let by_field = by_field.and_then(|(stage, rest)| Some((stage, rest.strip_prefix('.')?)));
    let is_field = |(stage, fact): &(&str, &str)| {
        let field = fact.strip_prefix(FIELDS).unwrap_or_default();
        !stage.is_empty() && !field.is_empty() && !field.contains('.')
    };
    by_field.filter(is_field).or_else(|| {
        let (stage, fact) = name.rsplit_once('.')?;
        (!stage.is_empty() && FACTS.iter().any(|(known, _)| *known == fact)).then_some((stage, fact))
    })
}

pub(super) fn known() -> String {
    let names: Vec<&str> = FACTS.iter().map(|(name, _)| *name).collect();
    format!("{}, fields.NAME", names.join(", "))
}

fn kind(operand: &Operand) -> FactKind {
    match operand {
        Operand::Text(_) => FactKind::Text,
        Operand::Number(_) => FactKind::Number,
        Operand::Fact { fact, .. } => {
            FACTS.iter().find(|(name, _)| name == fact).map_or(FactKind::Field, |(_, kind)| *kind)
        }
    }
}

/// What is wrong with a comparison, and how to fix it.
pub(super) fn check(left: &Operand, comparison: Comparison, right: &Operand) -> Result<(), (String, String)> {
    let is_fixed = |operand: &Operand| !matches!(operand, Operand::Fact { .. });
    if is_fixed(left) && is_fixed(right) {
        let hint = "compare a fact of a stage, such as `tests.exit_code == 0`";
        return Err(("both sides are fixed values".to_owned(), hint.to_owned()));
    }
    for (fact, other) in [(left, right), (right, left)] {
        if let (FactKind::Words(words), Operand::Text(text)) = (kind(fact), other)
            && comparison != Comparison::Contains
            && !words.contains(&text.as_str())
        {
            return Err((format!("`{fact}` is never \"{text}\""), format!("it is one of {}", words.join(", "))));
        }
    }
    let is_number = |operand: &Operand| matches!(kind(operand), FactKind::Number);
    let is_text = |operand: &Operand| matches!(kind(operand), FactKind::Text | FactKind::Words(_));
    for (number, other) in [(left, right), (right, left)] {
        if is_number(number) && is_text(other) {
            let hint = format!("compare {} with a {}", describe(number), example(number));
            return Err((format!("`{number}` is a number and `{other}` is a text"), hint));
        }
    }
    if comparison.is_of_size() && [left, right].into_iter().any(is_text) {
        let hint = "texts are compared with `==`, `!=` and `contains`".to_owned();
        return Err((format!("`{}` compares numbers only", comparison.symbol()), hint));
    }
    if comparison == Comparison::Contains && [left, right].into_iter().any(is_number) {
        return Err(("`contains` compares texts only".to_owned(), "numbers are compared with `==` or `<`".to_owned()));
    }
    Ok(())
}

fn describe(operand: &Operand) -> String {
    format!("`{operand}`")
}

fn example(operand: &Operand) -> &'static str {
    if matches!(operand, Operand::Number(_)) { "fact that is a number" } else { "number without quotes, such as 0" }
}
