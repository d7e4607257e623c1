//! `steadfast goal VERB`. The slash commands `/goal-VERB` run the same code with the user's authority.

mod cleanup;
mod history;
mod queue;
mod report;
mod starting;
mod stop_all;

pub(super) use starting::refuse_agents_checks;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use steadfast_app::action::{self, ActionError, Claim, Place};
use steadfast_app::native;
use steadfast_app::overview::{self, GoalView};
use steadfast_app::session::{self, Named};
use steadfast_model::clock::{self, Millis};
use steadfast_model::goal::proof::Evidence;
use steadfast_model::goal::{self, Actor, Goal};
use steadfast_model::host::Screen;
use steadfast_model::redact::redact;
use steadfast_model::text;
use steadfast_store::spend::{self, Spender};
use steadfast_store::{Db, Origin, Store, StoreError};
use steadfast_system::paths::Paths;
use steadfast_system::process;

use super::{other_stores, own_paths, person};
use crate::backups;
use crate::cli::{ExtendArgs, GoalArgs, GoalVerb, WaitArgs};
use crate::error::{CliError, code};
use crate::output::{CommandOutput, CommandResult};
use crate::verification;
use crate::watch;

const BUDGET_SPENT: &str = "the goal's budget is spent";

pub(crate) struct CommandContext<'a> {
    pub(crate) paths: &'a Paths,
    pub(crate) origin: Origin,
    /// Known in a hook; a terminal command has to find it.
    pub(crate) place: Option<Place>,
    pub(crate) directory: PathBuf,
    pub(crate) now: Millis,
    /// Whether JSON is printed.
    pub(crate) is_json: bool,
}

impl CommandContext<'_> {
    /// Where the answer is read: a slash command knows its session, a terminal command has to find it.
    fn screen(&self) -> Screen {
        self.place.as_ref().map_or(Screen::Terminal, |place| Screen::Client(place.host))
    }

    /// The view of a goal, with what the user can type here.
    fn view(&self, db: Db<'_>, goal: &Goal, now: Millis) -> Result<GoalView, StoreError> {
        let view = overview::goal_view(db, goal, self.paths, now)?;
        Ok(GoalView { next: self.screen().spell(&view.next), ..view })
    }
}

/// The result of a verb, with the goal as it is now.
pub(crate) struct GoalOutput {
    pub(crate) output: CommandOutput,
    pub(crate) goal: Option<Goal>,
}

pub(crate) type GoalResult = Result<GoalOutput, CliError>;

impl GoalOutput {
    fn new(view: &GoalView, goal: Goal, text: String) -> Self {
        Self { output: CommandOutput { text, json: json!({"goal": view}), code: 0 }, goal: Some(goal) }
    }

    /// A change that is saved is reported as done, also if the rest cannot be read.
    fn unseen(goal: Goal, message: &str, error: &StoreError) -> Self {
        let text = format!("{message}\nstatus: {}\nnote: {}", goal.state(), overview::unseen_note(error));
        Self { output: CommandOutput { text, json: overview::unseen(&goal, error), code: 0 }, goal: Some(goal) }
    }
}

pub(crate) fn from_terminal(db: Option<&Path>, arguments: GoalArgs, is_json: bool) -> CommandResult {
    // Pausing and looking must be possible whatever is wrong with the configuration.
    let starts_nothing = person::only_reads(&arguments.verb)
        || matches!(arguments.verb, GoalVerb::Pause { .. } | GoalVerb::Abandon | GoalVerb::Block { .. });
    let paths = if starts_nothing { own_paths::find_to_read(db)? } else { own_paths::find(db)? };
    let directory = std::env::current_dir()?;
    let actor = person::caller_of_verb(&paths, &arguments, &directory)?;
    let origin = Origin { actor, place: "cli" };
    let context = CommandContext { paths: &paths, origin, place: None, directory, now: clock::now(), is_json };
    let only_reads = matches!(arguments.verb, GoalVerb::Cleanup(_)) || person::only_reads(&arguments.verb);
    let starts_goal = matches!(arguments.verb, GoalVerb::Start(_));
    let mut done = run(&context, arguments).map_err(|error| match other_stores::note(&paths) {
        Some(note) if error.code == code::NOT_FOUND => CliError { hint: note, ..error },
        _ => error,
    })?;
    if done.output.code == code::NOT_FOUND
        && let Some(note) = other_stores::note(&paths)
    {
        done.output.text = format!("{}\n{note}", done.output.text);
    }
    // The client may be closed, or have no hook that waits for this moment.
    if !only_reads && done.goal.as_ref().is_some_and(|goal| goal.status.is_live() && goal.wake_at_ms.is_some()) {
        watch::ensure(&paths);
    }
    if starts_goal {
        drop(backups::ensure(&paths));
    }
    Ok(done.output)
}

