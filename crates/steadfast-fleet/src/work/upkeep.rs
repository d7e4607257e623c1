//! What the worker that drives runs does for their branches: records, heads, cleaning up. Every call can be repeated.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use steadfast_engine::process::Cancel;
use steadfast_model::run::{Plan, Record};

use super::{WorkError, WorkerContext, repository};
use crate::git::Refs;
use crate::git::directory::{
    NumberedRecord, RunDirectory, RunState, SEGMENT, STATE, folder_of, plan_in, progress_file, segment_file,
};
use crate::git::import::NewCommit;
use crate::git::mirror::{Mirror, Push};
use crate::wire::{Heads, RUN_PLACE, RecordInput, RunRef};

/// How often a push that lost a race is tried again.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(100);

pub(super) fn plan_of(cx: &WorkerContext, run: &RunRef) -> Result<Arc<Plan>, WorkError> {
    let (mirror, refs) = repository(cx, run)?;
    if let Some(plan) = plan_in(&mirror, &run.plan_sha)? {
        return Ok(plan);
    }
    mirror.fetch(&[&refs.directory()], &Cancel::default())?;
    let missing = || WorkError::Damaged("plan.json".to_owned(), "it is not in the run directory".to_owned());
    plan_in(&mirror, &run.plan_sha)?.ok_or_else(missing)
}

pub(super) fn record(cx: &WorkerContext, input: &RecordInput) -> Result<(), WorkError> {
    let (mirror, refs) = repository(cx, &input.run_ref)?;
    let is_known = |known: &RunDirectory| known.is_of(&input.run_ref) && known.state.seq >= input.seq;
    let known = RunDirectory::kept(&mirror, &refs)?.filter(is_known);
    if let Some(directory) = known {
        let written = new_directory(&mirror, &refs, &directory, input)?;
        let moved = new_heads(&mirror, &refs, input)?;
        if all_at_once(&mirror, &refs, input, written, &moved).is_ok() {
            return Ok(());
        }
    }
    // The mirror was behind, or another process wrote: one thing after the other, from where the repository is.
    let mut tries = 0;
    loop {
        let directory = RunDirectory::fetched(&mirror, &refs, &Cancel::default())?.only_of(&input.run_ref)?;
        let Some(push) = new_directory(&mirror, &refs, &directory, input)? else { break };
        match mirror.push(mirror.path(), &push) {
            Ok(()) => {
                mirror.keep(&push.updates)?;
                break;
            }
            Err(error) if tries >= TRIES => return Err(error),
            Err(_) => tries += 1,
        }
        std::thread::sleep(PAUSE * tries);
    }
    let moved = new_heads(&mirror, &refs, input)?;
    move_from_where_they_are(&mirror, &moved)?;
    mirror.keep(&moved)?;
    // The end of the run tries again.
    if let Err(error) = mirror.delete(&attempts_of_committed(&mirror, &refs, input)?) {
        tracing::warn!("branches of attempts of {} are not deleted yet: {error}", input.run_ref.name);
    }
    Ok(())
}

/// One push of the run directory, the heads, and the attempts that are over.
fn all_at_once(
    mirror: &Mirror,
    refs: &Refs,
    input: &RecordInput,
    directory: Option<Push>,
    moved: &[(String, String)],
) -> Result<(), WorkError> {
    let mut push = directory.unwrap_or_default();
    for (name, sha) in moved {
        push.leases.push((name.clone(), mirror.kept(name).unwrap_or_default()));
        push.updates.push((name.clone(), sha.clone()));
    }
    let over = attempts_of_committed(mirror, refs, input)?;
    push.updates.extend(over.into_iter().map(|name| (name, String::new())));
    if push.updates.is_empty() {
        return Ok(());
    }
    mirror.push(mirror.path(), &push)?;
    mirror.keep(&push.updates)
}

/// The push of a run directory with the records that it does not have and its new state; `None` if it has all.
fn new_directory(
    mirror: &Mirror,
    refs: &Refs,
    directory: &RunDirectory,
    input: &RecordInput,
) -> Result<Option<Push>, WorkError> {
    let has = directory.state.seq;
    if has < input.seq {
        return Err(WorkError::Behind { name: input.run_ref.name.clone(), found: has, wanted: input.seq });
    }
    let end = input.seq.saturating_add(input.records.len() as u64);
    let state = RunState {
        run_ref: input.run_ref.clone(),
        run: input.run.clone(),
        heads: input.heads.clone(),
        seq: end,
        shas: input.shas.clone(),
        options: input.options.clone(),
    };
    // Written by an earlier call, or a later state is there already.
    if has > end || directory.state == state {
        return Ok(None);
    }
    let mut commit = NewCommit::on(Some(&directory.tip), &format!("{}: records to {end}", input.run_ref.name));
    let new: Vec<NumberedRecord> = (input.seq..)
        .zip(&input.records)
        .filter(|(seq, _)| *seq >= has)
        .map(|(seq, record)| NumberedRecord { seq, record: record.clone() })
        .collect();
    for segment in new.iter().map(|line| line.seq / SEGMENT).collect::<BTreeSet<u64>>() {
        let mut lines = directory.segment(segment)?;
        lines.extend(new.iter().filter(|line| line.seq / SEGMENT == segment).cloned());
        let mut text = Vec::new();
        for line in &lines {
            serde_json::to_writer(&mut text, line).map_err(std::io::Error::other)?;
            text.push(b'\n');
        }
        commit.file(&segment_file(segment), text);
    }
    for (id, files) in &input.files {
        let pattern = format!("{}{}-*", refs.attempts(), crate::wire::attempt_key(*id));
        mirror.ensure(files, &[&pattern], &Cancel::default())?;
        let Some(tree) = mirror.resolve(&format!("{files}^{{tree}}")) else { continue };
        commit.tree(&folder_of(*id), &tree);
        let is_committed = |record: &Record| matches!(record, Record::Committed { id: of, .. } if of == id);
        if input.records.iter().any(is_committed)
            && let Some(progress) = mirror.resolve(&format!("{files}:progress.md"))
        {
            commit.blob(&progress_file(id.stage), &progress);
        }
    }
    commit.file(STATE, serde_json::to_vec_pretty(&state).map_err(std::io::Error::other)?);
    let sha = commit.write(mirror.path())?;
    let name = refs.directory();
    let (updates, leases) = (vec![(name.clone(), sha)], vec![(name, directory.tip.clone())]);
    Ok(Some(Push { updates, leases }))
}

