//! When a stage is over, as definitions say it: a word, a word with its argument, or `any` and `all` of several. What
//! a bare word needs — the command, the promise, the file — stands beside it under a key of that name.

use steadfast_model::run::{Rule, template};

use super::fault::{At, Faults, did_you_mean};
use super::fields::{Setting, Value};
use super::yaml::Yaml;

/// The word that agents promise if nobody chose another.
const PROMISE: &str = "COMPLETE";
const WORDS: [&str; 8] =
    ["fixed-n", "all-items", "plateau", "beads-empty", "command", "promise", "verify", "checklist"];
const MOST_DEPTH: usize = 8;

/// A rule whose arguments may still be missing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RuleDef {
    pub(super) at: At,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    FixedN,
    AllItems,
    Plateau(Option<u32>),
    BeadsEmpty(Option<String>),
    Command(Option<String>),
    Promise(Option<String>),
    Verify(Option<Vec<String>>),
    Checklist(Option<String>),
    Any(Vec<RuleDef>),
    All(Vec<RuleDef>),
}

/// The keys beside `completion` that give a bare word its argument.
#[derive(Debug, Clone, Default)]
pub(super) struct Arguments {
    pub(super) verify: Setting<Vec<String>>,
    pub(super) command: Setting<String>,
    pub(super) promise: Setting<String>,
    pub(super) checklist: Setting<String>,
    pub(super) label: Setting<String>,
    pub(super) consensus: Option<u32>,
}

impl Arguments {
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            verify: self.verify.or(other.verify),
            command: self.command.or(other.command),
            promise: self.promise.or(other.promise),
            checklist: self.checklist.or(other.checklist),
            label: self.label.or(other.label),
            consensus: self.consensus.or(other.consensus),
        }
    }
}

impl Arguments {
    /// Only what a rule asks for by name; the verification stands for itself.
    pub(super) fn used_by(self, completion: &Setting<RuleDef>) -> Self {
        let kept = |word: &str, argument: Setting<String>| match completion.as_on() {
            Some(rule) if names(rule, word) => argument,
            _ => Setting::Absent,
        };
        Self {
            command: kept("command", self.command),
            promise: kept("promise", self.promise),
            checklist: kept("checklist", self.checklist),
            ..self
        }
    }
}

impl RuleDef {
    /// Reads the value of `completion`.
    pub(super) fn read(value: &Value<'_>, faults: &mut Faults) -> Option<Self> {
        Self::read_at_depth(value, 0, faults)
    }

    fn read_at_depth(value: &Value<'_>, depth: usize, faults: &mut Faults) -> Option<Self> {
        let at = value.at.clone();
        if depth > MOST_DEPTH {
            faults.error(&at, "the rule is nested too deeply", "use fewer `any` and `all`");
            return None;
        }
        match &value.node.value {
            Yaml::Text(word) => Self::of_word(word.trim(), &at, faults),
            Yaml::Map(entries) => {
                let [entry] = entries.as_slice() else {
                    let fix = "write one rule, or combine several: `completion: {any: [plateau, {promise: DONE}]}`";
                    faults.error(&at, "a rule is one word with its argument", fix);
                    return None;
                };
                let at = at.line(entry.line);
                let argument = Value { key: &entry.key, node: &entry.node, at: at.clone() };
                let kind = match entry.key.as_str() {
                    "any" | "all" => {
                        let parts: Vec<_> = argument.nodes().collect();
                        let rules: Vec<Self> =
                            parts.iter().filter_map(|part| Self::read_at_depth(part, depth + 1, faults)).collect();
                        if parts.is_empty() || argument.is_off() {
                            faults.error(&at, format!("`{}` is empty", entry.key), "list the rules that it combines");
                        }
                        if entry.key == "any" { Kind::Any(rules) } else { Kind::All(rules) }
                    }
                    word => {
                        let rule = Self::of_word(word, &at, faults)?;
                        rule.with_argument(&argument, faults)?
                    }
                };
                Some(Self { at, kind })
            }
            Yaml::List(_) => {
                faults.error(&at, "it is not said how these rules combine", "write `any:` or `all:` before the list");
                None
            }
            _ => {
                let fix = format!("use one of {}, `any` or `all`", WORDS.join(", "));
                faults.error(&at, "`completion` has to be a rule", fix);
                None
            }
        }
    }