pub(crate) fn run(context: &CommandContext<'_>, arguments: GoalArgs) -> GoalResult {
    let session = arguments.session.as_deref();
    let named = person::named_by(&arguments.verb);
    let open = || SessionGoal::open(context, session, named);
    match arguments.verb {
        GoalVerb::Start(start) => starting::start(context, session, start),
        GoalVerb::Status { .. } => {
            SessionGoal::open(context, session, if context.is_json { Named::Any } else { named })?.status()
        }
        GoalVerb::Pause { all: true } => stop_all::pause_all(context),
        GoalVerb::Queue { verb } => queue::run(open()?, verb.as_ref()),
        GoalVerb::Pause { all: false } => open()?.act("goal paused", action::pause),
        GoalVerb::Resume { continue_session: false } => open()?.resume(),
        GoalVerb::Resume { continue_session: true } => starting::resume_and_continue(open()?),
        GoalVerb::Abandon => open()?.abandon(),
        GoalVerb::Edit { objective } => open()?.edit(&objective),
        GoalVerb::Block { reason } => {
            let reason = text::cut(reason.trim(), 1_000);
            open()?.act("goal blocked", |store, id, origin, now| action::block(store, id, &reason, origin, now))
        }
        GoalVerb::Complete => open()?.complete(),
        GoalVerb::Extend(extend) => open()?.extend(&extend),
        GoalVerb::Wait(wait) => open()?.wait(&wait),
        GoalVerb::Reconcile { accept_reset: true } => open()?.reconcile(),
        GoalVerb::Reconcile { accept_reset: false } => {
            let hint = "add `--accept-reset` to accept that tokens since the last reading stay uncounted";
            Err(CliError::new(code::USAGE, "reconcile requires --accept-reset", hint))
        }
        GoalVerb::Adopt { native: true, .. } => starting::adopt_native(open()?),
        GoalVerb::Adopt { goal, .. } => open()?.adopt(&goal.unwrap_or_default()),
        GoalVerb::Verify => open()?.verify(),
        GoalVerb::Report { goal, md, html } => {
            report::report(context, session, goal.as_deref(), md, html.html.as_deref())
        }
        GoalVerb::History(history) => history::history(context, session, &history),
        GoalVerb::Cleanup(cleanup) => cleanup::cleanup(context, &cleanup),
    }
}

/// The session that a verb acts on, and the open store.
struct SessionGoal<'a> {
    context: &'a CommandContext<'a>,
    store: Store,
    place: Place,
}

impl<'a> SessionGoal<'a> {
    fn open(context: &'a CommandContext<'a>, session: Option<&str>, named: Named) -> Result<Self, CliError> {
        let store = open_existing(context)?;
        let place = find_place(context, &store, session, named)?;
        person::refuse_foreign_session(context.origin.actor, store.read(), &place.session_id)?;
        Ok(Self { context, store, place })
    }

    fn id(&self) -> &str {
        &self.place.session_id
    }

    fn output(&self, goal: Goal, message: &str) -> GoalOutput {
        match self.context.view(self.store.read(), &goal, self.context.now) {
            Ok(view) => GoalOutput::new(&view, goal, format!("{message}\nnext: {}", view.next)),
            Err(error) => GoalOutput::unseen(goal, message, &error),
        }
    }

