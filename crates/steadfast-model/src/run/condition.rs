//! When a stage runs: a small typed expression over the results of earlier stages and the files of the project. It is
//! parsed when the plan is made, so a stored plan holds no text to be parsed again, and nothing in it reaches a shell.

use serde::{Deserialize, Serialize};

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