    pub(super) fn of_word(word: &str, at: &At, faults: &mut Faults) -> Option<Self> {
        let kind = match word {
            "fixed-n" | "fixed" => Kind::FixedN,
            "all-items" => Kind::AllItems,
            "plateau" | "judgment" => Kind::Plateau(None),
            "beads-empty" | "queue" => Kind::BeadsEmpty(None),
            "command" => Kind::Command(None),
            "promise" => Kind::Promise(None),
            "verify" => Kind::Verify(None),
            "checklist" => Kind::Checklist(None),
            _ => {
                let word: String = word.chars().take(80).collect();
                let fix = format!("{}Known are {}, `any` and `all`", did_you_mean(&word, WORDS), WORDS.join(", "));
                faults.error(at, format!("there is no completion rule `{word}`"), fix);
                return None;
            }
        };
        Some(Self { at: at.clone(), kind })
    }

    fn with_argument(self, argument: &Value<'_>, faults: &mut Faults) -> Option<Kind> {
        if argument.node.value == Yaml::Null {
            return Some(self.kind);
        }
        Some(match self.kind {
            Kind::FixedN | Kind::AllItems => {
                let fix = "say how many with `runs`, or which with `items`";
                faults.error(&argument.at, format!("the rule `{}` takes no argument", argument.key), fix);
                return None;
            }
            Kind::Plateau(_) => Kind::Plateau(Some(argument.whole(1, faults)?)),
            Kind::BeadsEmpty(_) => Kind::BeadsEmpty(Some(argument.text(faults)?)),
            Kind::Command(_) => Kind::Command(Some(argument.text(faults)?)),
            Kind::Promise(_) => Kind::Promise(Some(argument.text(faults)?)),
            Kind::Verify(_) => Kind::Verify(Some(argument.texts(faults)?)),
            Kind::Checklist(_) => Kind::Checklist(Some(argument.text(faults)?)),
            combined @ (Kind::Any(_) | Kind::All(_)) => combined,
        })
    }
}

/// Makes rules of what was read.
pub(super) struct Resolver<'a> {
    pub(super) arguments: &'a Arguments,
    /// The run's name, for labels and files named after it.
    pub(super) run: &'a str,
    pub(super) items: usize,
    pub(super) at: At,
}