    fn act(
        mut self,
        message: &str,
        change: impl FnOnce(&mut Store, &str, Origin, Millis) -> Result<Goal, ActionError>,
    ) -> GoalResult {
        let (origin, now) = (self.context.origin, self.context.now);
        let goal = change(&mut self.store, &self.place.session_id, origin, now)?;
        Ok(self.output(goal, message))
    }

    fn status(&self) -> GoalResult {
        let db = self.store.read();
        if let Some(goal) = db.goal(self.id())? {
            let view = self.context.view(db, &goal, self.context.now)?;
            return Ok(GoalOutput::new(&view, goal, overview::status_text(&view)));
        }
        let screen = self.context.screen();
        let start = screen.spell("start one: /goal-start \"OBJECTIVE\"");
        let mut text = format!("no goal for session {}\n{start}", self.id());
        let mut json = json!({"goal": null});
        if let Some(objective) = native::of_session(db, self.id())? {
            let headline = text::headline(&objective, 80);
            let adopt = screen.spell("take it over: /goal-adopt --native");
            text = format!("{text}\nnative goal: {headline}\n{adopt}");
            json["native_goal"] = json!(objective);
        }
        Ok(GoalOutput { output: CommandOutput { text, json, code: code::NOT_FOUND }, goal: None })
    }

    fn resume(mut self) -> GoalResult {
        refuse_above_shared_cap(self.context, &self.store, self.id())?;
        let goal = action::resume(&mut self.store, &self.place.session_id, self.context.origin, self.context.now)?;
        let is_active = goal.status == goal::GoalStatus::Active;
        Ok(self.output(goal, if is_active { "goal resumed" } else { BUDGET_SPENT }))
    }

    fn edit(self, words: &[String]) -> GoalResult {
        let typed = starting::text_of(words);
        let objective = goal::objective(&typed)?;
        let note = starting::secret_note(&typed, &objective);
        let message = format!("objective changed: {}{note}", text::headline(&objective, 80));
        self.act(&message, |store, id, origin, now| action::edit(store, id, objective, origin, now))
    }

    fn complete(mut self) -> GoalResult {
        let (id, origin, now) = (&self.place.session_id, self.context.origin, self.context.now);
        if origin.actor != Actor::User {
            action::refuse_agent(&mut self.store, id, "complete", origin, now)?;
        }
        let goal = action::complete(&mut self.store, id, &Claim::User, origin, now)?;
        Ok(queue::ended(self, goal, "goal completed by you"))
    }

    fn abandon(mut self) -> GoalResult {
        let (origin, now) = (self.context.origin, self.context.now);
        let goal = action::abandon(&mut self.store, &self.place.session_id, origin, now)?;
        Ok(queue::ended(self, goal, "goal abandoned"))
    }

    fn extend(mut self, arguments: &ExtendArgs) -> GoalResult {
        let (origin, now) = (self.context.origin, self.context.now);
        let add = arguments.amounts(now)?;
        if add.is_empty() {
            let hint = "use --add-turns N, --add-hours H, --add-tokens N or --add-usd X, or several of them";
            return Err(CliError::new(code::USAGE, "no limit was named", hint));
        }
        let goal = action::extend(&mut self.store, &self.place.session_id, add, origin, now)?;
        let message = format!("goal extended: {} (limits: {})", goal.state(), goal.limits.describe());
        Ok(self.output(goal, &message))
    }

    fn wait(mut self, arguments: &WaitArgs) -> GoalResult {
        let (origin, now) = (self.context.origin, self.context.now);
        let request = arguments.request(now).map_err(ActionError::from)?;
        let approved = &self.context.paths.config.goal.wait_commands;
        let goal = action::wait::start(&mut self.store, &self.place.session_id, &request, approved, origin, now)?;
        let message = format!("goal waits for {}", overview::waits_for(&goal).unwrap_or_default());
        Ok(self.output(goal, &message))
    }

    fn reconcile(mut self) -> GoalResult {
        let goal = action::reconcile(&mut self.store, &self.place.session_id, self.context.origin, self.context.now)?;
        let byte = goal.last_accounted_byte_offset;
        let message = format!("accounting reset at byte {byte}; the goal is {}", goal.state());
        Ok(self.output(goal, &message))
    }

