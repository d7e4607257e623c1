//! Stages that merge: which branches, merging them before the agent starts, and what follows a conflict. Without one, no
//! agent is needed.

use std::path::Path;
use std::sync::{Arc, Mutex};

use steadfast_model::run::template::{self, Variables};
use steadfast_model::run::{
    AgentResult, AttemptId, FailureKind, MergePlan, Outcome, Plan, StagePlan, StageState, StageStatus, Success,
};
use steadfast_model::{clock, prompt, text};

use super::threads::AttemptThread;
use super::{Dispatcher, cannot_start, without_agent};
use crate::durable;
use crate::worktree::{self, Merge, Merged, WorktreeError};

/// How many branches are merged at most.
const MOST_BRANCHES: usize = 1_000;
/// How many conflicting files a prompt names.
const MOST_FILES: usize = 200;
const BRANCH: &str = "MERGE_BRANCH";
const CONFLICTS: &str = "MERGE_CONFLICTS";

/// The branches that a stage merges, or why they are not known.
pub(super) type Branches = Result<Vec<String>, String>;

/// What the thread of an attempt merges.
pub(super) struct Merging {
    pub(super) branches: Branches,
    pub(super) merge: Merge,
    /// Held while git works.
    pub(super) git: Arc<Mutex<()>>,
}

/// The template of a stage that merges, which shows the conflicts.
pub(super) fn with_conflicts(template: &str) -> String {
    if template::uses(template, |name| [BRANCH, CONFLICTS].contains(&name)) {
        return template.to_owned();
    }
    format!("{}\n\n{}", template.trim_end(), prompt::MERGE).trim_start().to_owned()
}

/// Texts in a prompt that are replaced once it is known where a merge stopped. They are random, so that no other text
/// contains them.
pub(super) struct Placeholders {
    branch: String,
    files: String,
}

impl Placeholders {
    pub(super) fn new(variables: &mut Variables) -> Self {
        let mut add = |name: &str| {
            let random = uuid::Uuid::new_v4().to_string();
            variables.more.insert(name.to_owned(), random.clone());
            random
        };
        Self { branch: add(BRANCH), files: add(CONFLICTS) }
    }

    /// The prompt of the agent that resolves conflicts.
    fn fill(&self, prompt: &str, branch: &str, files: &[String]) -> String {
        let mut lines: Vec<String> =
            files.iter().take(MOST_FILES).map(|file| text::cut(&text::one_line(file), 300)).collect();
        if files.len() > MOST_FILES {
            lines.push(format!("and {} more", files.len() - MOST_FILES));
        }
        prompt.replace(&self.branch, branch).replace(&self.files, &lines.join("\n"))
    }
}

impl Dispatcher<'_, '_> {
    /// The branches that a stage merges; `None` if it merges nothing.
    pub(super) fn branches_to_merge(&mut self, stage: &StagePlan) -> Option<Branches> {
        let merge = stage.merge.as_ref()?;
        Some(self.chosen_branches(merge))
    }

    pub(super) fn merging(&mut self, stage: &StagePlan, id: AttemptId) -> Option<Merging> {
        let branches = self.branches_to_merge(stage)?;
        let worktree = self.workplace(stage, id).worktree;
        let merge = Merge::new(&self.engine.home, &self.run_id, id.stage, worktree);
        Some(Merging { branches, merge, git: self.git.clone() })
    }

    fn chosen_branches(&mut self, merge: &MergePlan) -> Branches {
        let plan = self.plan.clone();
        let (number, from) = stage_named(&plan, &merge.from)?;
        let (run_id, home) = (self.run_id.clone(), self.engine.home.clone());
        let rows = self.with_store(|store| store.read().end_of_stage(&run_id, number, MOST_BRANCHES));
        let rows = rows.map_err(|error| format!("cannot read the branches of stage {}: {error}", merge.from))?;
        let branch = |id| worktree::kept(&home, &run_id, from, id).map(|kept| kept.branch);
        let offered: Vec<(u32, String)> =
            rows.iter().filter_map(|row| Some((row.id.iteration, branch(row.id)?))).collect();
        let chosen = match &merge.chosen_by {
            None => offered.into_iter().map(|(_, branch)| branch).collect(),
            Some(by) => chosen(&self.listed_by(by)?, &offered, &merge.from, by)?,
        };
        let mut unique: Vec<String> = Vec::new();
        for branch in chosen {
            if !unique.contains(&branch) {
                unique.push(branch);
            }
        }
        if unique.is_empty() {
            return Err(format!("nothing to merge: the stage {} has no branches", merge.from));
        }
        Ok(unique)
    }

