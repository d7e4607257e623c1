//! Testing the condition of a stage: the facts come from the run and its records, files are looked for where the stage will
//! work. Nothing is run, so that a test can be repeated after a crash.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use steadfast_model::run::condition::FactValue;
use steadfast_model::run::{Condition, Plan, Run, StagePlan, StageState};
use steadfast_model::text;
use steadfast_store::IterationRow;

use super::{RunRecords, RunView, stage_named};

const DETAIL_CHARS: usize = 300;

/// A stage by its state, and the last iteration that it committed.
struct StageFacts {
    state: StageState,
    last: Option<IterationRow>,
}

/// A condition with all it depends on but files.
pub(crate) struct Deciding {
    condition: Condition,
    facts: BTreeMap<String, StageFacts>,
}

impl Deciding {
    /// Collects what is known of the stages that the condition of a stage names; `None` for a stage without a condition.
    pub(crate) fn of<R: RunRecords>(
        view: &RunView<'_>,
        planned: &StagePlan,
        records: &mut R,
    ) -> Result<Option<Self>, R::Error> {
        let Some(condition) = planned.when.clone() else { return Ok(None) };
        let mut facts = BTreeMap::new();
        for name in condition.stages() {
            let Some((number, state)) = state_of(view.plan, view.run, name) else { continue };
            let last = records.end_of_stage(number, 1)?.pop();
            facts.insert(name.to_owned(), StageFacts { state, last });
        }
        Ok(Some(Self { condition, facts }))
    }

    /// Whether the condition holds, by the files of the directory where the stage will work, and a detail for people.
    pub(crate) fn decide(&self, directory: &Path) -> (Option<bool>, String) {
        let fact = |stage: &str, fact: &str| self.facts.get(stage)?.value(fact);
        let holds = self.condition.evaluate(fact, |path| exists(directory, path));
        let detail = match &holds {
            Ok(true) => String::new(),
            Ok(false) => self.condition.to_string(),
            Err(why) => why.clone(),
        };
        (holds.ok(), text::cut(text::printable(&detail).trim(), DETAIL_CHARS))
    }
}

/// The number of a stage and its state, by its name.
fn state_of(plan: &Plan, run: &Run, name: &str) -> Option<(u32, StageState)> {
    let (number, _) = stage_named(plan, name)?;
    Some((number, run.stage_state(number)?.clone()))
}

impl StageFacts {
    fn value(&self, fact: &str) -> Option<FactValue> {
        let last = self.last.as_ref();
        let text = match fact {
            "status" => self.state.status.to_string(),
            // The detail is for people.
            "reason" => self.state.reason.as_deref()?.split(": ").next()?.to_owned(),
            "exit_code" => return last.map(|row| FactValue::Number(row.exit_code.into())),
            "iterations" => return Some(FactValue::Number(self.state.iterations.into())),
            "decision" => last?.decision?.to_string(),
            "summary" => last?.summary.clone()?,
            other => {
                let field = other.strip_prefix("fields.")?;
                last?.fields.iter().find(|(name, _)| name == field)?.1.clone()
            }
        };
        Some(FactValue::Text(text))
    }
}

/// Whether a path is there, and inside of the directory.
fn exists(directory: &Path, path: &str) -> bool {
    let is_plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let resolved = |path: PathBuf| fs_err::canonicalize(path).ok();
    let (root, found) = (resolved(directory.to_owned()), resolved(directory.join(path)));
    is_plain && root.zip(found).is_some_and(|(root, found)| found.starts_with(root))
}

#[cfg(test)]
mod tests {
    use steadfast_model::run::{AgentDecision, StageStatus};

    use super::*;

    #[test]
    fn facts_come_from_the_state_and_the_last_iteration() {
        let state = StageState {
            status: StageStatus::Failed,
            reason: Some("errors: no network: x".into()),
            iterations: 2,
            ..StageState::default()
        };
        let last = IterationRow {
            decision: Some(AgentDecision::Stop),
            fields: vec![("risk".into(), "7".into())],
            exit_code: 3,
            ..IterationRow::default()
        };
        let facts = StageFacts { state: state.clone(), last: Some(last) };
        let text = |text: &str| Some(FactValue::Text(text.into()));
        for (fact, expected) in [
            ("status", text("failed")),
            ("reason", text("errors")),
            ("decision", text("stop")),
            ("summary", None),
            ("exit_code", Some(FactValue::Number(3))),
            ("iterations", Some(FactValue::Number(2))),
            ("fields.risk", text("7")),
            ("fields.other", None),
            ("other", None),
        ] {
            assert_eq!(facts.value(fact), expected, "{fact}");
        }
        let none = StageFacts { state, last: None };
        assert_eq!((none.value("exit_code"), none.value("decision")), (None, None));
    }

    #[test]
    fn only_paths_inside_of_the_directory_exist() {
        let world = tempfile::tempdir().unwrap();
        let directory = world.path().join("project");
        fs_err::create_dir_all(directory.join("docs")).unwrap();
        fs_err::write(directory.join("docs/PLAN.md"), "").unwrap();
        fs_err::write(world.path().join("outside"), "").unwrap();
        std::os::unix::fs::symlink("../outside", directory.join("link")).unwrap();
        for (path, expected) in [
            ("docs/PLAN.md", true),
            ("./docs", true),
            ("docs/other", false),
            ("../outside", false),
            ("docs/../docs/PLAN.md", false),
            ("link", false),
            ("/etc/passwd", false),
        ] {
            assert_eq!(exists(&directory, path), expected, "{path}");
        }
    }
}
