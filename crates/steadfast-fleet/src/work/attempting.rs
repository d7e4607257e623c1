//! One attempt on a worker: check out its base, run the agent, commit, push its branch and its files, report.

use std::path::Path;

use steadfast_engine::attempt::Attempt;
use steadfast_engine::files::{OutputOf, PublicFiles, without_secrets};
use steadfast_engine::process::Cancel;
use steadfast_engine::work::{self, AgentEnded, Engine, RunView, WorkCall};
use steadfast_model::run::{AgentKind, AgentPlan, AttemptId, Check, FailureKind, Outcome, Plan, Run, StagePlan};
use steadfast_system::bounded;

use super::records::FleetRecords;
use super::{WorkError, WorkerContext, repository};
use crate::checkout::FleetCheckout;
use crate::git::Refs;
use crate::git::directory::{self, RunDirectory};
use crate::git::import::NewCommit;
use crate::git::mirror::{Mirror, Push};
use crate::wire::{AttemptInput, AttemptResult, CheckInput, CheckReport, ConditionInput, ConditionReport, Heads};
use crate::wire::{RunRef, WorkerProgress, attempt_key};

/// The most bytes that are pushed of one file, from its end.
const MOST_BYTES: u64 = 64 << 20;
/// The same of what programs print on stderr.
const MOST_ERRORS: u64 = 64 << 10;
/// Files of an attempt that are pushed, without secrets.
const PUSHED: [&str; 5] = ["prompt.md", "answer.md", "output.md", "result.json", "evidence.json"];

/// A run on this worker.
struct Work<'a> {
    cx: &'a WorkerContext,
    run_ref: &'a RunRef,
    refs: Refs,
    mirror: Mirror,
    directory: RunDirectory,
    engine: Engine,
}

impl<'a> Work<'a> {
    fn begin(cx: &'a WorkerContext, run_ref: &'a RunRef, seq: u64, cancel: &Cancel) -> Result<Self, WorkError> {
        let (mirror, refs) = repository(cx, run_ref)?;
        let directory = RunDirectory::with_records(&mirror, run_ref, seq, cancel)?;
        let engine =
            Engine { home: cx.home.clone(), program: cx.program.clone(), config: cx.config.clone(), grace: cx.grace };
        Ok(Self { cx, run_ref, refs, mirror, directory, engine })
    }

    fn plan(&self) -> &Plan {
        &self.directory.plan
    }

    fn stage(&self, number: u32) -> Result<&StagePlan, WorkError> {
        let missing = || WorkError::Damaged("plan.json".to_owned(), format!("it has no stage {number}"));
        self.plan().stage(number).ok_or_else(missing)
    }

    /// Checks out a commit, with the branches that the stage merges.
    fn enter(
        &self,
        key: &str,
        sha: &str,
        stage: &StagePlan,
        heads: &Heads,
        cancel: &Cancel,
    ) -> Result<FleetCheckout, WorkError> {
        let (code, places) = (self.refs.code(), self.refs.place("*"));
        let attempts = format!("{}*", self.refs.attempts());
        self.mirror.ensure(sha, &[&code, &places, &attempts], cancel)?;
        let key = format!("{}-{key}", self.run_ref.run_id);
        let mut place = FleetCheckout::create(&self.cx.home, &self.mirror, self.run_ref, &key, sha, cancel)?;
        if stage.merge.is_some() {
            for (name, head) in heads.0.iter().filter(|(name, _)| *name != crate::wire::RUN_PLACE) {
                self.mirror.ensure(head, &[&places], cancel)?;
                place.add_branch(&self.refs.place(name), head)?;
            }
        }
        Ok(place)
    }

    /// Writes the commit with an attempt's files. They have no secrets, as the public files of a run on one machine.
    fn files_of(
        &self,
        id: AttemptId,
        place: &FleetCheckout,
        earlier: Option<&str>,
        more: Vec<(String, Vec<u8>)>,
    ) -> Result<String, WorkError> {
        let attempt = Attempt::at(place.root(), &self.run_ref.run_id, id);
        let mut commit = NewCommit::on(earlier, &format!("{}: files of {}", self.run_ref.name, attempt_key(id)));
        for name in PUSHED {
            if let Ok(part) = bounded::end_of(&attempt.directory().join(name), MOST_BYTES) {
                commit.file(name, without_secrets(part.bytes));
            }
        }
        for (name, content) in more {
            commit.file(&name, content);
        }
        commit.write(&place.tree())
    }

