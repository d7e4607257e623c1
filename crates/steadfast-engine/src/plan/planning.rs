//! From definitions to plans: applies flags and defaults to a stage and to the limits of a run, and reports settings that
//! contradict.

use steadfast_model::clock::Millis;
use steadfast_model::limit::{Axis, Limits};
use steadfast_model::prompt;
use steadfast_model::run::{AgentKind, AgentPlan, Rule, RunKind, RunLimits, StagePlan, template};

use super::Overrides;
use super::agents::AgentDef;
use super::fault::Location;
use super::keys::{Inherit as _, LocatedText, Setting, Value, count, count_or_zero, keys, text};
use super::order::MERGE_RUNS;
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
    /// The program that `--model` is meant for; `None` for any.
    pub(super) model_of: Option<AgentKind>,
    /// `--verify` is meant for this stage.
    pub(super) verified: bool,
    /// It merges branches.
    pub(super) merges: bool,
    pub(super) at: Location,
}

pub(super) fn plan_stage(mut def: StageDef, context: StageContext<'_>, flags: &Overrides) -> StagePlan {
    let at = &context.at;
    let parallel = def.is_parallel() && !context.merges;
    // `finish` in plan.rs refuses --verify of a parallel stage, after all faults are known.
    if context.verified && !flags.verify.is_empty() && !parallel {
        def.arguments.verify = Setting::On(flags.verify.clone());
    }
    if def.prompt.is_none() && !context.merges {
        at.error(format!("`{}` has no prompt", context.name), "add `prompt:`, or name a loop type with `loop:`");
    }
    let items = if flags.items.is_empty() { def.items.unwrap_or_default() } else { flags.items.clone() };
    let perspectives = def.perspectives.unwrap_or_default();
    let resolver = Resolver { arguments: &def.arguments, run: context.run, items: items.len(), at: at.clone() };
    let completion = if context.merges { resolver.merge_rule() } else { resolver.rule(&def.completion) };
    let cells = def.matrix.unwrap_or_default();
    let own_agents = def.agents.unwrap_or_default();
    let own_count = if perspectives.is_empty() { own_agents.len() } else { perspectives.len() };
    let one_each = match () {
        () if !cells.is_empty() => cells.len(),
        () if completion.leaves().any(|leaf| *leaf == Rule::AllItems) => items.len(),
        () => own_count,
    };
    let one_each = u32::try_from(one_each).ok().filter(|count| *count > 0);
    let stated = match def.runs {
        Some(Runs::Count(_)) if !cells.is_empty() => one_each.map(|cells| cells.min(flags.max.unwrap_or(cells))),
        Some(Runs::Count(runs)) => Some(runs),
        _ => one_each,
    };
    if let (Some(Runs::Count(runs)), Some(cells), None, false) = (&def.runs, one_each, flags.max, cells.is_empty())
        && *runs != cells
    {
        let what = format!("`runs` is {runs}, but the matrix has {cells} combinations");
        at.error(what, "remove `runs`: each combination runs once");
    }
    if !cells.is_empty() && !items.is_empty() {
        at.error("`items` and `matrix` both say what the iterations are", "write the items as an axis of the matrix");
    }
    // The turns of a profile limit what a definition says. They replace a default that only guards against running for ever.
    let turns = flags.limits.get(Axis::Turns).filter(|_| flags.max.is_none());
    let turns = turns.and_then(|turns| u32::try_from(turns).ok());
    let default = match context.kind {
        _ if context.merges => MERGE_RUNS,
        RunKind::Loop => LOOP_RUNS,
        RunKind::Pipeline => 1,
    };
    let is_guard = stated.is_none() && context.kind == RunKind::Loop && !completion.only_counts();
    let runs = match turns {
        Some(turns) if is_guard => turns,
        turns => stated.unwrap_or(default).min(turns.unwrap_or(u32::MAX)),
    };
    // The documented delay is that of loop types.
    let delay_ms = if context.loop_type.is_some() { DELAY_MS } else { 0 };
    let agent_of = |def: AgentDef| plan_agent(def, context.model_of.as_ref(), flags);
    let stage = StagePlan {
        loop_type: context.loop_type,
        prompt: def.prompt.map_or_else(|| prompt::MERGE.to_owned(), |prompt| prompt.text),
        min_iterations: def.min_iterations.unwrap_or(1),
        // A merge without conflicts needs no agent.
        check_before: def.check_before.unwrap_or(context.merges),
        delay_ms: flags.delay_ms.or(def.delay_ms).unwrap_or(delay_ms),
        agents: own_agents.into_iter().map(|own| agent_of(own.or(def.agent.clone()))).collect(),
        agent: agent_of(def.agent),
        timeout_ms: flags.timeout_ms.or(def.timeout_ms).unwrap_or(StagePlan::TIMEOUT_MS),
        perspectives,
        items,
        parallel,
        output_parse: def.output_parse.unwrap_or_default(),
        inputs: context.inputs,
        judge: def.judge.on().map(AgentDef::into_plan),
        context: flags.context.clone().or(def.context).unwrap_or_default(),
        commands: def.commands.0,
        output_path: def.output_path.and_then(|path| output_path(&path, context.run)),
        retries: def.retries,
        env: def.env.unwrap_or_default(),
        matrix: cells,
        artifacts: def.artifacts.into_iter().flatten().map(|(name, path, _)| (name, path)).collect(),
        ..StagePlan::new(context.name, completion, runs)
    };
    let mut stage = check_parallel(stage, at);
    let guard = def.guardrails.and_then(|guardrails| guardrails.max_runtime_ms).filter(|most| *most > 0);
    stage.limits.set(Axis::Hours, guard);
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
    // A rule that only counts has no use for it; other tools inherit it from the stage type.
    if min_iterations > runs && !stage.completion.only_counts() {
        let fix = format!("raise `runs` to {min_iterations}, or lower `min_iterations`");
        at.warning(format!("`min_iterations` is {min_iterations}, but `runs` is {runs}"), fix);
    }
    if stage.judge.is_some() && !stage.completion.needs_vote() {
        at.warning("`judge` is unused: no `plateau` rule", "use `completion: plateau`, or remove `judge`");
    }
}

fn plan_agent(def: AgentDef, model_of: Option<&AgentKind>, flags: &Overrides) -> AgentPlan {
    let takes_model = model_of.is_none_or(|program| *program == def.program());
    let flagged = AgentDef {
        kind: flags.agent.clone(),
        model: flags.model.clone().filter(|_| takes_model).into(),
        effort: flags.effort.clone().filter(|_| takes_model).into(),
        user_hooks: flags.user_hooks,
    };
    flagged.or(def).into_plan()
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
pub(super) fn amount(value: &Value<'_>) -> Option<i64> {
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
