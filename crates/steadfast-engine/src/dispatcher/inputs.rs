//! What the prompt of an iteration is filled in with: its number, its files, its item, and what earlier stages left.

use std::collections::BTreeMap;
use std::path::Path;

use steadfast_core::run::template::Variables;
use steadfast_core::run::{AttemptId, StagePlan};
use steadfast_core::text;

use super::Dispatcher;
use crate::attempt::Attempt;

/// The most text of one output, and of all outputs of a stage together.
const LONGEST_OUTPUT: usize = 100_000;
const LONGEST_INPUT: usize = 400_000;
/// The most iterations of a stage whose outputs are looked at.
const MOST_ITERATIONS: usize = 200;

impl Dispatcher<'_> {
    pub(super) fn variables(&mut self, stage: &StagePlan, id: AttemptId, attempt: &Attempt) -> Variables {
        let places = self.observer.places(&self.plan, &self.run, id);
        let shown = |path: Option<&Path>| path.map(|path| path.display().to_string()).unwrap_or_default();
        let at = usize::try_from(id.iteration).unwrap_or(usize::MAX).wrapping_sub(1);
        let named_inputs = self.inputs_before(id.stage);
        let inputs = if id.stage <= 1 {
            text::cut(places.inputs.trim_end(), LONGEST_INPUT)
        } else if stage.inputs.is_empty() {
            let before = id.stage.checked_sub(1).and_then(|before| self.plan.stage(before));
            before.and_then(|before| named_inputs.get(&before.name)).cloned().unwrap_or_default()
        } else {
            let chosen = stage.inputs.iter().filter_map(|name| Some((name.as_str(), named_inputs.get(name)?.as_str())));
            together(&chosen.collect::<Vec<_>>())
        };
        Variables {
            session: self.plan.name.clone(),
            iteration: id.iteration,
            perspective: stage.perspectives.get(at).cloned().unwrap_or_default(),
            output: shown(places.output.as_deref()),
            progress: shown(places.progress.as_deref()),
            inputs,
            named_inputs,
            item: stage.items.get(at).cloned().unwrap_or_default(),
            result: attempt.result().display().to_string(),
            objective: places.objective,
        }
    }

    /// The outputs of all earlier stages, by name. Only those that the prompt or the stage asks for are worth reading,
    /// but pipelines are short and outputs are capped.
    fn inputs_before(&mut self, stage: u32) -> BTreeMap<String, String> {
        let plan = self.plan.clone();
        let mut inputs = BTreeMap::new();
        for (number, earlier) in (1..stage).zip(&plan.stages) {
            let rows = self.store.read().run_history(&self.run_id, Some((number, 0)), MOST_ITERATIONS);
            let rows = match rows {
                Ok(rows) => rows,
                Err(error) => {
                    self.note(&format!("the outputs of stage {} cannot be read: {error}", earlier.name));
                    continue;
                }
            };
            let outputs: Vec<(String, String)> = rows
                .iter()
                .filter(|row| row.id.stage == number)
                .filter_map(|row| Some((format!("{} {}", earlier.name, row.id.iteration), self.output_of(row.id)?)))
                .collect();
            let borrowed: Vec<(&str, &str)> =
                outputs.iter().map(|(name, output)| (name.as_str(), output.as_str())).collect();
            inputs.insert(earlier.name.clone(), together(&borrowed));
        }
        inputs
    }

    fn output_of(&self, id: AttemptId) -> Option<String> {
        let own = || fs_err::read_to_string(Attempt::at(&self.engine.home, &self.run_id, id).answer()).ok();
        let output = self.observer.output(&self.plan, &self.run, id).or_else(own)?;
        Some(text::cut(output.trim(), LONGEST_OUTPUT)).filter(|output| !output.is_empty())
    }
}

/// One output as it is; several under their names.
fn together(outputs: &[(&str, &str)]) -> String {
    if let [(_, only)] = outputs {
        return (*only).to_owned();
    }
    let parts: Vec<String> = outputs.iter().map(|(name, output)| format!("## {name}\n\n{output}\n")).collect();
    text::cut(parts.join("\n").trim_end(), LONGEST_INPUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_output_stands_alone_and_several_under_their_names() {
        assert_eq!(together(&[]), "");
        assert_eq!(together(&[("plan 1", "do ${INPUTS}")]), "do ${INPUTS}");
        assert_eq!(together(&[("plan 1", "a"), ("plan 2", "b")]), "## plan 1\n\na\n\n## plan 2\n\nb");
    }
}
