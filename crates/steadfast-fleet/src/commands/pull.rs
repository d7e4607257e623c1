//! `fleet pull`: brings the branches of a run into this repository, and writes its public state files as a run on this
//! machine would.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use steadfast_engine::attempt::Attempt;
use steadfast_engine::publish::{PublishError, Publisher};
use steadfast_engine::run_folder::RunFolder;
use steadfast_model::run::{AttemptId, Record, name};

use super::{FoundRun, Here};
use crate::cli::NamedRunArgs;
use crate::output::{self, CommandError, CommandResult, Output, code};
use crate::show::ShownRun;
use crate::work::RunDirectory;

pub(super) async fn pull(here: &Here, run: &NamedRunArgs) -> CommandResult {
    let found = here.find_run(run).await?;
    let run_name = run.name.as_str();
    let root = root_of(&here.project)?;
    let branch = found.directory.state.run_ref.repo.branch.clone();
    let kept = format!("steadfast-runs/{}", name::in_branch(run_name));
    fetch(&root, &found.repo, &branch, false)?;
    fetch(&root, &found.repo, &kept, true)?;
    let project = root.join(&found.directory.state.run_ref.repo.subdirectory);
    publish(&found, &project)?;
    let run = &found.directory.state.run;
    let head = found.directory.state.heads.get("run").unwrap_or_default().to_owned();
    let text = format!(
        "{run_name} ({}): branch {branch}, state files in {}\n  look:   git log {branch}\n  take:   git merge {branch}",
        run.status,
        project.join(".claude").display()
    );
    let status = run.status.to_string();
    Output::new(
        text,
        json!({"name": run_name, "status": status, "branch": branch, "run_directory": kept, "head": head, "project": project}),
    )
}

fn root_of(project: &Path) -> Result<PathBuf, CommandError> {
    let found = Command::new("git").args(["rev-parse", "--show-toplevel"]).current_dir(project).output()?;
    let root = String::from_utf8_lossy(&found.stdout).trim().to_owned();
    if !found.status.success() || root.is_empty() {
        let hint = "run it in a clone of the run's repository";
        return Err(CommandError::new(code::ENVIRONMENT, format!("{} is no git repository", project.display()), hint));
    }
    Ok(root.into())
}

/// Fetches a branch under its own name. Only the branch of the run directory may be rewritten: no user works on it.
fn fetch(root: &Path, repo: &str, branch: &str, may_replace: bool) -> Result<(), CommandError> {
    let plus = if may_replace { "+" } else { "" };
    let spec = format!("{plus}refs/heads/{branch}:refs/heads/{branch}");
    let done = Command::new("git")
        .args(["fetch", "--no-tags", "--quiet", "--", repo, &spec])
        .current_dir(root)
        .env("GIT_TERMINAL_PROMPT", "0")
        .output()?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message").to_owned();
    let hint = if said.contains("non-fast-forward") || said.contains("checked out") {
        format!("the local branch {branch} has commits of its own or is checked out: rename it, or switch to another")
    } else {
        "check with `git ls-remote` that this machine may read the repository".to_owned()
    };
    Err(CommandError::new(code::ENVIRONMENT, format!("git fetch of {branch} failed: {last}"), hint))
}

/// Writes the public state files, from a home that lives as long as this call.
fn publish(found: &FoundRun, project: &Path) -> Result<(), CommandError> {
    let directory = &found.directory;
    let shown = ShownRun::new(directory, &project.to_string_lossy())?;
    let (home, run_id) = (shown.home(), shown.row.run_id.as_str());
    let text = |name: &str| directory.text(name);
    let (definition, inputs) = (text("definition.yaml")?, text("inputs.md")?);
    RunFolder::create(home, run_id, definition.as_deref(), inputs.as_deref(), false)?;
    for record in directory.records(0)? {
        if let Record::Committed { id, .. } = record {
            put_answer(directory, home, run_id, id)?;
        }
    }
    let mut publisher =
        Publisher::open(home, &shown.store_file(), &shown.row).map_err(|error| cannot_publish(&error))?;
    for warning in publisher.show_new(&shown.row).map_err(|error| cannot_publish(&error))? {
        output::note(&warning);
    }
    Ok(())
}

fn put_answer(directory: &RunDirectory, home: &Path, run_id: &str, id: AttemptId) -> Result<(), CommandError> {
    let bytes = match directory.file(id, "output.md")? {
        Some(bytes) => Some(bytes),
        None => directory.file(id, "answer.md")?,
    };
    if let Some(bytes) = bytes {
        let file = Attempt::at(home, run_id, id).answer();
        if let Some(folder) = file.parent() {
            fs_err::create_dir_all(folder)?;
        }
        fs_err::write(file, bytes)?;
    }
    Ok(())
}

fn cannot_publish(error: &PublishError) -> CommandError {
    CommandError::new(
        code::ENVIRONMENT,
        format!("cannot write the state files: {error}"),
        "see .claude in this project",
    )
}
