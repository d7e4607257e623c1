//! The variables of an iteration's prompt: its number, its files, its item, and the outputs of earlier stages.

use std::collections::BTreeMap;
use std::path::PathBuf;

use steadfast_model::run::template::Variables;
use steadfast_model::run::{AttemptId, StagePlan};
use steadfast_model::text;

use super::Dispatcher;
use crate::attempt::Attempt;
use crate::observer::{KEPT_OUTPUT_BYTES, KeptOutput};
use crate::worktree;

/// The most text of one output, and of all outputs of a stage together.
const OUTPUT_CHARS: usize = 100_000;
const INPUT_CHARS: usize = 400_000;
/// How many iterations of a stage are shown, the newest.
pub(super) const MOST_ITERATIONS: usize = 200;

impl Dispatcher<'_, '_> {
    pub(super) fn variables(&mut self, stage: &StagePlan, id: AttemptId, attempt: &Attempt) -> Variables {
        let values = self.observers.prompt_values(&self.plan, &self.run, id);
        let shown = |path: Option<PathBuf>| path.map(|path| path.display().to_string()).unwrap_or_default();
        let index = usize::try_from(id.iteration).unwrap_or(usize::MAX).wrapping_sub(1);
        let kept = self.outputs_before(stage, id.stage);
        let named_inputs: BTreeMap<String, String> =
            kept.iter().map(|(name, outputs)| (name.clone(), together(outputs, INPUT_CHARS))).collect();
        let sources = self.plan.inputs_of(id.stage);
        let mut inputs = chosen(&sources, &kept, stage.latest_inputs);
        if self.plan.shows_initial_inputs(id.stage) {
            let initial = text::cut(values.inputs.trim_end(), INPUT_CHARS);
            inputs = format!("{initial}\n\n{inputs}").trim().to_owned();
        }
        let output = shown(Some(values.output.unwrap_or_else(|| attempt.own_output())));
        Variables {
            output_path: stage.output_path.clone().unwrap_or_else(|| output.clone()),
            output,
            status: attempt.status().display().to_string(),
            context_file: attempt.context().display().to_string(),
            context: stage.context.clone(),
            commands: stage.commands.clone(),
            session: self.plan.name.clone(),
            iteration: id.iteration,
            perspective: stage.perspectives.get(index).cloned().unwrap_or_default(),
            progress: shown(values.progress),
            inputs,
            named_inputs,
            item: stage.items.get(index).cloned().unwrap_or_default(),
            result: attempt.result().display().to_string(),
            objective: values.objective,
        }
    }

    /// The outputs of those earlier stages that the prompt asks for, by name.
    fn outputs_before(&mut self, stage: &StagePlan, number: u32) -> BTreeMap<String, Outputs> {
        let plan = self.plan.clone();
        let sources = plan.inputs_of(number);
        let mut inputs = BTreeMap::new();
        let earlier = (1..number).zip(&plan.stages);
        for (at, earlier) in earlier.filter(|(_, earlier)| asks_for(&stage.prompt, &sources, &earlier.name)) {
            let rows = match self.store.read().end_of_stage(&self.run_id, at, MOST_ITERATIONS) {
                Ok(rows) => rows,
                Err(error) => {
                    self.observers.note(&format!("cannot read the outputs of stage {}: {error}", earlier.name));
                    continue;
                }
            };
            let left_out = rows.first().map_or(0, |row| row.id.iteration.saturating_sub(1));
            // Report the branch even when its agent printed nothing.
            let missing = KeptOutput { text: "(no output)".to_owned(), file: PathBuf::new(), bytes: 0 };
            let missing = || earlier.parallel.then(|| missing.clone());
            let named = rows.last().and_then(|row| self.named_output(earlier, row.id)).and_then(KeptOutput::read);
            let named = named.map(|output| (format!("{} {}", earlier.name, output.file.display()), output));
            let outputs = rows
                .iter()
                .filter_map(|row| Some((self.heading(earlier, row.id), self.output_of(row.id).or_else(missing)?)))
                .chain(named)
                .collect();
            inputs.insert(earlier.name.clone(), Outputs { left_out, outputs });
        }
        inputs
    }

    /// The heading of an output among several; it names the branch of the iteration.
    fn heading(&self, stage: &StagePlan, id: AttemptId) -> String {
        let name = format!("{} {}", stage.name, id.iteration);
        let kept = worktree::kept(&self.engine.home, &self.run_id, id, true).filter(|_| stage.parallel);
        kept.map_or_else(|| name.clone(), |kept| format!("{name} (branch {})", kept.branch))
    }

