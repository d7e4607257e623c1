//! Prompts of iterations: one pass over the template replaces each `${NAME}` with its value. Inserted text is not scanned
//! again, so outputs of agents may contain `${…}`. `$${NAME}` writes `${NAME}`; unknown names stay and are reported.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Longer names are plain text, which keeps the search for the closing brace short.
const LONGEST_NAME: usize = 128;
/// Unknown names to report at most.
const MOST_UNKNOWN: usize = 50;
const SESSION: [&str; 2] = ["SESSION", "SESSION_NAME"];

/// Variables that every prompt can use, and what they are replaced with.
pub const VARIABLES: [(&str, &str); 17] = [
    ("SESSION", "name of the run"),
    ("SESSION_NAME", "the same"),
    ("ITERATION", "number of the iteration, from 1"),
    ("INDEX", "number of the iteration, from 0"),
    ("PERSPECTIVE", "element of `perspectives` for this iteration"),
    ("OUTPUT", "path of the iteration's output"),
    ("OUTPUT_PATH", "the file that `output_path` names, else the same as `OUTPUT`"),
    ("PROGRESS", "path of the progress file: notes from one agent to the next"),
    ("PROGRESS_FILE", "the same"),
    ("INPUTS", "outputs of the stages that this one needs"),
    ("ITEM", "element of `items` for this iteration"),
    ("CURRENT_ITEM", "the same"),
    ("RESULT", "path of the result file that the agent may write"),
    ("STATUS", "path of a result file with the fields of agent-pipelines"),
    ("CTX", "path of a JSON file about the run"),
    ("CONTEXT", "text of `context` or `--context`"),
    ("OBJECTIVE", "objective of `steadfast run`; empty elsewhere"),
];

/// Variables whose names depend on the definition, and those of one kind of stage.
pub const OF_DEFINITIONS: [(&str, &str); 6] = [
    ("INPUTS.name", "output of the stage with that name"),
    ("COMMANDS.name", "a command of `commands`"),
    ("MATRIX.name", "value of this combination of `matrix`"),
    ("ARTIFACTS.name", "path of an artifact; of a parallel stage, one line for each iteration"),
    ("MERGE_BRANCH", "in a `merge` stage: the branch that is merged"),
    ("MERGE_CONFLICTS", "in a `merge` stage: the files in conflict"),
];

/// The names of [`VARIABLES`].
pub fn names() -> impl Iterator<Item = &'static str> {
    VARIABLES.into_iter().map(|(name, _)| name)
}

/// The values for one iteration; those that do not apply are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables {
    /// `${SESSION}`, `${SESSION_NAME}`: the run's name.
    pub session: String,
    /// `${ITERATION}`, from 1; `${INDEX}` is one less.
    pub iteration: u32,
    pub perspective: String,
    /// `${OUTPUT}`: the path of the iteration's output.
    pub output: String,
    /// `${OUTPUT_PATH}`: the file that the stage names, else the same as `${OUTPUT}`.
    pub output_path: String,
    /// `${PROGRESS}`, `${PROGRESS_FILE}`: the path of the progress file.
    pub progress: String,
    pub inputs: String,
    /// `${INPUTS.name}`, by the names of earlier stages.
    pub named_inputs: BTreeMap<String, String>,
    /// `${ITEM}`, `${CURRENT_ITEM}`
    pub item: String,
    /// `${RESULT}`: the path of the result file.
    pub result: String,
    /// `${STATUS}`: the path of a result file with the fields of other tools.
    pub status: String,
    /// `${CTX}`: the path of the context file.
    pub context_file: String,
    /// `${CONTEXT}`: text of the user's for this stage or run.
    pub context: String,
    /// `${COMMANDS.name}`, by name.
    pub commands: BTreeMap<String, String>,
    pub objective: String,
    /// Others by their whole name: `${MATRIX.name}`, `${ARTIFACTS.name}`, `${MERGE_BRANCH}`, `${MERGE_CONFLICTS}`.
    pub more: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub text: String,
    /// Names without a value, each once, in order of appearance.
    pub unknown: Vec<String>,
}