    /// The branches that the last result of a stage lists.
    fn listed_by(&mut self, name: &str) -> Branches {
        let plan = self.plan.clone();
        let (number, _) = stage_named(&plan, name)?;
        let run_id = self.run_id.clone();
        let last = self.with_store(|store| store.read().end_of_stage(&run_id, number, 1));
        let last = last.map_err(|error| format!("cannot read the result of stage {name}: {error}"))?.pop();
        let Some(last) = last else { return Err(format!("nothing to merge: the stage {name} has no result")) };
        Ok(last.report.branches)
    }

    /// Aborts merges that a killed engine left in progress when their stages ended.
    pub(super) fn abort_merges_of_ended(&mut self) {
        let is_over = |state: &StageState| {
            matches!(state.status, StageStatus::Completed | StageStatus::Failed | StageStatus::Skipped)
        };
        let over: Vec<u32> =
            (1..).zip(&self.run.stages).filter(|(_, state)| is_over(state)).map(|(number, _)| number).collect();
        for stage in over {
            self.abort_merge(stage);
        }
    }

    /// Aborts the merge of a stage that is over, if one is in progress.
    pub(super) fn abort_merge(&mut self, stage: u32) {
        if self.plan.stage(stage).is_none_or(|planned| planned.merge.is_none()) {
            return;
        }
        let aborted = {
            let _one_at_a_time = self.git.lock();
            Merge::new(&self.engine.home, &self.run_id, stage, None).abort()
        };
        match aborted {
            Ok(None) => {}
            Ok(Some((branch, place))) => {
                let place = place.display();
                self.observers.note(&format!("aborted the merge of {branch}: the files in {place} are as before"));
            }
            Err(error) => self.observers.note(&format!(
                "cannot abort the merge of stage {stage}: {error} (run `git merge --abort` where it works)"
            )),
        }
    }
}

fn stage_named<'p>(plan: &'p Plan, name: &str) -> Result<(u32, &'p StagePlan), String> {
    let found = (1..).zip(&plan.stages).find(|(_, stage)| stage.name == name);
    found.ok_or_else(|| format!("there is no stage {name}"))
}

/// The listed ones of the offered branches; they are listed by name or by the number of their iteration.
fn chosen(listed: &[String], offered: &[(u32, String)], from: &str, by: &str) -> Branches {
    let mut branches = Vec::new();
    for word in listed {
        let word = word.trim();
        let name = word.strip_prefix("refs/heads/").unwrap_or(word);
        let is_meant = |(iteration, branch): &&(u32, String)| branch == name || name.parse() == Ok(*iteration);
        let Some((_, branch)) = offered.iter().find(is_meant) else {
            let known: Vec<&str> = offered.iter().map(|(_, branch)| branch.as_str()).collect();
            let (word, known) = (text::headline(word, 100), text::cut(&known.join(", "), 300));
            return Err(format!("the stage {by} chose `{word}`, which is no branch of the stage {from}: {known}"));
        };
        branches.push(branch.clone());
    }
    if branches.is_empty() {
        return Err(format!("nothing to merge: the result of the stage {by} lists no `branches`"));
    }
    Ok(branches)
}

