//! The run directory: the branch `steadfast-runs/RUN` of the repository, with all that later prompts, `status`, `pull` and
//! `resume` need when Temporal has forgotten the run.
//!
//! | path | content |
//! | --- | --- |
//! | `plan.json` | the plan |
//! | `state.json` | [`RunState`] |
//! | `records/000000.jsonl` | the records, 500 in each file, one line for each with its number |
//! | `attempts/S/HH/I-A/` | files of an attempt; `HH` is the iteration divided by 100 |
//! | `progress/S.md` | the progress file of a stage |
//! | `inputs.md`, `objective.md`, `definition.yaml` | what the run was started with |

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use steadfast_engine::process::Cancel;
use steadfast_model::run::{AttemptId, Plan, Record, Run, name};

use super::mirror::Mirror;
use super::{Refs, WorkError};
use crate::wire::{AttemptShas, FleetOptions, Heads, RunRef, attempt_key};

/// Records in one file.
pub(crate) const SEGMENT: u64 = 500;
/// Outputs are at most as long as what an attempt pushes.
const MOST_BYTES: u64 = 128 << 20;

pub(crate) const PLAN: &str = "plan.json";
pub(crate) const STATE: &str = "state.json";

/// `state.json` of a run directory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunState {
    pub run_ref: RunRef,
    pub run: Run,
    pub heads: Heads,
    /// Records written so far.
    pub seq: u64,
    pub shas: BTreeMap<String, AttemptShas>,
    pub options: FleetOptions,
}

impl RunState {
    /// Attempts that are neither committed nor over, as `S-I-A`.
    pub(crate) fn open_attempts(&self) -> impl Iterator<Item = String> {
        let active = self.run.active.iter().map(|attempt| attempt.id);
        let undecided = self.run.stages.iter().flat_map(|stage| &stage.undecided).map(|undecided| undecided.id);
        active.chain(undecided).map(attempt_key).filter(|key| self.shas.contains_key(key))
    }
}

/// A line of the records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct NumberedRecord {
    pub(crate) seq: u64,
    pub(crate) record: Record,
}

/// The run directory, as it was when it was opened.
#[derive(Debug, Clone)]
pub struct RunDirectory {
    pub plan: Arc<Plan>,
    pub state: RunState,
    mirror: Mirror,
    /// The commit.
    pub(crate) tip: String,
}

pub(crate) fn folder_of(id: AttemptId) -> String {
    format!("attempts/{}/{:02}/{}-{}", id.stage, id.iteration / 100, id.iteration, id.attempt)
}

pub(crate) fn segment_file(segment: u64) -> String {
    format!("records/{segment:06}.jsonl")
}

pub(crate) fn progress_file(stage: u32) -> String {
    format!("progress/{stage}.md")
}

/// Reads a file of a commit; `None` if there is none.
pub(crate) fn read(mirror: &Mirror, commit: &str, path: &str) -> Result<Option<Vec<u8>>, WorkError> {
    let Some(sha) = mirror.resolve(&format!("{commit}:{path}")) else { return Ok(None) };
    mirror.git().bytes(&["cat-file", "blob", &sha], MOST_BYTES).map(Some)
}

fn parse<T: serde::de::DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T, WorkError> {
    serde_json::from_slice(bytes).map_err(|error| WorkError::Damaged(what.to_owned(), error.to_string()))
}

/// Plans by their blobs: a run has one for all its attempts.
static PLANS: Mutex<Option<HashMap<String, Arc<Plan>>>> = Mutex::new(None);
const MOST_PLANS: usize = 1_000;

/// The plan in a blob.
pub(crate) fn plan_in(mirror: &Mirror, sha: &str) -> Result<Option<Arc<Plan>>, WorkError> {
    let known = || PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(plan) = known().as_ref().and_then(|plans| plans.get(sha)) {
        return Ok(Some(plan.clone()));
    }
    if !super::mirror::is_sha(sha) || !mirror.git().succeeds(&["cat-file", "-e", sha])? {
        return Ok(None);
    }
    let plan: Plan = parse(&mirror.git().bytes(&["cat-file", "blob", sha], MOST_BYTES)?, PLAN)?;
    let plan = Arc::new(plan);
    let mut plans = known();
    let plans = plans.get_or_insert_default();
    if plans.len() >= MOST_PLANS {
        plans.clear();
    }
    plans.insert(sha.to_owned(), plan.clone());
    Ok(Some(plan))
}

impl RunDirectory {
    /// Fetches the run directory of a run; `url` is the repository.
    pub fn open(home: &Path, url: &str, run: &str) -> Result<Self, WorkError> {
        let mirror = Mirror::open(home, url)?;
        let refs = Refs::named(&name::in_branch(run));
        Self::fetched(&mirror, &refs, &Cancel::default()).map_err(|error| match error {
            WorkError::Git { message, .. } if message.contains("couldn't find remote ref") => {
                WorkError::NoRun(run.to_owned())
            }
            other => other,
        })
    }

