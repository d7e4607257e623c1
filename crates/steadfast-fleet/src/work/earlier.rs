//! A new run with the name of one that is over: the earlier run gets the name with a number, `NAME.1`, and all its
//! branches with it. It is copied before anything of it is replaced, so a failure in between loses nothing.

use std::path::Path;

use steadfast_engine::process::Cancel;
use steadfast_model::run::{Plan, RunStatus, name};

use super::WorkError;
use crate::git::Refs;
use crate::git::directory::{PLAN, RunDirectory, RunState, STATE};
use crate::git::import::NewCommit;
use crate::git::mirror::{Mirror, Push};
use crate::wire::RunRef;

/// What the repository has of an earlier run of a name, before a new one replaces it.
pub(super) struct EarlierRun {
    /// Its new name.
    pub(super) name: String,
    /// The branches, with their commits.
    taken: Vec<(String, String)>,
    parallel: Vec<(String, String)>,
}

impl EarlierRun {
    /// Finds an earlier run and copies it to a name with a number. `None` if there is none; an error if it is not over,
    /// or if the branch is not one of a run.
    pub(super) fn set_aside(mirror: &Mirror, refs: &Refs, run: &str) -> Result<Option<Self>, WorkError> {
        let exists = || WorkError::Exists(run.to_owned());
        let mut taken = mirror.remote_refs(&refs.code())?;
        let directories = mirror.remote_refs(&refs.directory())?;
        if taken.is_empty() && directories.is_empty() {
            return Ok(None);
        }
        if directories.is_empty() {
            return Err(exists());
        }
        let directory = RunDirectory::fetched(mirror, refs, &Cancel::default())?;
        if directory.state.run.status == RunStatus::Running {
            return Err(exists());
        }
        taken.extend(directories);
        let parallel = mirror.remote_refs(&refs.place("*"))?;
        let (name, aside) = free_name(mirror, run)?;
        let earlier = Self { name, taken, parallel };
        earlier.copy(mirror, refs, &aside, &directory)?;
        Ok(Some(earlier))
    }

    /// Where a branch of the earlier run is; empty if it has none.
    pub(super) fn commit_of(&self, branch: &str) -> String {
        self.taken.iter().find(|(name, _)| name == branch).map(|(_, sha)| sha.clone()).unwrap_or_default()
    }

    fn copy(&self, mirror: &Mirror, refs: &Refs, aside: &Refs, directory: &RunDirectory) -> Result<(), WorkError> {
        let wanted: Vec<&str> = self.taken.iter().chain(&self.parallel).map(|(name, _)| name.as_str()).collect();
        mirror.fetch(&wanted, &Cancel::default())?;
        let mut updates = vec![(aside.directory(), renamed(mirror, directory, &self.name)?)];
        updates.extend(
            self.taken.iter().filter(|(name, _)| *name == refs.code()).map(|(_, sha)| (aside.code(), sha.clone())),
        );
        let (places, new_places) = (refs.place(""), aside.place(""));
        updates.extend(self.parallel.iter().map(|(name, sha)| (name.replacen(&places, &new_places, 1), sha.clone())));
        let leases = updates.iter().map(|(name, _)| (name.clone(), String::new())).collect();
        mirror.push(mirror.path(), &Push { updates, leases })
    }

    /// Deletes branches that only the earlier run has; its copy has them under its new name.
    pub(super) fn delete_rest(&self, mirror: &Mirror) -> Result<(), WorkError> {
        mirror.delete(&self.parallel.iter().map(|(name, _)| name.clone()).collect::<Vec<String>>())
    }
}

/// The first name with a number that no run of the repository has.
fn free_name(mirror: &Mirror, run: &str) -> Result<(String, Refs), WorkError> {
    let refs = Refs::named(&name::in_branch(run));
    let mut found = mirror.remote_refs(&format!("{}.*", refs.code()))?;
    found.extend(mirror.remote_refs(&format!("{}.*", refs.directory()))?);
    let names = (1..=u32::MAX).map(|number| format!("{run}.{number}"));
    let mut names = names.map(|name| {
        let refs = Refs::named(&name::in_branch(&name));
        (name, refs)
    });
    let is_free = |refs: &Refs| !found.iter().any(|(name, _)| [refs.code(), refs.directory()].contains(name));
    names.find(|(_, refs)| is_free(refs)).ok_or_else(|| WorkError::Exists(run.to_owned()))
}

/// A commit with the run directory under another name, so that `status`, `pull` and `resume` find its own branches.
fn renamed(mirror: &Mirror, directory: &RunDirectory, run: &str) -> Result<String, WorkError> {
    let plan = Plan { name: run.to_owned(), ..directory.plan.as_ref().clone() };
    let mut run_ref = directory.state.run_ref.clone();
    run.clone_into(&mut run_ref.name);
    run_ref.repo.branch = format!("steadfast/{}", name::in_branch(run));
    let (sha, _) = with_plan(mirror, directory, &plan, run_ref, "a later run has the name")?;
    Ok(sha)
}

/// A commit with a run directory that has another plan, and the run with that plan.
fn with_plan(
    mirror: &Mirror,
    directory: &RunDirectory,
    plan: &Plan,
    run_ref: RunRef,
    why: &str,
) -> Result<(String, RunRef), WorkError> {
    let message = format!("{}: {why}", run_ref.name);
    // The state names the blob of the plan, so it comes with a second commit.
    let mut commit = NewCommit::on(Some(&directory.tip), &message);
    let first =
        commit.file(PLAN, serde_json::to_vec_pretty(plan).map_err(std::io::Error::other)?).write(mirror.path())?;
    let missing = || WorkError::Damaged(PLAN.to_owned(), "it was not written".to_owned());
    let plan_sha = mirror.resolve(&format!("{first}:{PLAN}")).ok_or_else(missing)?;
    let run_ref = RunRef { plan_sha, ..run_ref };
    let state = RunState { run_ref: run_ref.clone(), ..directory.state.clone() };
    let mut commit = NewCommit::on(Some(&first), &message);
    let sha =
        commit.file(STATE, serde_json::to_vec_pretty(&state).map_err(std::io::Error::other)?).write(mirror.path())?;
    Ok((sha, run_ref))
}

/// Pushes another plan of a run that is over, before it is resumed.
pub(super) fn change_plan(home: &Path, directory: &RunDirectory, plan: &Plan) -> Result<RunRef, WorkError> {
    let run_ref = directory.state.run_ref.clone();
    let mirror = Mirror::open(home, &run_ref.repo.url)?;
    let branch = Refs::of(&run_ref).directory();
    let (sha, run_ref) = with_plan(&mirror, directory, plan, run_ref, "other limits")?;
    let push = Push { updates: vec![(branch.clone(), sha)], leases: vec![(branch, directory.tip.clone())] };
    mirror.push(mirror.path(), &push)?;
    mirror.keep(&push.updates)?;
    Ok(run_ref)
}