/// The branches of the run and its places that are not at their heads, with these.
fn new_heads(mirror: &Mirror, refs: &Refs, input: &RecordInput) -> Result<Vec<(String, String)>, WorkError> {
    let mut moved = Vec::new();
    for (place, sha) in &input.heads.0 {
        let name = if place == RUN_PLACE { refs.code() } else { refs.place(place) };
        if mirror.kept(&name).as_ref() != Some(sha) {
            mirror.ensure(sha, &[&format!("{}*", refs.attempts()), &refs.code()], &Cancel::default())?;
            moved.push((name, sha.clone()));
        }
    }
    Ok(moved)
}

/// The branches of attempts whose iterations are committed with these records, as far as the mirror knows them.
fn attempts_of_committed(mirror: &Mirror, refs: &Refs, input: &RecordInput) -> Result<Vec<String>, WorkError> {
    let committed: Vec<String> = input
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Committed { id, .. } => Some(format!("{}{}-{}-", refs.attempts(), id.stage, id.iteration)),
            _ => None,
        })
        .collect();
    if committed.is_empty() {
        return Ok(Vec::new());
    }
    let known = mirror.kept_below(&refs.attempts())?.into_iter().map(|(name, _)| name);
    Ok(known.filter(|name| committed.iter().any(|prefix| name.starts_with(prefix.as_str()))).collect())
}

/// Moves branches from where the repository has them, if that is a part of where they go to.
fn move_from_where_they_are(mirror: &Mirror, updates: &[(String, String)]) -> Result<(), WorkError> {
    for (name, sha) in updates {
        let now = mirror.remote_refs(name)?.into_iter().find(|(found, _)| found == name).map(|(_, sha)| sha);
        if now.as_ref() == Some(sha) {
            continue;
        }
        if let Some(now) = &now {
            mirror.ensure(now, &[name], &Cancel::default())?;
            if !mirror.git().succeeds(&["merge-base", "--is-ancestor", now, sha])? {
                let branch = name.strip_prefix("refs/heads/").unwrap_or(name);
                let message = format!("{branch} has commits that are not of this run");
                return Err(WorkError::Git { what: "push".to_owned(), message });
            }
        }
        let push =
            Push { updates: vec![(name.clone(), sha.clone())], leases: vec![(name.clone(), now.unwrap_or_default())] };
        mirror.push(mirror.path(), &push)?;
    }
    Ok(())
}

pub(super) fn publish(cx: &WorkerContext, run: &RunRef, head: &str) -> Result<(), WorkError> {
    let (mirror, refs) = repository(cx, run)?;
    let (code, attempts) = (refs.code(), format!("{}*", refs.attempts()));
    mirror.ensure(head, &[&code, &attempts], &Cancel::default())?;
    let updates = [(code, head.to_owned())];
    move_from_where_they_are(&mirror, &updates)?;
    mirror.keep(&updates)
}

pub(super) fn clean(cx: &WorkerContext, run: &RunRef) -> Result<(), WorkError> {
    let (mirror, refs) = repository(cx, run)?;
    let attempts = refs.attempts();
    // A resumed run tests successes that were not tested when it was stopped.
    let directory = RunDirectory::fetched(&mirror, &refs, &Cancel::default())?;
    let needed: Vec<String> = directory.state.open_attempts().map(|key| format!("{attempts}{key}-")).collect();
    let is_over = |name: &String| !needed.iter().any(|prefix| name.starts_with(prefix.as_str()));
    let found: Vec<String> = mirror.remote_refs(&format!("{attempts}*"))?.into_iter().map(|(name, _)| name).collect();
    mirror.delete(&found.into_iter().filter(is_over).collect::<Vec<String>>())?;
    let known = mirror.kept_below(&attempts)?.into_iter().map(|(name, _)| name).filter(is_over);
    mirror.keep(&known.map(|name| (name, String::new())).collect::<Vec<_>>())
}

/// The first state of a run directory.
pub(super) fn first_state(run_ref: &RunRef, run: steadfast_model::run::Run) -> RunState {
    let mut heads = Heads::default();
    heads.set(RUN_PLACE, &run_ref.repo.base);
    RunState { run_ref: run_ref.clone(), run, heads, ..RunState::default() }
}
