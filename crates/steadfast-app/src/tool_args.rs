//! The arguments of each tool that models call. Clients get the types as JSON schemas, with the comments of fields as descriptions; every
//! session pays for them, so an argument whose name says it all has none. Bounds are checked when the arguments are
//! converted. `goal_id` is always the expected goal: the call is refused if the session has another one.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use steadfast_model::clock::Millis;
use steadfast_model::goal::budget::{Budget, BudgetSource};
use steadfast_model::goal::item::ITEMS_MAX;
use steadfast_model::goal::wait::{WaitCondition, WaitRequest};
use steadfast_model::goal::{self, NewGoal, UNLIMITED_CONTINUATIONS, UNLIMITED_SECONDS};
use steadfast_model::limit::{Axis, Limits};
use steadfast_model::memory::Category;
use steadfast_model::text;
use strum::IntoStaticStr;

use crate::overview::session::category_names;

const REASON_MAX: usize = 1_000;
const EVIDENCE_MAX: usize = 20;
const EVIDENCE_LENGTH: usize = 500;
const WAIT_MAX: i64 = 604_800;
const LIMIT_MAX: i64 = 50;
const LIMIT_DEFAULT: i64 = 10;
const QUERY_MAX: usize = 400;
/// Far above any real budget, and still exact in millionths.
const USD_MAX: f64 = 1_000_000_000.0;

/// Why arguments are refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArgumentError(String);