    fn output_of(&self, id: AttemptId) -> Option<KeptOutput> {
        let attempt = Attempt::at(&self.engine.home, &self.run_id, id);
        let own = || KeptOutput::read(attempt.own_output()).or_else(|| KeptOutput::read(attempt.answer()));
        self.observers.output(&self.plan, &self.run, id).or_else(own)
    }

    /// The file that a stage names for its output, if an iteration left it.
    pub(super) fn named_output(&self, stage: &StagePlan, id: AttemptId) -> Option<PathBuf> {
        let path = stage.output_path.as_ref()?;
        let directory = self.workplace(stage, id).inside().ok()?;
        let file = fs_err::canonicalize(directory.join(path)).ok().filter(|file| file.is_file())?;
        // A link of the agent's must not lead elsewhere.
        file.starts_with(fs_err::canonicalize(directory).ok()?).then_some(file)
    }
}

/// Whether a prompt shows the outputs of an earlier stage; `sources` are the stages whose outputs its own stage gets.
fn asks_for(prompt: &str, sources: &[String], earlier: &str) -> bool {
    let is_source = sources.iter().any(|name| name == earlier);
    (is_source && prompt.contains("${INPUTS}")) || prompt.contains(&format!("${{INPUTS.{earlier}}}"))
}

/// An output and its heading.
type NamedOutput = (String, KeptOutput);

/// The outputs of one stage, in order.
#[derive(Debug, Clone, Default, PartialEq)]
struct Outputs {
    /// How many older iterations are not included.
    left_out: u32,
    outputs: Vec<NamedOutput>,
}

impl Outputs {
    /// The last one alone.
    fn latest(&self) -> Self {
        Self { left_out: 0, outputs: self.outputs.last().cloned().into_iter().collect() }
    }
}

/// The outputs of the stages that a stage asks for, in one text.
fn chosen(names: &[String], kept: &BTreeMap<String, Outputs>, latest: bool) -> String {
    let select = |outputs: &Outputs| if latest { outputs.latest() } else { outputs.clone() };
    let found: Vec<(&str, Outputs)> =
        names.iter().filter_map(|name| Some((name.as_str(), select(kept.get(name)?)))).collect();
    let each = |most: usize| -> Vec<(&str, String)> {
        found.iter().map(|(name, outputs)| (*name, together(outputs, most))).collect()
    };
    let mut parts = each(INPUT_CHARS);
    if parts.iter().map(|(_, text)| text.chars().count()).sum::<usize>() > INPUT_CHARS {
        parts = each(INPUT_CHARS / found.len().max(1));
    }
    under_names(&parts)
}

/// The outputs of one stage in about `most` characters. If they do not fit, each gets an equal share.
fn together(stage: &Outputs, most: usize) -> String {
    let Outputs { left_out, outputs } = stage;
    let wanted = outputs.iter().map(|(_, output)| output.text.chars().count().min(OUTPUT_CHARS)).sum::<usize>();
    let share = if wanted <= most { OUTPUT_CHARS } else { most / outputs.len().max(1) };
    let parts: Vec<(&str, String)> =
        outputs.iter().map(|(name, output)| (name.as_str(), shortened(output, share.min(OUTPUT_CHARS)))).collect();
    let text = under_names(&parts);
    if *left_out == 0 {
        return text;
    }
    let beside = outputs.first().and_then(|(_, output)| output.file.parent());
    let place = beside.map(|folder| format!("; the others are in {}", folder.display())).unwrap_or_default();
    format!(
        "[left out: the outputs of iterations 1 to {left_out}; only the newest {MOST_ITERATIONS} are shown{place}]\n\n{text}"
    )
}

/// An output with at most `most` characters. One that is cut ends with a note that names its file.
fn shortened(output: &KeptOutput, most: usize) -> String {
    let is_whole = output.text.chars().count() <= most && output.bytes <= KEPT_OUTPUT_BYTES;
    if is_whole {
        return output.text.clone();
    }
    let bytes = text::thousands(i64::try_from(output.bytes).unwrap_or(i64::MAX));
    let start = text::cut(&output.text, most);
    format!("{start}\n\n[cut here: the whole output is in {} ({bytes} bytes)]", output.file.display())
}