impl Resolver<'_> {
    /// The rule of a stage: what `completion` says, and the user's verification besides.
    pub(super) fn rule(&self, completion: &Setting<RuleDef>, faults: &mut Faults) -> Rule {
        let stated = completion.as_on();
        let alone = [
            ("command", self.arguments.command.as_on().map(|_| Kind::Command(None))),
            ("promise", self.arguments.promise.as_on().map(|_| Kind::Promise(None))),
            ("checklist", self.arguments.checklist.as_on().map(|_| Kind::Checklist(None))),
        ];
        let unused: Vec<_> = alone
            .into_iter()
            .filter_map(|(word, kind)| Some((word, kind?)))
            .filter(|(word, _)| !stated.is_some_and(|stated| names(stated, word)))
            .collect();
        let mut parts = Vec::new();
        match (stated, unused.as_slice()) {
            (Some(stated), []) => parts.extend(self.resolve(stated, faults)),
            (None, [(_, kind)]) => {
                parts.extend(self.resolve(&RuleDef { at: self.at.clone(), kind: kind.clone() }, faults));
            }
            (None, []) if matches!(completion, Setting::Off) => parts.push(Rule::FixedN),
            (None, []) => {}
            (_, [(word, _), ..]) => {
                let fix = format!("combine them: `completion: {{any: [{word}, …]}}`, or remove `{word}`");
                faults.error(&self.at, format!("`{word}` is given, but `completion` does not use it"), fix);
            }
        }
        let verify = self.arguments.verify.as_on().filter(|commands| !commands.is_empty());
        if let Some(commands) = verify.filter(|_| !stated.is_some_and(|stated| names(stated, "verify"))) {
            parts.push(Rule::Verify(commands.clone()));
        }
        match parts.len() {
            0 => Rule::FixedN,
            1 => parts.swap_remove(0),
            _ => Rule::All(parts),
        }
    }

    fn resolve(&self, def: &RuleDef, faults: &mut Faults) -> Option<Rule> {
        let need = |own: &Option<String>, beside: &Setting<String>| own.clone().or_else(|| beside.as_on().cloned());
        let missing = |what: &str, fix: &str, faults: &mut Faults| {
            faults.error(&def.at, what, fix);
            None
        };
        Some(match &def.kind {
            Kind::FixedN => Rule::FixedN,
            Kind::AllItems if self.items == 0 => {
                return missing("the rule `all-items` has no items", "add `items: [first, second]`", faults);
            }
            Kind::AllItems => Rule::AllItems,
            Kind::Plateau(count) => {
                let count = count.or(self.arguments.consensus).unwrap_or(2);
                if count < 2 {
                    let fix = "use `plateau: 2`, so that another agent has to agree";
                    faults.warning(&def.at, "a single agent's word ends the stage", fix);
                }
                Rule::Plateau(count)
            }
            Kind::BeadsEmpty(label) => {
                let label = need(label, &self.arguments.label).unwrap_or_else(|| "loop/${SESSION}".into());
                Rule::BeadsEmpty(self.named_after_run(&label, &def.at, faults))
            }
            Kind::Command(command) => match need(command, &self.arguments.command) {
                Some(command) => Rule::Command(command),
                None => return missing("the rule `command` has no command", "add `command: \"make check\"`", faults),
            },
            Kind::Promise(promise) => {
                let promise = need(promise, &self.arguments.promise).unwrap_or_else(|| PROMISE.into());
                Rule::Promise(promise.trim().to_owned())
            }
            Kind::Verify(commands) => {
                let commands = commands.clone().or_else(|| self.arguments.verify.as_on().cloned()).unwrap_or_default();
                if commands.is_empty() {
                    return missing(
                        "the rule `verify` has no commands",
                        "add `verify: [\"cargo test\"]` or --verify",
                        faults,
                    );
                }
                Rule::Verify(commands)
            }
            Kind::Checklist(file) => match need(file, &self.arguments.checklist) {
                Some(file) => {
                    let file = self.named_after_run(file.trim(), &def.at, faults);
                    if !stays_inside(&file) {
                        let fix = "name a file of the project, such as `checklist: PLAN.md`";
                        return missing("the checklist has to be in the project", fix, faults);
                    }
                    Rule::Checklist(file)
                }
                None => return missing("the rule `checklist` has no file", "add `checklist: PLAN.md`", faults),
            },
            Kind::Any(rules) => Rule::Any(rules.iter().filter_map(|rule| self.resolve(rule, faults)).collect()),
            Kind::All(rules) => Rule::All(rules.iter().filter_map(|rule| self.resolve(rule, faults)).collect()),
        })
    }

    fn named_after_run(&self, text: &str, at: &At, faults: &mut Faults) -> String {
        let rendered = template::render_name(text, self.run);
        for name in rendered.unknown {
            let fix = "use `${SESSION}`, or write it out";
            faults.warning(at, format!("`${{{name}}}` has no value here: it stays as it is"), fix);
        }
        rendered.text
    }
}

fn names(def: &RuleDef, word: &str) -> bool {
    match &def.kind {
        Kind::Command(None) => word == "command",
        Kind::Promise(None) => word == "promise",
        Kind::Verify(None) => word == "verify",
        Kind::Checklist(None) => word == "checklist",
        Kind::Any(rules) | Kind::All(rules) => rules.iter().any(|rule| names(rule, word)),
        _ => false,
    }
}

/// A path of the project, not out of it.
fn stays_inside(path: &str) -> bool {
    use std::path::Component;
    let mut components = std::path::Path::new(path).components();
    !path.is_empty() && components.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}
