//! When a stage runs: a small typed expression over the results of earlier stages and the files of the project. It is
//! parsed when the plan is made, so a stored plan holds no text to be parsed again, and nothing in it reaches a shell.
//!
//! ```text
//! review.decision == "stop" and (tests.exit_code != 0 or not exists("docs/PLAN.md"))
//! ```

mod facts;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use parse::{ConditionError, parse};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Whether a file or directory of the project exists.
    Exists(String),
    Compare(Operand, Comparison, Operand),
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operand {
    Text(String),
    Number(i64),
    /// A fact about the last iteration of an earlier stage, or about the stage itself.
    Fact {
        stage: String,
        fact: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    More,
    AtLeast,
    Contains,
}

/// The value of a fact. `status` is the word of the stage's status, `reason` the word of its reason without the detail,
/// `decision` the word of the last result; `exit_code` and `iterations` are numbers; `fields.NAME` is text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactValue {
    Text(String),
    Number(i64),
}

impl Condition {
    /// Tests the condition. `fact` returns a fact by the stage's name and the fact's (`status`, `fields.risk`), or `None`
    /// if there is none; `exists` looks for a path of the project.
    ///
    /// A comparison with a missing fact is false, except `!=`, which is true: a stage that was skipped did not exit with
    /// 0. A field is compared as a number where the other side is one; a field that is no number is like a missing one.
    /// An error is a fact of another type than the plan was checked for.
    pub fn evaluate(
        &self,
        fact: impl Fn(&str, &str) -> Option<FactValue>,
        exists: impl Fn(&str) -> bool,
    ) -> Result<bool, String> {
        self.test(&fact, &exists)
    }

    fn test(
        &self,
        fact: &dyn Fn(&str, &str) -> Option<FactValue>,
        exists: &dyn Fn(&str) -> bool,
    ) -> Result<bool, String> {
        match self {
            Self::Exists(path) => Ok(exists(path)),
            Self::Not(inner) => inner.test(fact, exists).map(|holds| !holds),
            Self::Compare(left, comparison, right) => match (left.value(fact), right.value(fact)) {
                (Some(left), Some(right)) => comparison.holds(&left, &right).map_err(|what| format!("{self}: {what}")),
                _ => Ok(*comparison == Comparison::NotEqual),
            },
            Self::All(parts) => {
                for part in parts {
                    if !part.test(fact, exists)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(parts) => {
                for part in parts {
                    if part.test(fact, exists)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// The names of the stages whose facts it uses.
    pub fn stages(&self) -> BTreeSet<&str> {
        match self {
            Self::Exists(_) => BTreeSet::new(),
            Self::Not(inner) => inner.stages(),
            Self::Compare(left, _, right) => [left, right].into_iter().filter_map(Operand::stage).collect(),
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::stages).collect(),
        }
    }

    /// The marker fields that it uses, each with its stage.
    pub fn fields(&self) -> BTreeSet<(&str, &str)> {
        match self {
            Self::Exists(_) => BTreeSet::new(),
            Self::Not(inner) => inner.fields(),
            Self::Compare(left, _, right) => [left, right].into_iter().filter_map(Operand::field).collect(),
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::fields).collect(),
        }
    }
}

impl Operand {
    fn value(&self, fact: &dyn Fn(&str, &str) -> Option<FactValue>) -> Option<FactValue> {
        match self {
            Self::Text(text) => Some(FactValue::Text(text.clone())),
            Self::Number(number) => Some(FactValue::Number(*number)),
            Self::Fact { stage, fact: name } => fact(stage, name),
        }
    }

    fn stage(&self) -> Option<&str> {
        if let Self::Fact { stage, .. } = self { Some(stage) } else { None }
    }

    fn field(&self) -> Option<(&str, &str)> {
        let Self::Fact { stage, fact } = self else { return None };
        fact.strip_prefix(facts::FIELDS).map(|field| (stage.as_str(), field))
    }
}

impl Comparison {
    const ALL: [(Self, &str); 7] = [
        (Self::Equal, "=="),
        (Self::NotEqual, "!="),
        (Self::AtMost, "<="),
        (Self::AtLeast, ">="),
        (Self::Less, "<"),
        (Self::More, ">"),
        (Self::Contains, "contains"),
    ];

    fn symbol(self) -> &'static str {
        Self::ALL.iter().find(|(comparison, _)| *comparison == self).map_or("", |(_, symbol)| symbol)
    }

    /// Whether it compares by size, which only numbers have.
    fn is_of_size(self) -> bool {
        matches!(self, Self::Less | Self::AtMost | Self::More | Self::AtLeast)
    }

    fn holds(self, left: &FactValue, right: &FactValue) -> Result<bool, String> {
        use FactValue::{Number, Text};
        let number = |text: &str| text.trim().parse::<i64>().ok();
        let numbers = match (left, right) {
            (Number(left), Number(right)) => Some((*left, *right)),
            (Number(left), Text(right)) => number(right).map(|right| (*left, right)),
            (Text(left), Number(right)) => number(left).map(|left| (left, *right)),
            (Text(left), Text(right)) if self.is_of_size() => number(left).zip(number(right)),
            (Text(left), Text(right)) => {
                return Ok(match self {
                    Self::NotEqual => left != right,
                    Self::Contains => left.contains(right.as_str()),
                    _ => left == right,
                });
            }
        };
        match (self, numbers) {
            (Self::Contains, _) => Err("`contains` needs two texts".to_owned()),
            (_, None) => Ok(self == Self::NotEqual),
            (Self::Equal, Some((left, right))) => Ok(left == right),
            (Self::NotEqual, Some((left, right))) => Ok(left != right),
            (Self::Less, Some((left, right))) => Ok(left < right),
            (Self::AtMost, Some((left, right))) => Ok(left <= right),
            (Self::More, Some((left, right))) => Ok(left > right),
            (Self::AtLeast, Some((left, right))) => Ok(left >= right),
        }
    }
}

/// The text that [`parse`] reads, unless escapes make it too long.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |f: &mut fmt::Formatter<'_>, parts: &[Self], between: &str| {
            for (number, part) in parts.iter().enumerate() {
                if number > 0 {
                    f.write_str(between)?;
                }
                match part {
                    Self::All(_) | Self::Any(_) => write!(f, "({part})")?,
                    _ => write!(f, "{part}")?,
                }
            }
            Ok(())
        };
        match self {
            Self::Exists(path) => write!(f, "exists({})", Quoted(path)),
            Self::Compare(left, comparison, right) => write!(f, "{left} {} {right}", comparison.symbol()),
            Self::Not(inner) if matches!(**inner, Self::All(_) | Self::Any(_)) => write!(f, "not ({inner})"),
            Self::Not(inner) => write!(f, "not {inner}"),
            Self::All(parts) => join(f, parts, " and "),
            Self::Any(parts) => join(f, parts, " or "),
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{}", Quoted(text)),
            Self::Number(number) => write!(f, "{number}"),
            Self::Fact { stage, fact } => write!(f, "{stage}.{fact}"),
        }
    }
}

struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('\\', "\\\\").replace('"', "\\\""))
    }
}
