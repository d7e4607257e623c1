//! From the definition of a stage to its plan: flags come over it, what nobody says has a default here, and what does
//! not go together is told.

use steadfast_model::clock::Millis;
use steadfast_model::run::{AgentPlan, Rule, StagePlan};

use super::Overrides;
use super::agents::AgentDef;
use super::fault::{At, Faults};
use super::fields::Setting;
use super::rules::Resolver;
use super::stage::StageDef;

pub const LOOP_RUNS: u32 = 25;
const DELAY_MS: Millis = 3_000;
const MOST_PARALLEL: u32 = 64;

/// What to do about a verification that parallel runs cannot have: each works on a branch of its own.
pub(super) const VERIFY_AFTER: &str = "put verify on a stage of its own after it";

/// What a stage is called, and what it stands in.
pub(super) struct StageContext<'a> {
    pub(super) run: &'a str,
    pub(super) name: String,
    pub(super) loop_type: Option<String>,
    pub(super) inputs: Vec<String>,
    pub(super) default_runs: DefaultRuns,
    /// The user's own model is one of this stage's program.
    pub(super) takes_model: bool,
    /// The user's own verification belongs to this stage.
    pub(super) verified: bool,
    pub(super) at: At,
}

/// What `runs` is if nobody says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DefaultRuns {
    /// Only a guard against running for ever: a budget profile says better.
    Limit(u32),
    Exactly(u32),
}

/// How many iterations there are at most. A profile's turns are a limit: they never add to what a definition says.
fn most_runs(said: Option<u32>, default: DefaultRuns, only_counts: bool, flags: &Overrides) -> u32 {
    let turns = flags.turns.filter(|_| flags.max.is_none());
    match (said, default) {
        (None, DefaultRuns::Limit(limit)) if !only_counts => turns.unwrap_or(limit),
        (None, DefaultRuns::Limit(runs) | DefaultRuns::Exactly(runs)) | (Some(runs), _) => {
            runs.min(turns.unwrap_or(u32::MAX))
        }
    }
}

/// Makes a plan of a definition; faults tell what could not be.
pub(super) fn plan_stage(
    mut def: StageDef,
    context: StageContext<'_>,
    flags: &Overrides,
    faults: &mut Faults,
) -> StagePlan {
    let at = &context.at;
    if !flags.items.is_empty() {
        def.items = Some(flags.items.clone());
    }
    let parallel = def.parallel.unwrap_or(false);
    // Of a parallel stage that is refused as a whole, when all faults are known.
    if context.verified && !flags.verify.is_empty() && !parallel {
        def.arguments.verify = Setting::On(flags.verify.clone());
    }
    if matches!(def.prompt, Setting::Absent) {
        let fix = "add `prompt:`, or name a loop type with `loop:`";
        faults.error(at, format!("`{}` has no prompt", context.name), fix);
    }
    let items = def.items.unwrap_or_default();
    let perspectives = def.perspectives.unwrap_or_default();
    let resolver = Resolver { arguments: &def.arguments, run: context.run, items: items.len(), at: at.clone() };
    let completion = resolver.rule(&def.completion, faults);
    let one_each = if completion == Rule::AllItems { items.len() } else { perspectives.len() };
    let one_each = u32::try_from(one_each).ok().filter(|count| *count > 0);
    let runs = most_runs(def.runs.or(one_each), context.default_runs, completion.only_counts(), flags);
    // The documented rest is a loop type's; a prompt written into a pipeline goes on at once.
    let delay_ms = if context.loop_type.is_some() { DELAY_MS } else { 0 };
    let stage = StagePlan {
        loop_type: context.loop_type,
        prompt: def.prompt.on().map(|prompt| prompt.text).unwrap_or_default(),
        min_iterations: def.min_iterations.unwrap_or(1),
        check_before: def.check_before.unwrap_or(false),
        delay_ms: flags.delay_ms.or(def.delay_ms).unwrap_or(delay_ms),
        agent: plan_agent(def.agent, context.takes_model, flags, at, faults),
        timeout_ms: flags.timeout_ms.or(def.timeout_ms).unwrap_or(StagePlan::TIMEOUT_MS),
        perspectives,
        items,
        parallel,
        output_parse: def.output_parse.unwrap_or_default(),
        inputs: context.inputs,
        judge: def.judge.on().map(|judge| judge.into_plan(at, faults)),
        ..StagePlan::new(context.name, completion, runs)
    };
    let stage = check_parallel(stage, at, faults);
    check_effect(&stage, at, faults);
    stage
}

/// All iterations of a parallel stage are always done, at once and each on its own: no rule is asked.
fn check_parallel(mut stage: StagePlan, at: &At, faults: &mut Faults) -> StagePlan {
    if !stage.parallel {
        return stage;
    }
    if stage.completion.leaves().any(|leaf| matches!(leaf, Rule::Verify(_))) {
        let what = format!("the stage `{}` is parallel, and nothing verifies parallel runs", stage.name);
        faults.error(at, what, VERIFY_AFTER);
    } else if !matches!(stage.completion, Rule::FixedN | Rule::AllItems) {
        let fix = "remove `parallel`, or the rule: all runs of a parallel stage are always done";
        faults.warning(at, "the completion rule of a parallel stage is never asked", fix);
        stage.completion = Rule::FixedN;
    }
    if stage.runs > MOST_PARALLEL {
        let what = format!("{} agents in one parallel stage", stage.runs);
        faults.error(at, what, format!("use at most {MOST_PARALLEL}"));
    }
    stage
}

/// What is said and can have no effect.
fn check_effect(stage: &StagePlan, at: &At, faults: &mut Faults) {
    let StagePlan { runs, min_iterations, .. } = *stage;
    if min_iterations > runs {
        let fix = format!("raise `runs` to {min_iterations}, or lower `min_iterations`");
        faults.warning(at, format!("at least {min_iterations} iterations of at most {runs}"), fix);
    }
    if stage.judge.is_some() && !stage.completion.needs_vote() {
        faults.warning(at, "nobody asks the judge", "use `completion: plateau`, or remove `judge`");
    }
}

/// A model belongs to its program: a stage with another one keeps what it has.
fn plan_agent(def: AgentDef, takes_model: bool, flags: &Overrides, at: &At, faults: &mut Faults) -> AgentPlan {
    let flagged = AgentDef {
        kind: flags.agent.clone(),
        model: flags.model.clone().filter(|_| takes_model).into(),
        effort: flags.effort.clone().filter(|_| takes_model).into(),
        user_hooks: flags.user_hooks,
    };
    flagged.or(def).into_plan(at, faults)
}