    fn records<'r>(
        &'r self,
        stage: &'r StagePlan,
        run: &'r Run,
        heads: &'r Heads,
        (place, project): (&'r FleetCheckout, &'r Path),
        notes: &'r [String],
    ) -> FleetRecords<'r> {
        FleetRecords {
            directory: &self.directory,
            plan: self.plan(),
            run,
            refs: self.refs.clone(),
            heads,
            home: place.root(),
            run_id: &self.run_ref.run_id,
            project,
            lane: stage.lane.as_deref(),
            notes,
            messages: Vec::new(),
        }
    }

    fn call<'r>(
        &'r self,
        run: &'r Run,
        (place, project): (&'r FleetCheckout, &'r Path),
        cancel: &'r Cancel,
    ) -> WorkCall<'r> {
        let view = RunView { plan: self.plan(), run, run_id: &self.run_ref.run_id, home: place.root(), project };
        WorkCall { engine: &self.engine, view, directory: project, cancel, agent_ended: None }
    }

    /// A new name for a branch of an attempt.
    fn branch(&self, id: AttemptId) -> String {
        let random = uuid::Uuid::new_v4().simple().to_string();
        format!("{}{}-{}", self.refs.attempts(), attempt_key(id), random.get(..8).unwrap_or_default())
    }
}

fn allow_agent(cx: &WorkerContext, agent: &AgentPlan) -> Result<(), WorkError> {
    let name = match &agent.kind {
        AgentKind::Host(host) => host.to_string(),
        AgentKind::Command(_) => "command".to_owned(),
    };
    let is_allowed = cx.allowed.agents.is_empty() || cx.allowed.agents.contains(&name);
    if is_allowed { Ok(()) } else { Err(WorkError::NotAllowed(format!("run the agent {name}"))) }
}

pub(super) fn attempt(
    cx: &WorkerContext,
    input: &AttemptInput,
    cancel: &Cancel,
    beat: &mut dyn FnMut(&WorkerProgress),
) -> Result<AttemptResult, WorkError> {
    let (run_ref, id) = (&input.run_ref, input.id);
    let work = Work::begin(cx, run_ref, input.seq, cancel)?;
    let stage = work.stage(id.stage)?;
    allow_agent(cx, stage.agent_of(id.iteration))?;
    let place = work.enter(&attempt_key(id), &input.base, stage, &input.heads, cancel)?;
    let project = place.directory();
    let mut records = work.records(stage, &input.run, &input.heads, (&place, &project), &input.notes);
    records.prepare(id)?;
    let rebuild = place.rebuilding();
    let agent_ended =
        AgentEnded::new(move || rebuild().map_err(|error| format!("cannot make the repository anew: {error}")));
    let call = WorkCall { agent_ended: Some(&agent_ended), ..work.call(&input.run, (&place, &project), cancel) };
    let mut tell = |usage: &_, started_at_ms| {
        beat(&WorkerProgress { usage: *usage, worker: cx.name.clone(), started_at_ms });
    };
    let outcome = work::attempt(&call, id, &mut records, &mut tell);
    let attempt = Attempt::at(place.root(), &run_ref.run_id, id);
    let left = LeftWork { work: &work, place: &place, attempt: &attempt, stage, id, run: &input.run };
    match left.push(&input.base, &outcome, &records.messages, cancel) {
        Ok((sha, files, branch)) => {
            Ok(AttemptResult { outcome, sha: Some(sha), files: Some(files), branch: Some(branch) })
        }
        // What cannot be pushed is lost. The agent has worked, so what it used is charged.
        Err(error) => {
            let message = format!("cannot push the work: {error}");
            let outcome = match outcome {
                Outcome::Succeeded(success) => success.but_failed(FailureKind::Transient, message),
                failed @ Outcome::Failed(_) => failed,
            };
            Ok(AttemptResult { outcome, sha: None, files: None, branch: None })
        }
    }
}

/// What an attempt left.
struct LeftWork<'a> {
    work: &'a Work<'a>,
    place: &'a FleetCheckout,
    attempt: &'a Attempt,
    stage: &'a StagePlan,
    id: AttemptId,
    run: &'a Run,
}

