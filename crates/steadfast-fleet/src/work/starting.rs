//! Starting a run: its code and its run directory are pushed before any worker hears of it.

use std::path::Path;

use steadfast_engine::process::Cancel;
use steadfast_model::clock;
use steadfast_model::run::{Plan, machine, name, sealed};

use super::earlier::EarlierRun;
use super::upkeep::first_state;
use super::{NewFleetRun, StartedRun, WorkError, WorkerContext, repository};
use crate::git::directory::{PLAN, RunDirectory, STATE};
use crate::git::import::NewCommit;
use crate::git::mirror::{Mirror, Push};
use crate::git::{GitCall, Refs, check_address};
use crate::wire::{ForkInput, RepoRef, RunRef};

/// How many changed files an error names.
const MOST_NAMED: usize = 3;

pub(super) fn start_run(new: &NewFleetRun<'_>) -> Result<StartedRun, WorkError> {
    let (_, secrets) = sealed::seal(new.plan).map_err(std::io::Error::other)?;
    if !secrets.is_empty() {
        let places: Vec<String> = secrets.into_keys().collect();
        return Err(WorkError::Secrets(places.join(", ")));
    }
    let git = || GitCall::at(new.project);
    let base = git().text(&["rev-parse", "--verify", "HEAD^{commit}"])?;
    let subdirectory = git().text(&["rev-parse", "--show-prefix"])?.trim_end_matches('/').to_owned();
    if !new.allow_dirty {
        require_clean(new.project)?;
    }
    let url = match new.repo_url {
        Some(url) => url.to_owned(),
        None => git().text(&["remote", "get-url", "origin"])?,
    };
    check_address(&url)?;
    let url = absolute(&url, new.project);
    let mirror = Mirror::open(new.home, &url)?;
    let branch = format!("steadfast/{}", name::in_branch(&new.plan.name));
    let repo = RepoRef { url, branch, base: base.clone(), subdirectory };
    let run_ref = RunRef { name: new.plan.name.clone(), run_id: new.run_id.to_owned(), repo, plan_sha: String::new() };
    let refs = Refs::of(&run_ref);
    let earlier = EarlierRun::set_aside(&mirror, &refs, &run_ref.name)?;
    push_code(&mirror, new.project, &refs, &base, earlier.as_ref())?;
    let texts = [("inputs.md", new.inputs), ("objective.md", Some(new.objective)), ("definition.yaml", new.definition)];
    let run_ref = push_directory(&mirror, &refs, run_ref, new.plan, &texts, earlier.as_ref())?;
    Ok(StartedRun { run_ref, earlier: earlier.map(|earlier| earlier.name) })
}

/// Pushes the commit that a run starts from. Its branch must be new, or still that of the earlier run.
fn push_code(
    mirror: &Mirror,
    from: &Path,
    refs: &Refs,
    base: &str,
    earlier: Option<&EarlierRun>,
) -> Result<(), WorkError> {
    let code = refs.code();
    let before = earlier.map(|earlier| earlier.commit_of(&code)).unwrap_or_default();
    let push = Push { updates: vec![(code.clone(), base.to_owned())], leases: vec![(code, before)] };
    mirror.push(from, &push)
}

fn push_directory(
    mirror: &Mirror,
    refs: &Refs,
    mut run_ref: RunRef,
    plan: &Plan,
    texts: &[(&str, Option<&str>)],
    earlier: Option<&EarlierRun>,
) -> Result<RunRef, WorkError> {
    let json = |value: serde_json::Result<Vec<u8>>| value.map_err(|error| WorkError::Io(std::io::Error::other(error)));
    let mut commit = NewCommit::on(None, &format!("{}: the plan", run_ref.name));
    commit.file(PLAN, json(serde_json::to_vec_pretty(plan))?);
    for (name, text) in texts {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            commit.file(name, steadfast_engine::files::without_secrets(text.as_bytes().to_vec()));
        }
    }
    // The state names the blob of the plan, so it comes with a second commit.
    let first = commit.write(mirror.path())?;
    let missing = || WorkError::Damaged(PLAN.to_owned(), "it was not written".to_owned());
    run_ref.plan_sha = mirror.resolve(&format!("{first}:{PLAN}")).ok_or_else(missing)?;
    let state = first_state(&run_ref, machine::begin(plan, clock::now()));
    let mut commit = NewCommit::on(Some(&first), &format!("{}: the state", run_ref.name));
    let sha = commit.file(STATE, json(serde_json::to_vec_pretty(&state))?).write(mirror.path())?;
    let name = refs.directory();
    let before = |branch: &str| earlier.map(|earlier| earlier.commit_of(branch)).unwrap_or_default();
    let push = Push { updates: vec![(name.clone(), sha)], leases: vec![(name.clone(), before(&name))] };
    if let Err(error) = mirror.push(mirror.path(), &push) {
        // The code goes back to where it was, else the name would stay taken.
        let (code, base) = (refs.code(), run_ref.repo.base.clone());
        let back = Push { updates: vec![(code.clone(), before(&code))], leases: vec![(code, base)] };
        return match mirror.push(mirror.path(), &back) {
            Ok(()) => Err(error),
            Err(second) => {
                Err(WorkError::Git { what: "push".to_owned(), message: format!("{error}; and then {second}") })
            }
        };
    }
    mirror.keep(&push.updates)?;
    if let Some(earlier) = earlier {
        earlier.delete_rest(mirror)?;
    }
    Ok(run_ref)
}