impl Variables {
    fn value(&self, name: &str) -> Option<Cow<'_, str>> {
        if let Some(value) = self.more.get(name) {
            return Some(value.into());
        }
        let value = match name {
            name if SESSION.contains(&name) => &self.session,
            "ITERATION" => return Some(self.iteration.to_string().into()),
            "INDEX" => return Some(self.iteration.saturating_sub(1).to_string().into()),
            "PERSPECTIVE" => &self.perspective,
            "OUTPUT" => &self.output,
            "PROGRESS" | "PROGRESS_FILE" => &self.progress,
            "INPUTS" => &self.inputs,
            "ITEM" | "CURRENT_ITEM" => &self.item,
            "RESULT" => &self.result,
            "OUTPUT_PATH" => &self.output_path,
            "STATUS" => &self.status,
            "CTX" => &self.context_file,
            "CONTEXT" => &self.context,
            "OBJECTIVE" => &self.objective,
            _ => match name.split_once('.')? {
                ("INPUTS", stage) => self.named_inputs.get(stage)?,
                ("COMMANDS", command) => self.commands.get(command)?,
                _ => return None,
            },
        };
        Some(value.into())
    }
}

pub fn render(template: &str, variables: &Variables) -> Rendered {
    fill(template, |name| variables.value(name))
}

/// Fills in the name of a file or label, where only the run's name is known.
pub fn render_name(template: &str, session: &str) -> Rendered {
    fill(template, |name| SESSION.contains(&name).then_some(session.into()))
}

/// Whether a template has a variable that this is true of.
pub fn uses(template: &str, is_meant: impl Fn(&str) -> bool) -> bool {
    let found = std::cell::Cell::new(false);
    fill(template, |name| {
        found.set(found.get() || is_meant(name));
        None
    });
    found.get()
}

/// One pass over a template; `value_of` returns the value of a name.
fn fill<'v>(template: &str, value_of: impl Fn(&str) -> Option<Cow<'v, str>>) -> Rendered {
    let mut text = String::with_capacity(template.len());
    let mut unknown: Vec<String> = Vec::new();
    let mut rest = template;
    while let Some(dollar) = memchr::memchr(b'$', rest.as_bytes()) {
        let (before, from_dollar) = rest.split_at(dollar);
        text.push_str(before);
        let (taken, name, is_literal) = match from_dollar.strip_prefix('$').and_then(|after| after.strip_prefix('$')) {
            // `$$` is an escape only before a variable.
            Some(after) if name_in_braces(after).is_some() => (1, name_in_braces(after), true),
            _ => (0, from_dollar.strip_prefix('$').and_then(name_in_braces), false),
        };
        let Some(name) = name else {
            text.push('$');
            rest = from_dollar.strip_prefix('$').unwrap_or_default();
            continue;
        };
        // `${` before the name and `}` behind it.
        let whole = from_dollar.get(taken..taken + name.len() + 3).unwrap_or_default();
        let value = if is_literal { None } else { value_of(name) };
        text.push_str(value.as_deref().unwrap_or(whole));
        let is_unknown = value.is_none() && !is_literal;
        if is_unknown && unknown.len() < MOST_UNKNOWN && !unknown.iter().any(|known| known == name) {
            unknown.push(name.to_owned());
        }
        rest = from_dollar.get(taken + whole.len()..).unwrap_or_default();
    }
    text.push_str(rest);
    Rendered { text, unknown }
}