    fn adopt(mut self, goal_id: &str) -> GoalResult {
        let goal = action::adopt(&mut self.store, goal_id, &self.place, self.context.origin, self.context.now)?;
        let message = format!("goal adopted: {}", text::headline(&goal.objective, 80));
        Ok(self.output(goal, &message))
    }

    fn verify(mut self) -> GoalResult {
        let goal = self.goal()?;
        if goal.verify.is_empty() {
            let hint = "set commands when you start a goal: --verify \"cargo test\"";
            return Err(CliError::new(code::WRONG_STATE, "this goal has no verification commands", hint));
        }
        let config = &self.context.paths.config.goal;
        let (verified, runs) = verification::verify_goal(&mut self.store, &goal, config, self.context.origin)?;
        let shown = |run: Evidence| Evidence { command: redact(&run.command).into_owned(), ..run };
        let runs: Vec<Evidence> = runs.into_iter().map(shown).collect();
        verified.map_err(|error| CliError { evidence: Some(Box::new(json!(runs))), ..error.into() })?;
        let seconds = |ms: i64| Duration::from_millis(ms.unsigned_abs()).as_secs_f64();
        let lines: Vec<String> =
            runs.iter().map(|run| format!("passed in {:.1}s: {}", seconds(run.duration_ms), run.command)).collect();
        let goal = self.store.read().goal(self.id())?.unwrap_or(goal);
        let view = self.context.view(self.store.read(), &goal, clock::now())?;
        let mut done = GoalOutput::new(&view, goal, lines.join("\n"));
        done.output.json["evidence"] = json!(runs);
        Ok(done)
    }

    fn goal(&self) -> Result<Goal, CliError> {
        let goal = self.store.read().goal(self.id())?;
        goal.ok_or_else(|| ActionError::NoGoal(self.id().to_owned()).into())
    }
}

/// Refuses to resume a goal that the shared cap stopped while that cap is still reached.
fn refuse_above_shared_cap(context: &CommandContext<'_>, store: &Store, session_id: &str) -> Result<(), CliError> {
    let stopped =
        store.read().goal(session_id)?.is_some_and(|goal| goal.paused_reason == Some(goal::PausedReason::CostCap));
    if !stopped {
        return Ok(());
    }
    let caps = &context.paths.config.limits.caps;
    let near = spend::standings(store.read(), caps, Spender::Session(session_id), context.now)?;
    if let Some(cap) = near.iter().find(|cap| cap.standing.is_reached()) {
        let hint = format!("{}, or raise {} under [limits] in config.toml", cap.way_on(), cap.cap.name());
        return Err(CliError::new(code::LIMIT, format!("a cap is reached: {}", cap.describe()), hint));
    }
    Ok(())
}

/// Opens the store without creating one, since a new store has no goals.
fn open_existing(context: &CommandContext<'_>) -> Result<Store, CliError> {
    Store::open_if_there(&context.paths.store)?.ok_or_else(|| {
        let message = format!("no goal yet (no store at {})", context.paths.store.display());
        let hint =
            "start one with `/goal-start \"OBJECTIVE\"` while a client runs here; `steadfast` prints what is needed first";
        CliError::new(code::NOT_FOUND, message, hint)
    })
}

/// The session that a verb acts on, with the facts its hooks recorded.
fn find_place(
    context: &CommandContext<'_>,
    store: &Store,
    flag: Option<&str>,
    named: Named,
) -> Result<Place, CliError> {
    if let Some(place) = context.place.as_ref().filter(|_| flag.is_none()) {
        return Ok(place.clone());
    }
    // An agent must not learn which other sessions there are.
    let named = if context.origin.actor.is_agent() { Named::New } else { named };
    let id = session::resolve(Some(store.read()), flag, named, &context.directory)?;
    let host = process::session_of_shell().filter(|(_, own)| *own == id).map(|(host, _)| host).unwrap_or_default();
    Ok(match store.read().session(&id)? {
        Some(session) => Place::from(&session),
        None => Place {
            session_id: id,
            host,
            project_dir: Some(context.directory.to_string_lossy().into_owned()),
            transcript: None,
        },
    })
}
