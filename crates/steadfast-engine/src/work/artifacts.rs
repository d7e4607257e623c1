//! Artifacts: files that an iteration has to leave. They are copied beside the public state of the run before the
//! iteration is committed, because its worktree may be removed. Of a text with secrets, the public copy has none, and later
//! stages get the copy in the folder of the run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use steadfast_model::run::{FailureKind, Outcome, StagePlan};
use steadfast_model::text;
use steadfast_system::bounded;

use super::{AttemptWork, RunRecords, RunView};
use crate::attempt::Attempt;
use crate::crash::{self, CrashPoint};
use crate::durable;
use crate::files::{FilesError, PublicFiles, without_secrets};

const ARTIFACT_BYTES: u64 = 64 << 20;
/// How many iterations of a parallel stage are listed.
const MOST_ITERATIONS: usize = 1_000;
/// Marks an attempt whose artifacts are copied.
const KEPT: &str = "artifacts-kept";

impl RunView<'_> {
    /// `${ARTIFACTS.name}`: the paths of the copies, for prompts that ask for them.
    pub(super) fn artifact_variables(&self, prompt: &str, records: &mut impl RunRecords) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::new();
        let plan = self.plan;
        let Ok(files) = PublicFiles::open(self.project, plan.kind, &plan.name) else { return variables };
        for (number, stage) in (1..).zip(&plan.stages) {
            for name in stage.artifacts.keys() {
                let variable = format!("ARTIFACTS.{name}");
                if !prompt.contains(&format!("${{{variable}}}")) {
                    continue;
                }
                let mut rows = records.end_of_stage(number, MOST_ITERATIONS).unwrap_or_default();
                rows.sort_by_key(|row| row.id);
                if !stage.parallel {
                    rows.drain(..rows.len().saturating_sub(1));
                }
                let copies = rows.iter().filter_map(|row| {
                    let attempt = Attempt::at(self.home, self.run_id, row.id);
                    there_again(&files, name, numbered(stage, row.id.iteration), &attempt).ok()
                });
                let mut paths: Vec<String> = copies.map(|path| path.display().to_string()).collect();
                paths.dedup();
                variables.insert(variable, paths.join("\n"));
            }
        }
        variables
    }
}

/// The path of a copy: the own one if it has secrets. A public one that is gone, because an agent ran `git clean`, is
/// written again.
fn there_again(files: &PublicFiles, name: &str, copy: Option<u32>, attempt: &Attempt) -> Result<PathBuf, FilesError> {
    let (path, own) = (files.artifact_file(name, copy)?, own_copy(attempt, name));
    let Ok(whole) = bounded::whole(&own, ARTIFACT_BYTES) else { return Ok(path) };
    if bounded::whole(&path, ARTIFACT_BYTES).is_ok_and(|public| public == whole) {
        return Ok(path);
    }
    let clean = without_secrets(whole.clone());
    if !path.exists() {
        files.save_artifact(name, copy, &clean)?;
    }
    Ok(if clean == whole { path } else { own })
}

/// The copy in the folder of the run, where git does not clean.
fn own_copy(attempt: &Attempt, name: &str) -> PathBuf {
    attempt.directory().join(format!("artifact-{name}"))
}

/// The number of a copy: each iteration of a parallel stage has one, otherwise the last one counts.
fn numbered(stage: &StagePlan, iteration: u32) -> Option<u32> {
    stage.parallel.then_some(iteration)
}

impl AttemptWork {
    /// Copies the artifacts of a successful attempt. One without all of them has failed.
    pub(super) fn with_artifacts(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Succeeded(success) => match self.keep_artifacts() {
                Ok(()) => Outcome::Succeeded(success),
                Err(message) => success.but_failed(FailureKind::NoResult, message),
            },
            failed @ Outcome::Failed(_) => failed,
        }
    }

    fn keep_artifacts(&self) -> Result<(), String> {
        if self.stage.artifacts.is_empty() {
            return Ok(());
        }
        let copy = numbered(&self.stage, self.id.iteration);
        let files = PublicFiles::open(&self.project, self.kind, &self.run).map_err(|error| error.to_string())?;
        let is_copied = |name: &String| files.artifact_file(name, copy).is_ok_and(|path| path.is_file());
        let mark = self.attempt.directory().join(KEPT);
        // An engine that was killed copied them, and removed the worktree.
        if mark.exists() && self.stage.artifacts.keys().all(is_copied) {
            return Ok(());
        }
        let directory = self.workplace.inside().map_err(|error| error.to_string())?;
        for (name, path) in &self.stage.artifacts {
            let lacks = |why: String| format!("the artifact `{}` is missing: {why}", text::headline(name, 100));
            let content = read(&directory, path).map_err(lacks)?;
            let clean = without_secrets(content.clone());
            let kept = || -> std::io::Result<()> {
                files.save_artifact(name, copy, &clean).map_err(as_io)?;
                let own = durable::hand_over(&own_copy(&self.attempt, name), &content);
                // Best effort of a text without secrets: it is needed only if the other copy is removed.
                if clean == content { Ok(()) } else { own }
            };
            self.wait_for_room(kept).map_err(|error| format!("cannot keep the artifact `{name}`: {error}"))?;
        }
        crash::point(CrashPoint::ArtifactsKept);
        self.wait_for_room(|| durable::mark(&mark)).map_err(|error| error.to_string())
    }
}

/// Reads a plain file inside of a directory.
fn read(directory: &Path, path: &str) -> Result<Vec<u8>, String> {
    let shown = text::headline(path, 200);
    let root = fs_err::canonicalize(directory).map_err(|error| error.to_string())?;
    let found = fs_err::canonicalize(root.join(path)).map_err(|_| format!("there is no file `{shown}`"))?;
    if !found.starts_with(&root) {
        return Err(format!("`{shown}` is outside of the directory where the agent works"));
    }
    bounded::whole(&found, ARTIFACT_BYTES).map_err(|error| error.to_string())
}

fn as_io(error: FilesError) -> std::io::Error {
    match error {
        FilesError::Io(error) => error,
        other => std::io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_is_a_plain_file_inside_of_the_directory() {
        let world = tempfile::tempdir().unwrap();
        let directory = world.path().join("project");
        fs_err::create_dir_all(directory.join("out")).unwrap();
        fs_err::write(directory.join("out/a.md"), "a").unwrap();
        fs_err::write(world.path().join("outside"), "x").unwrap();
        for (target, link) in [("out/a.md", "inner"), ("../outside", "outer")] {
            std::os::unix::fs::symlink(target, directory.join(link)).unwrap();
        }
        assert_eq!(read(&directory, "out/a.md").unwrap(), b"a");
        assert_eq!(read(&directory, "inner").unwrap(), b"a");
        assert_eq!(read(&directory, "none").unwrap_err(), "there is no file `none`");
        for path in ["outer", "../outside", "/etc/passwd"] {
            let error = read(&directory, path).unwrap_err();
            assert_eq!(error, format!("`{path}` is outside of the directory where the agent works"));
        }
        assert!(read(&directory, "out").unwrap_err().ends_with("is not a file"));
    }
}