/// The name in a `{NAME}` at the start of a text; `None` for shell syntax such as `{x:-1}`.
fn name_in_braces(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('{')?;
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let length = inside.bytes().take(LONGEST_NAME).take_while(|byte| is_part(byte)).count();
    let begins_well = inside.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let ends_well = inside.as_bytes().get(length) == Some(&b'}');
    if begins_well && ends_well { inside.get(..length) } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn variables() -> Variables {
        Variables {
            session: "auth".into(),
            iteration: 3,
            perspective: "security".into(),
            output: "/p/output.md".into(),
            progress: "/p/progress.txt".into(),
            inputs: "R&D costs $5 \\1 ${SESSION} ${INPUTS.plan}".into(),
            named_inputs: BTreeMap::from([("plan".into(), "the ${INPUTS.plan} of $${ITEM}".into())]),
            item: "beads-12".into(),
            result: "/p/result.json".into(),
            objective: "ship it".into(),
            more: BTreeMap::from([("MATRIX.os".into(), "linux ${ITEM}".into())]),
            output_path: "docs/ideas.md".into(),
            status: "/p/status.json".into(),
            context_file: "/p/context.json".into(),
            context: "mind ${ITEM}".into(),
            commands: BTreeMap::from([("test".into(), "cargo test".into())]),
        }
    }

    #[test]
    fn every_variable_has_its_value_and_nothing_inserted_is_read_again() {
        for (template, expected) in [
            ("${SESSION}/${SESSION_NAME}", "auth/auth"),
            ("${ITERATION} ${INDEX}", "3 2"),
            ("${PERSPECTIVE}${OUTPUT}", "security/p/output.md"),
            ("${PROGRESS} ${PROGRESS_FILE}", "/p/progress.txt /p/progress.txt"),
            ("a ${INPUTS} b", "a R&D costs $5 \\1 ${SESSION} ${INPUTS.plan} b"),
            ("${INPUTS.plan}", "the ${INPUTS.plan} of $${ITEM}"),
            ("${ITEM}=${CURRENT_ITEM}", "beads-12=beads-12"),
            ("${MATRIX.os}", "linux ${ITEM}"),
            ("${RESULT}: ${OBJECTIVE}", "/p/result.json: ship it"),
            ("jq . ${CTX} > ${STATUS}", "jq . /p/context.json > /p/status.json"),
            ("${CONTEXT} ${OUTPUT_PATH}", "mind ${ITEM} docs/ideas.md"),
            ("${COMMANDS.test}", "cargo test"),
            ("$${ITEM} $$${ITEM} $${MISSING}", "${ITEM} $${ITEM} ${MISSING}"),
            ("$ITEM $$ $ {ITEM} ${} ${item:-1} ${ITEM ${ITEM}", "$ITEM $$ $ {ITEM} ${} ${item:-1} ${ITEM beads-12"),
            ("ends in ${", "ends in ${"),
            ("ends in $", "ends in $"),
            ("ä${ITEM}ö${ü}", "äbeads-12ö${ü}"),
            ("", ""),
        ] {
            let expected = Rendered { text: expected.to_owned(), unknown: Vec::new() };
            assert_eq!(render(template, &variables()), expected, "{template}");
        }
    }

    #[test]
    fn every_listed_name_has_a_value() {
        for name in names() {
            assert_eq!(render(&format!("${{{name}}}"), &variables()).unknown, [""; 0], "{name}");
        }
    }

    #[test]
    fn unknown_names_stay_and_are_reported_once() {
        let rendered = render("${FOO} ${INPUTS.nowhere} ${FOO} ${iteration} ${COMMANDS.no} ${ITEM}", &variables());
        assert_eq!(
            rendered,
            Rendered {
                text: "${FOO} ${INPUTS.nowhere} ${FOO} ${iteration} ${COMMANDS.no} beads-12".into(),
                unknown: ["FOO", "INPUTS.nowhere", "iteration", "COMMANDS.no"].map(str::to_owned).to_vec(),
            }
        );
    }

    #[test]
    fn names_of_files_and_labels_know_the_run_only() {
        let rendered = render_name("${SESSION}/${SESSION_NAME}-${ITEM}-$${SESSION}", "a${SESSION_NAME}");
        let text = "a${SESSION_NAME}/a${SESSION_NAME}-${ITEM}-${SESSION}".to_owned();
        assert_eq!(rendered, Rendered { text, unknown: vec!["ITEM".into()] });
    }

    #[test]
    fn what_is_not_set_is_empty() {
        let template = "[${PERSPECTIVE}${OUTPUT}${INPUTS}${ITEM}${OBJECTIVE}${INDEX}]";
        assert_eq!(render(template, &Variables::default()).text, "[0]");
    }

    /// Hostile templates of 10 MB, which only a linear algorithm finishes.
    #[test]
    fn large_templates_are_one_pass() {
        for piece in ["${", "$${ITEM}", "${ITEM} and plain text, ", "${UNKNOWN_NAME}"] {
            let template = piece.repeat(10_000_000 / piece.len());
            let rendered = render(&template, &Variables::default());
            assert!(rendered.unknown.len() <= 1, "{piece}");
            assert!(rendered.text.len() <= template.len(), "{piece}");
        }
        let names: Vec<String> = (0..100_000).map(|number| format!("${{N{number}}}")).collect();
        let many = names.concat();
        let rendered = render(&many, &Variables::default());
        assert_eq!((rendered.text == many, rendered.unknown.len()), (true, MOST_UNKNOWN));
    }

    proptest! {
        #[test]
        fn text_without_a_variable_comes_out_as_it_went_in(text in "[^$]*(\\$[^{$][^$]*)*") {
            prop_assert_eq!(render(&text, &variables()), Rendered { text: text.clone(), unknown: Vec::new() });
        }

        #[test]
        fn a_value_is_inserted_verbatim_whatever_it_is(value in any::<String>(), before in "[a-z ]*", after in "[a-z ]*") {
            let variables = Variables { inputs: value.clone(), ..Variables::default() };
            let text = render(&format!("{before}${{INPUTS}}{after}"), &variables).text;
            prop_assert_eq!(text, format!("{before}{value}{after}"));
        }
    }
}
