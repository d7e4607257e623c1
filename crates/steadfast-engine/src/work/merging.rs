//! Stages that merge: which branches, merging them before the agent starts, and what follows a conflict. Without one, no
//! agent is needed.

use std::path::Path;
use std::sync::{Arc, Mutex};

use steadfast_model::run::template::{self, Variables};
use steadfast_model::run::{AgentResult, AttemptId, FailureKind, MergePlan, Outcome, Plan, StagePlan, Success};
use steadfast_model::{clock, prompt, text};

use super::{AttemptWork, RunRecords, RunView, Workplace, cannot_start, stage_named, without_agent};
use crate::durable;
use crate::worktree::{Merge, Merged, WorktreeError};

/// How many branches are merged at most.
const MOST_BRANCHES: usize = 1_000;
/// How many conflicting files a prompt names.
const MOST_FILES: usize = 200;
const BRANCH: &str = "MERGE_BRANCH";
const CONFLICTS: &str = "MERGE_CONFLICTS";

/// The branches that a stage merges, or why they are not known.
pub(crate) type Branches = Result<Vec<String>, String>;

/// What the thread of an attempt merges.
pub(crate) struct Merging {
    branches: Branches,
    merge: Merge,
    /// Held while git works.
    git: Arc<Mutex<()>>,
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
#[derive(Debug)]
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

/// The branches that a stage merges; `None` if it merges nothing.
pub(crate) fn branches_to_merge(plan: &Plan, stage: &StagePlan, records: &mut impl RunRecords) -> Option<Branches> {
    let merge = stage.merge.as_ref()?;
    Some(chosen_branches(plan, merge, records))
}

impl Merging {
    /// What an attempt of a stage merges; `None` if it merges nothing.
    pub(crate) fn of(
        view: &RunView<'_>,
        stage: &StagePlan,
        id: AttemptId,
        workplace: &Workplace,
        records: &mut impl RunRecords,
    ) -> Option<Self> {
        let branches = branches_to_merge(view.plan, stage, records)?;
        let merge = Merge::new(view.home, view.run_id, id.stage, workplace.worktree().cloned());
        Some(Self { branches, merge, git: workplace.git() })
    }
}

fn chosen_branches(plan: &Plan, merge: &MergePlan, records: &mut impl RunRecords) -> Branches {
    let (number, from) = named_stage(plan, &merge.from)?;
    let rows = records.end_of_stage(number, MOST_BRANCHES);
    let rows = rows.map_err(|error| format!("cannot read the branches of stage {}: {error}", merge.from))?;
    let offered: Vec<(u32, String)> =
        rows.iter().filter_map(|row| Some((row.id.iteration, records.branch_of(from, row.id)?))).collect();
    let chosen = match &merge.chosen_by {
        None => offered.into_iter().map(|(_, branch)| branch).collect(),
        Some(by) => chosen(&listed_by(plan, by, records)?, &offered, &merge.from, by)?,
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
fn listed_by(plan: &Plan, name: &str, records: &mut impl RunRecords) -> Branches {
    let (number, _) = named_stage(plan, name)?;
    let last = records.end_of_stage(number, 1);
    let last = last.map_err(|error| format!("cannot read the result of stage {name}: {error}"))?.pop();
    let Some(last) = last else { return Err(format!("nothing to merge: the stage {name} has no result")) };
    Ok(last.report.branches)
}

fn named_stage<'p>(plan: &'p Plan, name: &str) -> Result<(u32, &'p StagePlan), String> {
    stage_named(plan, name).ok_or_else(|| format!("there is no stage {name}"))
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

impl AttemptWork {
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
                let (count, noun) = (files.len(), if files.len() == 1 { "file" } else { "files" });
                self.note(format!("{}: merging {branch} has conflicts in {count} {noun}", self.stage.name));
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
