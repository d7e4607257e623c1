//! The keys of a pipeline's stage that decide when it runs and what follows: `needs`, `when`, `approve`, `merge`,
//! `on_max`, `on_fail` and the stage's own `limits`. Loop types have none of them.

use steadfast_model::limit::{Axis, Limits};
use steadfast_model::run::condition::{self, Condition};
use steadfast_model::run::{MergePlan, StagePlan, Then};

use super::fault::{Location, did_you_mean};
use super::inputs::names;
use super::keys::{Inherit as _, LocatedText, Setting, Value, count_or_zero, keys, located_text, text};
use super::planning::{LimitsDef, amount};
use super::stage::StageDef;
use super::yaml::Yaml;

const MAX_RETRIES: u32 = 100;
/// Conflicts that one agent does not resolve are given to the next.
pub(super) const MERGE_RUNS: u32 = 10;

keys! {
    OrderDef {
        needs: Option<Vec<LocatedText>> = needs("needs"),
        when: Option<LocatedCondition> = when("when"),
        approve: Option<Approval> = approve("approve"),
        merge: Option<MergeDef> = merge("merge"),
        on_max: Option<Then> = then("on_max"),
        on_fail: Option<Then> = then("on_fail"),
        limits: Setting<StageLimits> = stage_limits("limits"),
    }
}

keys! {
    StageLimits {
        tokens: Setting<i64> = amount("tokens"),
        usd: Setting<i64> = amount("usd"),
        hours: Setting<i64> = amount("hours"),
        errors: Option<()> = not_of_a_stage("errors"),
        idle: Option<()> = not_of_a_stage("idle"),
        parallel: Option<()> = not_of_a_stage("parallel"),
    }
}

pub(super) type LocatedCondition = (Condition, Location);

/// What a person is asked before the stage starts.
#[derive(Debug, Clone)]
pub(super) enum Approval {
    Plain,
    Question(String),
}

keys! {
    MergeDef {
        from: Option<LocatedText> = located_text("from"),
        chosen_by: Option<LocatedText> = located_text("chosen_by"),
    }
}

/// `needs: []` is not the same as no `needs`.
pub(super) fn needs(value: &Value<'_>) -> Option<Vec<LocatedText>> {
    if value.is_off() { None } else { names(value) }
}

fn when(value: &Value<'_>) -> Option<LocatedCondition> {
    let fix = "write for example `when: tests.exit_code == 0`";
    match &value.node.value {
        Yaml::Null => None,
        Yaml::Text(text) => match condition::parse(text) {
            Ok(condition) => Some((condition, value.at.clone())),
            Err(error) => value.at.refuse(format!("`when`: {error}"), error.hint()),
        },
        _ => value.at.refuse("`when` has to be a condition", fix),
    }
}

fn approve(value: &Value<'_>) -> Option<Approval> {
    match &value.node.value {
        _ if value.is_off() => None,
        Yaml::Bool(true) => Some(Approval::Plain),
        Yaml::Text(text) if ["yes", "on"].contains(&text.to_lowercase().as_str()) => Some(Approval::Plain),
        Yaml::Text(text) if ["no", "off"].contains(&text.to_lowercase().as_str()) => None,
        Yaml::Text(_) => text(value).map(|question| Approval::Question(question.trim().to_owned())),
        _ => value.at.refuse("`approve` has to be true or a question", "write `approve: true`"),
    }
}

fn merge(value: &Value<'_>) -> Option<MergeDef> {
    match &value.node.value {
        _ if value.is_off() => None,
        Yaml::Map(_) => {
            let merge: MergeDef = value.table("`merge`")?;
            if merge.from.is_none() {
                value.at.error("`merge` does not name a stage", "add `from:` with a parallel stage");
            }
            Some(merge)
        }
        _ => Some(MergeDef { from: located_text(value), chosen_by: None }),
    }
}

fn then(value: &Value<'_>) -> Option<Then> {
    const WORDS: [&str; 2] = ["stop", "continue"];
    let word = text(value)?;
    word.trim().parse().ok().or_else(|| {
        let fix = format!("{}Write `{1}: stop` or `{1}: continue`", did_you_mean(&word, WORDS), value.key);
        value.at.refuse(format!("there is no `{}: {word}`", value.key), fix)
    })
}

fn stage_limits(value: &Value<'_>) -> Option<StageLimits> {
    value.table("`limits` of a stage")
}

fn not_of_a_stage(value: &Value<'_>) -> Option<()> {
    let fix = match value.key {
        "errors" => "write `retries:` in the stage: how often an iteration that failed is tried again",
        _ => "write it in the `limits` of the pipeline: it holds for all stages",
    };
    value.at.refuse(format!("a stage has no limit `{}` of its own", value.key), fix)
}

/// Further attempts of an iteration that failed.
pub(super) fn retries(value: &Value<'_>) -> Option<u32> {
    let retries = count_or_zero(value)?;
    if retries > MAX_RETRIES {
        return value.at.refuse(format!("{retries} retries"), format!("use at most {MAX_RETRIES}"));
    }
    Some(retries)
}

impl StageLimits {
    /// A stage takes over what the loop type limits for a run of its own.
    fn or_of_loop(self, of_loop: LimitsDef) -> Limits {
        let mut limits = Limits::default();
        limits.set(Axis::Tokens, self.tokens.or(of_loop.tokens).on());
        limits.set(Axis::Usd, self.usd.or(of_loop.usd).on());
        limits.set(Axis::Hours, self.hours.or(of_loop.hours).on());
        limits
    }
}

impl OrderDef {
    /// Completes a stage of a plan. `needs` are numbers of stages.
    pub(super) fn complete(self, plan: &mut StagePlan, needs: Option<Vec<u32>>, of_loop: LimitsDef) {
        let limits = match self.limits {
            Setting::Off => Limits::default(),
            limits => limits.on().unwrap_or_default().or_of_loop(of_loop),
        };
        plan.needs = needs;
        plan.when = self.when.map(|(condition, _)| condition);
        plan.approve = self.approve.map(|approval| match approval {
            Approval::Plain => format!("Start stage {}?", plan.name),
            Approval::Question(question) => question,
        });
        plan.on_max = self.on_max;
        plan.on_fail = self.on_fail.unwrap_or_default();
        plan.limits = limits;
        plan.merge = self.merge.and_then(|merge| {
            let chosen_by = merge.chosen_by.map(|(name, _)| name);
            merge.from.map(|(from, _)| MergePlan { from, chosen_by })
        });
    }
}

/// A stage that merges is over when its branches are merged, and works on one branch: the current one.
pub(super) fn refuse_beside_merge(def: &StageDef, at: &Location) {
    let beside = [
        ("completion", def.completion.as_on().is_some() || def.arguments.is_of_a_rule()),
        ("parallel", def.parallel == Some(true)),
        ("matrix", def.matrix.is_some()),
        ("agents", def.agents.is_some()),
        ("items", def.items.is_some()),
    ];
    for (key, _) in beside.into_iter().filter(|(_, is_set)| *is_set) {
        let what = format!("`{key}` and `merge` do not go together: the stage is over when the branches are merged");
        at.error(what, format!("move `{key}` to a stage of its own"));
    }
}