/// Fails if the working tree has changes, which would not travel. State files of runs do not count.
fn require_clean(project: &Path) -> Result<(), WorkError> {
    let listed = GitCall::at(project).text(&["status", "--porcelain", "-z", "--no-renames"])?;
    let is_ours = |name: &str| {
        let inside = name.rsplit_once(".claude/").map(|(_, inside)| inside);
        inside.is_some_and(|it| {
            it.is_empty() || ["loop-", "pipeline-runs", ".steadfast"].iter().any(|p| it.starts_with(p))
        })
    };
    let names: Vec<&str> =
        listed.split('\0').filter_map(|entry| entry.get(3..)).filter(|name| !is_ours(name)).collect();
    if names.is_empty() {
        return Ok(());
    }
    let more = if names.len() > MOST_NAMED { ", …" } else { "" };
    let shown: Vec<String> =
        names.iter().take(MOST_NAMED).map(|name| steadfast_model::text::headline(name, 60)).collect();
    Err(WorkError::Dirty(format!("{}{more}", shown.join(", "))))
}

/// A path on this machine as workers on it find it from anywhere.
fn absolute(url: &str, project: &Path) -> String {
    let path = project.join(url);
    let is_path = !url.contains("://") && path.exists();
    match fs_err::canonicalize(&path) {
        Ok(path) if is_path => path.display().to_string(),
        _ => url.to_owned(),
    }
}

pub(super) fn fork(cx: &WorkerContext, input: &ForkInput) -> Result<RunRef, WorkError> {
    let (mirror, from) = repository(cx, &input.from)?;
    let directory = RunDirectory::fetched(&mirror, &from, &Cancel::default())?;
    let branch = format!("steadfast/{}", name::in_branch(&input.name));
    let repo = RepoRef { branch, ..input.from.repo.clone() };
    let mut run_ref = RunRef { name: input.name.clone(), run_id: input.run_id.clone(), repo, plan_sha: String::new() };
    let (_, refs) = repository(cx, &run_ref)?;
    // A repeated call finds what an earlier one pushed.
    if let Ok(earlier) = RunDirectory::fetched(&mirror, &refs, &Cancel::default())
        && earlier.state.run_ref.run_id == input.run_id
    {
        return Ok(earlier.state.run_ref);
    }
    mirror.fetch(&[&from.code()], &Cancel::default())?;
    run_ref.repo.base = mirror.kept(&from.code()).ok_or_else(|| WorkError::NoRun(input.from.name.clone()))?;
    let code = refs.code();
    if mirror.remote_refs(&code)?.is_empty() {
        let updates = vec![(code, run_ref.repo.base.clone())];
        mirror.push(mirror.path(), &Push { updates, ..Push::default() })?;
    }
    let plan = Plan { name: input.name.clone(), ..directory.plan.as_ref().clone() };
    let (inputs, objective) = (directory.text("inputs.md")?, directory.text("objective.md")?);
    let definition = directory.text("definition.yaml")?;
    let texts = [
        ("inputs.md", inputs.as_deref()),
        ("objective.md", objective.as_deref()),
        ("definition.yaml", definition.as_deref()),
    ];
    push_directory(&mirror, &refs, run_ref, &plan, &texts, None)
}