    /// The run directory as this machine saw it last; `None` if it never did.
    pub fn last_seen(home: &Path, url: &str, run: &str) -> Result<Option<Self>, WorkError> {
        Self::kept(&Mirror::open(home, url)?, &Refs::named(&name::in_branch(run)))
    }

    pub(crate) fn fetched(mirror: &Mirror, refs: &Refs, cancel: &Cancel) -> Result<Self, WorkError> {
        mirror.fetch(&[&refs.directory()], cancel)?;
        Self::kept(mirror, refs)?.ok_or_else(|| WorkError::NoRun(refs.0.clone()))
    }

    /// The run directory as the mirror has it.
    pub(crate) fn kept(mirror: &Mirror, refs: &Refs) -> Result<Option<Self>, WorkError> {
        mirror.kept(&refs.directory()).map(|tip| Self::at(mirror, tip)).transpose()
    }

    pub(crate) fn at(mirror: &Mirror, tip: String) -> Result<Self, WorkError> {
        let missing = |what: &str| WorkError::Damaged(what.to_owned(), "it is missing".to_owned());
        let state = read(mirror, &tip, STATE)?.ok_or_else(|| missing(STATE))?;
        let plan = mirror.resolve(&format!("{tip}:{PLAN}")).ok_or_else(|| missing(PLAN))?;
        Ok(Self {
            plan: plan_in(mirror, &plan)?.ok_or_else(|| missing(PLAN))?,
            state: parse(&state, STATE)?,
            mirror: mirror.clone(),
            tip,
        })
    }

    /// Whether it is of this run, and not of an earlier or a later one of the same name.
    pub(crate) fn is_of(&self, run: &RunRef) -> bool {
        self.state.run_ref.run_id == run.run_id
    }

    pub(crate) fn only_of(self, run: &RunRef) -> Result<Self, WorkError> {
        let other =
            || WorkError::Damaged("the run directory".to_owned(), format!("another run has the name {}", run.name));
        if self.is_of(run) { Ok(self) } else { Err(other()) }
    }

    /// The run directory with at least so many records; fetched only if the mirror has fewer.
    pub(crate) fn with_records(mirror: &Mirror, run: &RunRef, seq: u64, cancel: &Cancel) -> Result<Self, WorkError> {
        let refs = &Refs::of(run);
        if let Some(kept) = Self::kept(mirror, refs)?.filter(|kept| kept.is_of(run) && kept.state.seq >= seq) {
            return Ok(kept);
        }
        let fetched = Self::fetched(mirror, refs, cancel)?.only_of(run)?;
        if fetched.state.seq < seq {
            return Err(WorkError::Behind { name: refs.0.clone(), found: fetched.state.seq, wanted: seq });
        }
        Ok(fetched)
    }

    /// The names of the runs in a repository.
    pub fn list(home: &Path, url: &str) -> Result<Vec<String>, WorkError> {
        let prefix = Refs::named("").directory();
        let found = Mirror::open(home, url)?.remote_refs(&format!("{prefix}*"))?;
        Ok(found.into_iter().filter_map(|(name, _)| name.strip_prefix(&prefix).map(str::to_owned)).collect())
    }

    /// The records from a number on.
    pub fn records(&self, from: u64) -> Result<Vec<Record>, WorkError> {
        let mut records = Vec::new();
        for segment in from / SEGMENT..self.state.seq.div_ceil(SEGMENT) {
            let lines = self.segment(segment)?.into_iter().filter(|line| line.seq >= from);
            records.extend(lines.map(|line| line.record));
        }
        Ok(records)
    }

    /// The records of one file.
    pub(crate) fn segment(&self, segment: u64) -> Result<Vec<NumberedRecord>, WorkError> {
        let file = segment_file(segment);
        let text = read(&self.mirror, &self.tip, &file)?.unwrap_or_default();
        text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(|line| parse(line, &file)).collect()
    }

    /// A file of an attempt: `prompt.md`, `answer.md`, `output.md`, `result.json`, `evidence.json`, `usage.json`, and
    /// `out.log` of a command.
    pub fn file(&self, id: AttemptId, name: &str) -> Result<Option<Vec<u8>>, WorkError> {
        read(&self.mirror, &self.tip, &format!("{}/{name}", folder_of(id)))
    }

    /// The names of an attempt's files.
    pub fn files(&self, id: AttemptId) -> Result<Vec<String>, WorkError> {
        let Some(tree) = self.mirror.resolve(&format!("{}:{}", self.tip, folder_of(id))) else { return Ok(Vec::new()) };
        let listed = self.mirror.git().text(&["ls-tree", "--name-only", "-z", &tree])?;
        Ok(listed.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// A text of the run: `inputs.md`, `objective.md`, `definition.yaml`, or `progress/S.md`.
    pub fn text(&self, name: &str) -> Result<Option<String>, WorkError> {
        Ok(read(&self.mirror, &self.tip, name)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }
}