/// One text as it is; several under their names.
fn under_names(parts: &[(&str, String)]) -> String {
    if let [(_, only)] = parts {
        return only.clone();
    }
    let parts: Vec<String> = parts.iter().map(|(name, text)| format!("## {name}\n\n{text}\n")).collect();
    parts.join("\n").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, text: &str, bytes: u64) -> NamedOutput {
        (name.into(), KeptOutput { text: text.into(), file: format!("/p/{name}.md").into(), bytes })
    }

    fn all(outputs: &[NamedOutput]) -> Outputs {
        Outputs { left_out: 0, outputs: outputs.to_vec() }
    }

    #[test]
    fn one_output_stands_alone_and_several_under_their_names() {
        assert_eq!(together(&Outputs::default(), 100), "");
        assert_eq!(together(&all(&[named("plan 1", "do ${INPUTS}", 12)]), 100), "do ${INPUTS}");
        let two = all(&[named("plan 1", "a", 1), named("plan 2", "b", 1)]);
        assert_eq!(together(&two, 100), "## plan 1\n\na\n\n## plan 2\n\nb");
        let kept = BTreeMap::from([("x".to_owned(), all(&[named("x 1", "a", 1)])), ("y".to_owned(), two)]);
        let names = ["y".to_owned(), "none".to_owned()];
        assert_eq!(chosen(&names, &kept, false), "## plan 1\n\na\n\n## plan 2\n\nb");
        assert_eq!(chosen(&names, &kept, true), "b");
        assert_eq!(chosen(&["x".to_owned(), "x".to_owned()], &kept, false), "## x\n\na\n\n## x\n\na");
        assert_eq!(chosen(&["x".to_owned(), "y".to_owned()], &kept, true), "## x\n\na\n\n## y\n\nb");
    }

    #[test]
    fn outputs_that_are_left_out_are_mentioned() {
        let some = Outputs { left_out: 5, outputs: vec![named("plan 6", "a", 1), named("plan 7", "b", 1)] };
        let expected = "[left out: the outputs of iterations 1 to 5; only the newest 200 are shown; the others are in \
                        /p]\n\n## plan 6\n\na\n\n## plan 7\n\nb";
        assert_eq!(together(&some, 100), expected);
        assert_eq!(together(&some.latest(), 100), "b");
    }

    #[test]
    fn only_outputs_that_a_prompt_asks_for_are_read() {
        let earlier = ["plan", "build", "test"];
        for (prompt, inputs, expected) in [
            ("Continue.", &[][..], &[][..]),
            ("Continue.", &["plan"], &[]),
            ("With ${INPUTS}", &["test"], &["test"]),
            ("With ${INPUTS}", &["plan", "build"], &["plan", "build"]),
            ("With ${INPUTS.plan}", &[], &["plan"]),
            ("With ${INPUTS.plan} and ${INPUTS}", &["build"], &["plan", "build"]),
            ("With ${INPUTS.planning}", &[], &[]),
        ] {
            let inputs: Vec<String> = inputs.iter().map(|name| (*name).to_owned()).collect();
            let read: Vec<&str> = earlier.into_iter().filter(|name| asks_for(prompt, &inputs, name)).collect();
            assert_eq!(read, expected, "{prompt} {inputs:?}");
        }
    }

    #[test]
    fn an_output_that_is_cut_names_its_file_and_size() {
        let long = "ü".repeat(OUTPUT_CHARS + 1);
        let cut = together(&all(&[named("a", &long, 200_002)]), INPUT_CHARS);
        assert!(cut.ends_with("ü…\n\n[cut here: the whole output is in /p/a.md (200,002 bytes)]"));
        assert_eq!(cut.chars().filter(|c| *c == 'ü').count(), OUTPUT_CHARS - 1);
        // Outputs that do not fit together each get a share and a note.
        let two = all(&[named("a", "aaaaa", 5), named("b", "bbbbb", 5)]);
        let whole = |name: &str| format!("[cut here: the whole output is in /p/{name}.md (5 bytes)]");
        assert_eq!(together(&two, 8), format!("## a\n\naaa…\n\n{}\n\n## b\n\nbbb…\n\n{}", whole("a"), whole("b")));
        let many: Vec<NamedOutput> = (0..9).map(|_| named("c", &"c".repeat(OUTPUT_CHARS), 100_000)).collect();
        let kept = BTreeMap::from([("x".to_owned(), all(&many)), ("y".to_owned(), all(&many))]);
        let text = chosen(&["x".to_owned(), "y".to_owned()], &kept, false);
        assert_eq!(text.matches("[cut here: the whole output is in /p/c.md (100,000 bytes)]").count(), 18);
        assert!(text.chars().filter(|c| *c == 'c').count() < INPUT_CHARS + 1_000);
    }
}