impl LeftWork<'_> {
    /// Commits and pushes the work and the files: the commit of each, and the branch of the work.
    fn push(
        &self,
        base: &str,
        outcome: &Outcome,
        messages: &[String],
        cancel: &Cancel,
    ) -> Result<(String, String, String), WorkError> {
        let Self { work, place, id, .. } = self;
        let message = format!("{}: {} iteration {}", work.run_ref.name, self.stage.name, id.iteration);
        let more = self.more_files(outcome, messages)?;
        let sha = place.commit(base, &message)?;
        let files = work.files_of(*id, place, None, more)?;
        let name = work.branch(*id);
        let updates = vec![(name.clone(), sha.clone()), (format!("{name}-files"), files.clone())];
        // An attempt that is being stopped must not wait for the network.
        work.mirror.push_new(&place.tree(), &Push { updates, ..Push::default() }, cancel)?;
        let branch = name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned();
        Ok((sha, files, branch))
    }

    /// Files that are not in the directory of the attempt, or not as they are there.
    fn more_files(&self, outcome: &Outcome, messages: &[String]) -> Result<Vec<(String, Vec<u8>)>, WorkError> {
        let mut files = Vec::new();
        let mut add = |name: &str, path: &Path, most: u64| {
            if let Ok(part) = bounded::end_of(path, most).map(|part| part.bytes)
                && !part.is_empty()
            {
                files.push((name.to_owned(), without_secrets(part)));
            }
        };
        let plan = self.work.plan();
        if let Ok(public) = PublicFiles::open(&self.place.directory(), plan.kind, &plan.name) {
            let of = OutputOf { plan, run: self.run, stage: self.id.stage, iteration: self.id.iteration };
            if let Ok(Some(output)) = public.output_file(of) {
                add("output.md", &output, MOST_BYTES);
            }
            if let Ok(progress) = public.progress_file(plan, self.id.stage) {
                add("progress.md", &progress, MOST_BYTES);
            }
        }
        if matches!(self.stage.agent_of(self.id.iteration).kind, AgentKind::Command(_)) {
            add("out.log", &self.attempt.output(), MOST_BYTES);
        }
        add("err.log", &self.attempt.errors(), MOST_ERRORS);
        for name in self.stage.artifacts.keys() {
            let file = format!("artifact-{name}");
            // An artifact is a piece of the work, as the code is.
            if let Ok(content) = bounded::whole(&self.attempt.directory().join(&file), MOST_BYTES) {
                files.push((file, content));
            }
        }
        let json = |value: &serde_json::Value| serde_json::to_vec_pretty(value).map_err(std::io::Error::other);
        files.push(("usage.json".to_owned(), json(&serde_json::json!({ "usage": outcome.usage() }))?));
        if !messages.is_empty() {
            files.push(("notes.md".to_owned(), without_secrets(messages.join("\n").into_bytes())));
        }
        Ok(files)
    }
}

pub(super) fn check(cx: &WorkerContext, input: &CheckInput, cancel: &Cancel) -> Result<CheckReport, WorkError> {
    let (run_ref, id) = (&input.run_ref, input.id);
    let work = Work::begin(cx, run_ref, input.seq, cancel)?;
    let stage = work.stage(id.stage)?;
    if let Some(judge) = stage.judge.as_ref().filter(|_| input.checks.contains(&Check::Judge)) {
        allow_agent(cx, judge)?;
    }
    let place = work.enter(&format!("{}-check", attempt_key(id)), &input.sha, stage, &input.heads, cancel)?;
    let project = place.directory();
    let attempt = Attempt::at(place.root(), &run_ref.run_id, id);
    if let Some(files) = &input.files {
        let pattern = format!("{}{}-*", work.refs.attempts(), attempt_key(id));
        work.mirror.ensure(files, &[&pattern], cancel)?;
        steadfast_system::paths::create_private_dir(attempt.directory())?;
        for name in PUSHED {
            if let Some(content) = directory::read(&work.mirror, files, name)? {
                fs_err::write(attempt.directory().join(name), content)?;
            }
        }
    }
    let mut records = work.records(stage, &input.run, &input.heads, (&place, &project), &[]);
    let call = work.call(&input.run, (&place, &project), cancel);
    let facts = work::check(&call, id, input.checks.clone(), &mut records)?;
    if cancel.is_cancelled() {
        return Err(WorkError::Stopped);
    }
    let files = match &input.files {
        Some(earlier) if attempt.evidence().is_file() => Some(with_evidence(&work, id, &place, earlier, cancel)?),
        other => other.clone(),
    };
    Ok(CheckReport { facts, files })
}

/// Adds the evidence of the checks to the files of an attempt.
fn with_evidence(
    work: &Work<'_>,
    id: AttemptId,
    place: &FleetCheckout,
    earlier: &str,
    cancel: &Cancel,
) -> Result<String, WorkError> {
    place.secure()?;
    let files = work.files_of(id, place, Some(earlier), Vec::new())?;
    let updates = vec![(format!("{}-files", work.branch(id)), files.clone())];
    work.mirror.push_new(&place.tree(), &Push { updates, ..Push::default() }, cancel)?;
    Ok(files)
}

pub(super) fn condition(
    cx: &WorkerContext,
    input: &ConditionInput,
    cancel: &Cancel,
) -> Result<ConditionReport, WorkError> {
    let run_ref = &input.run_ref;
    let work = Work::begin(cx, run_ref, input.seq, cancel)?;
    let stage = work.stage(input.stage)?;
    let place = work.enter(&format!("{}-condition", input.stage), &input.sha, stage, &input.heads, cancel)?;
    let project = place.directory();
    let mut records = work.records(stage, &input.run, &input.heads, (&place, &project), &[]);
    let call = work.call(&input.run, (&place, &project), cancel);
    let (holds, detail) = work::decide(&call, input.stage, &mut records)?;
    Ok(ConditionReport { holds, detail })
}
