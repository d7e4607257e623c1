//! The variables of an iteration's prompt: its number, its files, its item, and the outputs of earlier stages.

use std::collections::BTreeMap;
use std::path::PathBuf;

use steadfast_model::run::inputs;
use steadfast_model::run::template::Variables;
use steadfast_model::run::{AgentKind, AgentPlan, AttemptId, StagePlan};
use steadfast_model::text;

use super::{RunRecords, RunView, merging};
use crate::attempt::Attempt;
use crate::observer::{KEPT_OUTPUT_BYTES, KeptOutput};

/// The most text of one output, and of all outputs of a stage together.
const OUTPUT_CHARS: usize = 100_000;
const INPUT_CHARS: usize = 400_000;
/// How many iterations of a stage are shown, the newest.
pub(super) const MOST_ITERATIONS: usize = 200;

impl RunView<'_> {
    /// The template of an iteration: the prompt of its stage, with the inputs and conflicts that it does not show.
    pub(super) fn template(&self, stage: &StagePlan, id: AttemptId, records: &impl RunRecords) -> String {
        let initial = records.prompt_values(id).inputs;
        let with_inputs = inputs::with_inputs_appended(&stage.prompt, self.plan.has_inputs(id.stage, &initial));
        if stage.merge.is_some() { merging::with_conflicts(&with_inputs) } else { with_inputs.into_owned() }
    }

    pub(super) fn variables(
        &self,
        stage: &StagePlan,
        id: AttemptId,
        template: &str,
        attempt: &Attempt,
        records: &mut impl RunRecords,
    ) -> Variables {
        let values = records.prompt_values(id);
        let shown = |path: Option<PathBuf>| path.map(|path| path.display().to_string()).unwrap_or_default();
        let index = usize::try_from(id.iteration).unwrap_or(usize::MAX).wrapping_sub(1);
        let shown_stages = self.plan.inputs_of(id.stage);
        let kept = self.outputs_of_others(template, &shown_stages, id.stage, records);
        let named_inputs: BTreeMap<String, String> =
            kept.iter().map(|(name, outputs)| (name.clone(), together(outputs, INPUT_CHARS))).collect();
        let initial = Some(values.inputs.trim_end()).filter(|_| self.plan.shows_initial_inputs(id.stage));
        let initial = text::cut(initial.unwrap_or_default(), INPUT_CHARS);
        let inputs = joined(&initial, &chosen(&shown_stages, &kept, stage.latest_inputs));
        let mut more = self.artifact_variables(template, records);
        more.extend(stage.matrix_of(id.iteration).map(|(name, value)| (format!("MATRIX.{name}"), value.clone())));
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
            more,
        }
    }

    /// The outputs of those other stages that a template asks for, by name; `shown` are those of `${INPUTS}`.
    fn outputs_of_others(
        &self,
        template: &str,
        shown: &[String],
        number: u32,
        records: &mut impl RunRecords,
    ) -> BTreeMap<String, Outputs> {
        let mut found = BTreeMap::new();
        let others = (1..).zip(&self.plan.stages).filter(|(at, _)| *at != number);
        for (at, earlier) in others.filter(|(_, other)| asks_for(template, shown, &other.name)) {
            let rows = match records.end_of_stage(at, MOST_ITERATIONS) {
                Ok(rows) => rows,
                Err(error) => {
                    records.note(&format!("cannot read the outputs of stage {}: {error}", earlier.name));
                    continue;
                }
            };
            let left_out = rows.first().map_or(0, |row| row.id.iteration.saturating_sub(1));
            // Report the branch even when its agent printed nothing.
            let missing = KeptOutput { text: "(no output)".to_owned(), file: PathBuf::new(), bytes: 0 };
            let missing = || earlier.parallel.then(|| missing.clone());
            let path = earlier.output_path.as_deref();
            let named = rows.last().zip(path).and_then(|(row, path)| file_left_by(earlier, row.id, path, records));
            let named = named.and_then(KeptOutput::read);
            let named = named.map(|output| (format!("{} {}", earlier.name, output.file.display()), output));
            let outputs = rows
                .iter()
                .filter_map(|row| {
                    Some((heading(earlier, row.id, records), self.output_of(row.id, records).or_else(missing)?))
                })
                .chain(named)
                .collect();
            found.insert(earlier.name.clone(), Outputs { left_out, outputs });
        }
        found
    }

    fn output_of(&self, id: AttemptId, records: &impl RunRecords) -> Option<KeptOutput> {
        let attempt = Attempt::at(self.home, self.run_id, id);
        let own = || KeptOutput::read(attempt.own_output()).or_else(|| KeptOutput::read(attempt.answer()));
        records.output(id).or_else(own)
    }
}

/// The heading of an output among several; it names the branch of the iteration.
fn heading(stage: &StagePlan, id: AttemptId, records: &impl RunRecords) -> String {
    let name = format!("{} {}", stage.name, id.iteration);
    let agent = Some(stage.agent_of(id.iteration)).filter(|_| !stage.agents.is_empty()).map(named);
    let branch = if stage.parallel { records.branch_of(stage, id) } else { None };
    let details: Vec<String> = agent.into_iter().chain(branch.map(|branch| format!("branch {branch}"))).collect();
    if details.is_empty() { name } else { format!("{name} ({})", details.join(", ")) }
}

/// A file in the directory where an iteration worked, if it is there.
pub(super) fn file_left_by(stage: &StagePlan, id: AttemptId, path: &str, records: &impl RunRecords) -> Option<PathBuf> {
    let directory = records.directory_of(stage, id)?;
    let file = fs_err::canonicalize(directory.join(path)).ok().filter(|file| file.is_file())?;
    // A link of the agent's must not lead elsewhere.
    file.starts_with(fs_err::canonicalize(directory).ok()?).then_some(file)
}

/// Whether a template shows the outputs of another stage; `shown` are those of `${INPUTS}`.
fn asks_for(template: &str, shown: &[String], other: &str) -> bool {
    let is_shown = shown.iter().any(|name| name == other) && template.contains("${INPUTS}");
    is_shown || template.contains(&format!("${{INPUTS.{other}}}"))
}

/// Two texts, one after the other; either may be empty.
fn joined(first: &str, second: &str) -> String {
    let parts: Vec<&str> = [first, second].into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// An agent in a heading.
fn named(agent: &AgentPlan) -> String {
    let program = match &agent.kind {
        AgentKind::Host(host) => host.to_string(),
        AgentKind::Command(words) => text::headline(&words.join(" "), 60),
    };
    agent.model.iter().fold(program, |program, model| format!("{program} {model}"))
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
        for (prompt, shown, expected) in [
            ("Continue.", &["test"][..], &[][..]),
            ("With ${INPUTS}", &["test"], &["test"]),
            ("With ${INPUTS}", &["plan", "build"], &["plan", "build"]),
            ("With ${INPUTS}", &[], &[]),
            ("With ${INPUTS.plan}", &["test"], &["plan"]),
            ("With ${INPUTS.plan} and ${INPUTS}", &["build"], &["plan", "build"]),
            ("With ${INPUTS.planning}", &["test"], &[]),
        ] {
            let shown: Vec<String> = shown.iter().map(|name| (*name).to_owned()).collect();
            let read: Vec<&str> = earlier.into_iter().filter(|name| asks_for(prompt, &shown, name)).collect();
            assert_eq!(read, expected, "{prompt} {shown:?}");
        }
        assert_eq!((joined("", "b"), joined("a", ""), joined("a", "b")), ("b".into(), "a".into(), "a\n\nb".into()));
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
