//! From definitions to plans: applies flags and defaults to a stage and to the limits of a run, and reports settings that
//! contradict.

use steadfast_model::clock::Millis;
use steadfast_model::limit::{Axis, Limits};
use steadfast_model::run::{AgentPlan, Rule, RunKind, RunLimits, StagePlan, template};

use super::Overrides;
use super::agents::AgentDef;
use super::fault::Location;
use super::keys::{Inherit as _, LocatedText, Setting, Value, count, count_or_zero, keys, text};
use super::rules::{Resolver, is_inside_project};
use super::stage::{Runs, StageDef};

pub const LOOP_RUNS: u32 = 25;
const DELAY_MS: Millis = 3_000;
const MAX_PARALLEL: u32 = 64;

/// Each parallel iteration works on a branch of its own, so no command can verify them together.
pub(super) const VERIFY_AFTER: &str = "put verify on a stage of its own after it";

/// What a stage gets from its run.
pub(super) struct StageContext<'a> {
    pub(super) kind: RunKind,
    pub(super) run: &'a str,
    pub(super) name: String,
    pub(super) loop_type: Option<String>,
    pub(super) inputs: Vec<String>,
    /// `--model` is meant for this stage's program.
    pub(super) takes_model: bool,
    /// `--verify` is meant for this stage.
    pub(super) verified: bool,
    pub(super) at: Location,
}

pub(super) fn plan_stage(mut def: StageDef, context: StageContext<'_>, flags: &Overrides) -> StagePlan {
    let at = &context.at;
    let parallel = def.parallel.unwrap_or(false);
    // `finish` in plan.rs refuses --verify of a parallel stage, after all faults are known.
    if context.verified && !flags.verify.is_empty() && !parallel {
        def.arguments.verify = Setting::On(flags.verify.clone());
    }
    if def.prompt.is_none() {
        at.error(format!("`{}` has no prompt", context.name), "add `prompt:`, or name a loop type with `loop:`");
    }
    let items = if flags.items.is_empty() { def.items.unwrap_or_default() } else { flags.items.clone() };
    let perspectives = def.perspectives.unwrap_or_default();
    let resolver = Resolver { arguments: &def.arguments, run: context.run, items: items.len(), at: at.clone() };
    let completion = resolver.rule(&def.completion);
    let one_each = if completion == Rule::AllItems { items.len() } else { perspectives.len() };
    let stated = match def.runs {
        Some(Runs::Count(runs)) => Some(runs),
        _ => u32::try_from(one_each).ok().filter(|count| *count > 0),
    };
    // The turns of a profile limit what a definition says. They replace a default that only guards against running for ever.
    let turns = flags.limits.get(Axis::Turns).filter(|_| flags.max.is_none());
    let turns = turns.and_then(|turns| u32::try_from(turns).ok());
    let default = if context.kind == RunKind::Loop { LOOP_RUNS } else { 1 };
    let is_guard = stated.is_none() && context.kind == RunKind::Loop && !completion.only_counts();
    let runs = match turns {
        Some(turns) if is_guard => turns,
        turns => stated.unwrap_or(default).min(turns.unwrap_or(u32::MAX)),
    };
    // The documented delay is that of loop types.
    let delay_ms = if context.loop_type.is_some() { DELAY_MS } else { 0 };
    let stage = StagePlan {
        loop_type: context.loop_type,
        prompt: def.prompt.map(|prompt| prompt.text).unwrap_or_default(),
        min_iterations: def.min_iterations.unwrap_or(1),
        check_before: def.check_before.unwrap_or(false),
        delay_ms: flags.delay_ms.or(def.delay_ms).unwrap_or(delay_ms),
        agent: plan_agent(def.agent, context.takes_model, flags, at),
        timeout_ms: flags.timeout_ms.or(def.timeout_ms).unwrap_or(StagePlan::TIMEOUT_MS),
        perspectives,
        items,
        parallel,
        output_parse: def.output_parse.unwrap_or_default(),
        inputs: context.inputs,
        judge: def.judge.on().map(|judge| judge.into_plan(at)),
        context: flags.context.clone().or(def.context).unwrap_or_default(),
        commands: def.commands.0,
        output_path: def.output_path.and_then(|path| output_path(&path, context.run)),
        ..StagePlan::new(context.name, completion, runs)
    };
    let mut stage = check_parallel(stage, at);
    if let Some(most) = def.guardrails.and_then(|guardrails| guardrails.max_runtime_ms).filter(|most| *most > 0)
        && stage.limits.get(Axis::Hours).is_none()
    {
        stage.limits.set(Axis::Hours, Some(most));
    }
    check_effect(&stage, at);
    stage
}