impl ArgumentError {
    pub fn hint(&self) -> &'static str {
        "see the tool's input schema"
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetGoal {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateGoal {
    /// In the user's words
    objective: String,
    /// Not with `budget_profile`
    token_budget: Option<i64>,
    budget_profile: Option<ProfileName>,
    max_turns: Option<i64>,
    max_hours: Option<f64>,
    max_usd: Option<f64>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schemars(inline)]
enum ProfileName {
    Quick,
    Standard,
    Deep,
    Overnight,
    Auto,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateGoal {
    pub status: Option<NewStatus>,
    items: Option<Vec<ProofArgument>>,
    pub goal_id: Option<String>,
    /// Default `self_update`: your own audit
    pub completed_by: Option<Judge>,
    /// The obstacle and what would remove it
    blocked_reason: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct ProofArgument {
    item: i64,
    proof: String,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum NewStatus {
    Complete,
    Blocked,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Judge {
    SelfUpdate,
    Evaluator,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordVerdict {
    pub verdict: VerdictArgument,
    reason: Option<String>,
    /// At most 20 short items
    evidence: Option<Vec<String>>,
    pub goal_id: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schemars(inline)]
pub enum VerdictArgument {
    Complete,
    Incomplete,
    Unverifiable,
    Impossible,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateObjective {
    pub objective: String,
    pub goal_id: Option<String>,
}

/// The arguments of tools that take only a goal id.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhichGoal {
    pub goal_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitGoal {
    seconds: Option<i64>,
    /// `17:30`, date and time, or `in 3h`; latest moment of a condition
    until: Option<String>,
    /// Until it exists
    file: Option<String>,
    /// Until it ends
    pid: Option<i64>,
    /// Until it exits 0; one of the goal's or the user's list
    command: Option<String>,
    pub goal_id: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recall {
    /// Words that must all match; the last may be a prefix
    query: String,
    /// 1 to 50, default 10
    limit: Option<i64>,
    #[schemars(extend("enum" = category_names()))]
    category: Option<String>,
}

/// What to search for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search<'a> {
    pub query: &'a str,
    pub limit: usize,
    pub category: Option<Category>,
}

/// Parses the arguments of a call; an error names the wrong argument.
pub fn read<T: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, ArgumentError> {
    let error = match T::deserialize(arguments) {
        Ok(read) => return Ok(read),
        Err(error) => plain(&error),
    };
    // Serde names missing and unknown fields, but not the field with a wrong value. Without that field, the error
    // changes.
    let culprit = arguments.keys().filter(|_| !error.contains("field `")).find(|key| {
        let mut others = arguments.clone();
        others.remove(*key);
        T::deserialize(&others).err().as_ref().map(plain).as_ref() != Some(&error)
    });
    let message = match culprit {
        Some(key) => format!("argument `{key}`: {error}"),
        None => format!("arguments: {error}"),
    };
    Err(wrong(text::headline(&message, 300)))
}

fn plain(error: &serde_json::Error) -> String {
    let error = error.to_string().replace("expected i64", "expected a whole number");
    error.replace("expected f64", "expected a number")
}

pub fn not_an_object() -> ArgumentError {
    wrong("`arguments` must be an object")
}

fn wrong(message: impl Into<String>) -> ArgumentError {
    ArgumentError(message.into())
}

fn at_most(name: &str, text: &str, most: usize) -> Result<(), ArgumentError> {
    let length = text.chars().count();
    if length > most {
        return Err(wrong(format!("`{name}` has {length} characters; the maximum is {most}")));
    }
    Ok(())
}

fn between(name: &str, number: i64, most: i64) -> Result<i64, ArgumentError> {
    if (1..=most).contains(&number) {
        return Ok(number);
    }
    if most == i64::MAX {
        return Err(wrong(format!("`{name}` is {number}; it must be above 0")));
    }
    Err(wrong(format!("`{name}` is {number}; it must be from 1 to {most}")))
}

/// Turns hours into seconds and dollars into millionths.
fn scaled(name: &str, number: f64, unit: f64, most: f64) -> Result<i64, ArgumentError> {
    if !(number > 0.0 && number <= most) {
        return Err(wrong(format!("`{name}` is {number}; it must be above 0 and at most {most}")));
    }
    #[expect(clippy::cast_possible_truncation, reason = "at most 1e15, which fits")]
    let whole = (number * unit).round() as i64;
    Ok(whole.max(1))
}

pub fn objective(text: &str) -> Result<String, ArgumentError> {
    goal::objective(text).map_err(|error| wrong(error.to_string()))
}

impl CreateGoal {
    pub fn new_goal(&self) -> Result<NewGoal, ArgumentError> {
        let objective = objective(&self.objective)?;
        let mut budget = match (self.token_budget, self.budget_profile) {
            (Some(_), Some(_)) => return Err(wrong("`token_budget` and `budget_profile` exclude each other")),
            (Some(tokens), None) => Budget {
                limits: Limits::default().with(Axis::Tokens, between("token_budget", tokens, i64::MAX)?),
                source: BudgetSource::Tokens,
                ..Budget::default()
            },
            (None, Some(name)) => Budget::parse(name.into(), &objective).map_err(|error| wrong(error.to_string()))?,
            (None, None) => Budget::default(),
        };
        if let Some(turns) = self.max_turns {
            let turns = between("max_turns", turns, UNLIMITED_CONTINUATIONS - 1)?;
            budget.limits.set(Axis::Turns, Some(turns));
        }
        if let Some(hours) = self.max_hours {
            #[expect(clippy::cast_precision_loss, reason = "ten years in hours")]
            let most = (UNLIMITED_SECONDS / 3_600 - 1) as f64;
            let seconds = scaled("max_hours", hours, 3_600.0, most)?;
            budget.limits.set(Axis::Hours, Some(seconds.saturating_mul(1_000)));
        }
        if let Some(dollars) = self.max_usd {
            budget.limits.set(Axis::Usd, Some(scaled("max_usd", dollars, 1_000_000.0, USD_MAX)?));
        }
        // Only the user may set commands that run without asking.
        Ok(NewGoal { objective, budget, ..NewGoal::default() })
    }
}

impl UpdateGoal {
    pub fn has_items(&self) -> bool {
        self.items.is_some()
    }

    /// The proofs of items with their numbers.
    pub fn proofs(&self) -> Result<Vec<(i64, String)>, ArgumentError> {
        let items = self.items.as_deref().unwrap_or_default();
        if items.is_empty() {
            return Err(wrong("set `status` or `items`"));
        }
        if items.len() > ITEMS_MAX {
            return Err(wrong(format!("`items` has {} entries; the maximum is {ITEMS_MAX}", items.len())));
        }
        Ok(items.iter().map(|item| (item.item, item.proof.clone())).collect())
    }

    pub fn blocked_reason(&self) -> Result<&str, ArgumentError> {
        if self.completed_by.is_some() {
            return Err(wrong("`completed_by` is only allowed with the status `complete`"));
        }
        if self.items.is_some() {
            return Err(wrong("`items` is not allowed with the status `blocked`"));
        }
        let reason = self.blocked_reason.as_deref().map(str::trim).unwrap_or_default();
        if reason.is_empty() {
            return Err(wrong("the status `blocked` requires `blocked_reason`"));
        }
        at_most("blocked_reason", reason, REASON_MAX)?;
        Ok(reason)
    }
}

impl RecordVerdict {
    pub fn reason(&self) -> Result<Option<&str>, ArgumentError> {
        let reason = self.reason.as_deref();
        at_most("reason", reason.unwrap_or_default(), REASON_MAX)?;
        Ok(reason)
    }

    pub fn evidence(&self) -> Result<Vec<String>, ArgumentError> {
        let evidence = self.evidence.as_deref().unwrap_or_default();
        if evidence.len() > EVIDENCE_MAX {
            let items = evidence.len();
            return Err(wrong(format!("`evidence` has {items} items; the maximum is {EVIDENCE_MAX}")));
        }
        Ok(evidence.iter().map(|item| text::cut(item, EVIDENCE_LENGTH)).collect())
    }
}

impl WaitGoal {
    pub fn request(&self, now: Millis) -> Result<WaitRequest, ArgumentError> {
        let until = match (self.seconds, self.until.as_deref()) {
            (Some(_), Some(_)) => return Err(wrong("`seconds` and `until` exclude each other")),
            (Some(seconds), None) => Some(now + between("seconds", seconds, WAIT_MAX)? * 1_000),
            (None, Some(until)) => {
                let at = WaitRequest::parse_until(until, now);
                Some(at.map_err(|error| wrong(format!("`until`: {error}")))?)
            }
            (None, None) => None,
        };
        let condition = match (&self.file, self.pid, &self.command) {
            (None, None, None) => None,
            (Some(path), None, None) => Some(WaitCondition::File(path.clone())),
            (None, Some(pid), None) => Some(WaitCondition::Process(pid)),
            (None, None, Some(command)) => Some(WaitCondition::Command(command.clone())),
            _ => return Err(wrong("`file`, `pid` and `command` exclude each other")),
        };
        if until.is_none() && condition.is_none() {
            return Err(wrong("set `seconds`, `until`, `file`, `pid` or `command`"));
        }
        Ok(WaitRequest { until, condition })
    }
}

impl Recall {
    pub fn search(&self) -> Result<Search<'_>, ArgumentError> {
        let query = self.query.trim();
        if query.is_empty() {
            return Err(wrong("`query` is empty"));
        }
        at_most("query", query, QUERY_MAX)?;
        let limit = between("limit", self.limit.unwrap_or(LIMIT_DEFAULT), LIMIT_MAX)?;
        let unknown = |name: &str| wrong(format!("`category`: unknown category `{}`", text::headline(name, 40)));
        let category = self.category.as_deref().map(|name| name.parse().map_err(|_| unknown(name))).transpose()?;
        Ok(Search { query, limit: usize::try_from(limit).unwrap_or(0), category })
    }
}