impl AttemptThread {
    /// Merges the branches of the stage. Returns the prompt with the conflict that an agent has to resolve; otherwise the
    /// outcome: all of them are merged, or it failed. A stage that merges nothing keeps its prompt.
    pub(super) fn merge(
        &self,
        directory: &Path,
        prompt: &str,
        placeholders: Option<&Placeholders>,
    ) -> Result<String, Box<Outcome>> {
        let (Some(merging), Some(placeholders)) = (&self.merging, placeholders) else { return Ok(prompt.to_owned()) };
        let branches = merging.branches.as_ref().map_err(|why| Box::new(cannot_start(why.clone())))?;
        let started_at_ms = clock::now();
        let merged = {
            let _one_at_a_time = merging.git.lock();
            merging.merge.begin(directory, branches, &self.stopping)
        };
        match merged {
            Err(error) => Err(Box::new(without_agent(kind_of(&error), format!("{error} ({})", error.hint())))),
            Ok(Merged::Conflict { branch, files }) => {
                self.note(format!("{}: merging {branch} has conflicts in {} files", self.stage.name, files.len()));
                Ok(placeholders.fill(prompt, &branch, &files))
            }
            Ok(Merged::All) => {
                let noun = if branches.len() == 1 { "branch" } else { "branches" };
                let summary = format!("merged {} {noun}", branches.len());
                let answer = format!("{summary}: {}\n", branches.join(", "));
                if let Err(error) = self.wait_for_room(|| durable::replace(&self.attempt.answer(), answer.as_bytes())) {
                    self.log(&format!("cannot keep the answer: {error}"));
                }
                let result = AgentResult { summary: Some(summary), ..AgentResult::default() };
                let ended_at_ms = clock::now().max(started_at_ms);
                let success = Success { result, started_at_ms, ended_at_ms, ..Success::default() };
                Err(Box::new(self.with_artifacts(Outcome::Succeeded(Box::new(success)))))
            }
        }
    }

    /// An agent that left its merge undone has failed, whatever it says. The next attempt continues the merge.
    pub(super) fn with_merge(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Succeeded(success) => match self.merge_left() {
                None => Outcome::Succeeded(success),
                Some(why) => success.but_failed(FailureKind::NoResult, why),
            },
            failed @ Outcome::Failed(_) => failed,
        }
    }

    /// Why the merge that an agent had to finish is not done, if it is not.
    fn merge_left(&self) -> Option<String> {
        let merging = self.merging.as_ref()?;
        let directory = match self.workplace.inside() {
            Ok(directory) => directory,
            Err(error) => return Some(error.to_string()),
        };
        let _one_at_a_time = merging.git.lock();
        merging.merge.not_done(&directory).unwrap_or_else(|error| Some(error.to_string()))
    }
}

/// Whether another attempt may help: locks of git pass, and a merge that was stopped is begun again.
fn kind_of(error: &WorktreeError) -> FailureKind {
    match error {
        WorktreeError::Ending => FailureKind::Stopped,
        WorktreeError::Busy(_) => FailureKind::Transient,
        WorktreeError::Git { message, .. } if message.contains(".lock") || message == "time limit reached" => {
            FailureKind::Transient
        }
        _ => FailureKind::CannotStart,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_chosen_by_name_or_number() {
        let offered = [(1, "steadfast/r/1-1".to_owned()), (2, "steadfast/r/1-2".to_owned())];
        let choose = |listed: &[&str]| {
            let listed: Vec<String> = listed.iter().map(|word| (*word).to_owned()).collect();
            chosen(&listed, &offered, "build", "judge")
        };
        assert_eq!(choose(&["2", " refs/heads/steadfast/r/1-1 "]).unwrap(), ["steadfast/r/1-2", "steadfast/r/1-1"]);
        assert_eq!(choose(&[]).unwrap_err(), "nothing to merge: the result of the stage judge lists no `branches`");
        let refused = choose(&["1", "main"]).unwrap_err();
        let expected =
            "the stage judge chose `main`, which is no branch of the stage build: steadfast/r/1-1, steadfast/r/1-2";
        assert_eq!(refused, expected);
    }

    #[test]
    fn a_prompt_shows_the_conflict_where_it_asks_for_it() {
        let files = vec!["a.rs".to_owned(), "b\n.rs".to_owned()];
        let mut variables = Variables::default();
        let placeholders = Placeholders::new(&mut variables);
        let shown = |prompt: &str| {
            let rendered = template::render(&with_conflicts(prompt), &variables);
            assert_eq!(rendered.unknown, Vec::<String>::new());
            placeholders.fill(&rendered.text, "x", &files)
        };
        assert_eq!(shown("Take ${MERGE_BRANCH}: ${MERGE_CONFLICTS}"), "Take x: a.rs\nb .rs");
        let added = shown("Be kind.");
        assert!(added.starts_with("Be kind.\n\nMerge the branch `x`") && added.contains("\na.rs\nb .rs\n"), "{added}");
        assert!(shown("").starts_with("Merge the branch `x`"));
    }
}