/// The file that a stage names for its output, in the directory where it works.
fn output_path((path, at): &LocatedText, run: &str) -> Option<String> {
    let rendered = template::render_name(path.trim(), run);
    for name in rendered.unknown {
        let fix = "use `${SESSION}`, or write it out";
        at.warning(format!("`${{{name}}}` has no value here: it stays as it is"), fix);
    }
    if !is_inside_project(&rendered.text) {
        return at.refuse("the output has to be in the project", "name a file such as `output_path: docs/ideas.md`");
    }
    Some(rendered.text)
}

/// All iterations of a parallel stage run, each on its own, so its rule is never tested.
fn check_parallel(mut stage: StagePlan, at: &Location) -> StagePlan {
    if !stage.parallel {
        return stage;
    }
    if stage.completion.is_verified() {
        let what = format!("the stage `{}` is parallel, and nothing verifies parallel runs", stage.name);
        at.error(what, VERIFY_AFTER);
    } else if !matches!(stage.completion, Rule::FixedN | Rule::AllItems) {
        let fix = "remove `parallel`, or the rule: all runs of a parallel stage are always done";
        at.warning("the completion rule of a parallel stage is never tested", fix);
        stage.completion = Rule::FixedN;
    }
    if stage.runs > MAX_PARALLEL {
        at.error(format!("{} agents in one parallel stage", stage.runs), format!("use at most {MAX_PARALLEL}"));
    }
    stage
}

/// Warns of settings that have no effect.
fn check_effect(stage: &StagePlan, at: &Location) {
    let StagePlan { runs, min_iterations, .. } = *stage;
    if min_iterations > runs {
        let fix = format!("raise `runs` to {min_iterations}, or lower `min_iterations`");
        at.warning(format!("`min_iterations` is {min_iterations}, but `runs` is {runs}"), fix);
    }
    if stage.judge.is_some() && !stage.completion.needs_vote() {
        at.warning("`judge` is unused: no `plateau` rule", "use `completion: plateau`, or remove `judge`");
    }
}

fn plan_agent(def: AgentDef, takes_model: bool, flags: &Overrides, at: &Location) -> AgentPlan {
    let flagged = AgentDef {
        kind: flags.agent.clone(),
        model: flags.model.clone().filter(|_| takes_model).into(),
        effort: flags.effort.clone().filter(|_| takes_model).into(),
        user_hooks: flags.user_hooks,
    };
    flagged.or(def).into_plan(at)
}

keys! {
    LimitsDef {
        tokens: Setting<i64> = amount("tokens"),
        usd: Setting<i64> = amount("usd"),
        hours: Setting<i64> = amount("hours"),
        errors: Option<u32> = count("errors"),
        idle: Option<u32> = count_or_zero("idle"),
        parallel: Option<u32> = count("parallel"),
    }
}

pub(super) fn limits(value: &Value<'_>) -> Option<LimitsDef> {
    value.table("`limits`")
}

/// An amount of the axis that the key names; only a deadline would depend on the time.
fn amount(value: &Value<'_>) -> Option<i64> {
    let axis: Axis = value.key.parse().ok()?;
    let amount = text(value).and_then(|text| axis.parse(text.trim(), 0).ok());
    let example = if axis == Axis::Tokens { "5M" } else { "20" };
    let fix = format!("write for example `{}: {example}`", value.key);
    amount.or_else(|| value.at.refuse(format!("`{}` is not an amount", value.key), fix))
}

impl LimitsDef {
    pub(super) fn into_limits(self, flags: &Overrides) -> RunLimits {
        let default = RunLimits::default();
        let mut limits = Limits::default();
        limits.set(Axis::Tokens, self.tokens.on());
        limits.set(Axis::Usd, self.usd.on());
        limits.set(Axis::Hours, self.hours.on());
        let mut flag_limits = flags.limits;
        // The turns of a profile limit the iterations of each stage, not the run.
        flag_limits.set(Axis::Turns, None);
        RunLimits {
            limits: flag_limits.or(limits),
            errors: flags.errors.or(self.errors).unwrap_or(default.errors),
            idle: flags.idle.or(self.idle).unwrap_or(default.idle),
            parallel: flags.parallel.or(self.parallel).unwrap_or(default.parallel),
            back_off_ms: default.back_off_ms,
        }
    }
}
