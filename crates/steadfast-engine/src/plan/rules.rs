//! Completion rules as definitions write them: a name, a name with its argument, or `any` and `all` of several. A bare
//! name takes its argument from the key of the same name beside `completion`.

use steadfast_model::run::rule::RuleKind;
use steadfast_model::run::{Rule, template};
use strum::VariantNames as _;

use super::fault::{Location, did_you_mean};
use super::keys::{LocatedText, Setting, Value, count, keys, located_text, text, texts};
use super::yaml::{Node, Yaml};

/// What agents promise if the definition names no other text.
const PROMISE: &str = "COMPLETE";
const MAX_DEPTH: usize = 8;

keys! {
    /// The keys beside `completion` that give a bare name its argument.
    Arguments {
        verify: Setting<Vec<String>> = texts("verify"),
        command: Setting<LocatedText> = located_text("command"),
        promise: Setting<LocatedText> = located_text("promise"),
        checklist: Setting<LocatedText> = located_text("checklist"),
        label: Setting<String> = text("label"),
        consensus: Option<u32> = count("consensus"),
    }
}

/// A rule as it is written. It becomes a [`Rule`] when the keys beside it are known, those of its loop type included.
#[derive(Debug, Clone)]
pub(super) struct RuleDef {
    pub(super) at: Location,
    node: Node,
}

#[expect(clippy::unnecessary_wraps, reason = "all readers of a table return an option")]
pub(super) fn rule_def(value: &Value<'_>) -> Option<RuleDef> {
    Some(RuleDef { at: value.at.clone(), node: value.node.clone() })
}

impl RuleDef {
    fn value(&self) -> Value<'_> {
        Value { key: "completion", node: &self.node, at: self.at.clone() }
    }

    fn asks_for(&self, kind: RuleKind) -> bool {
        asks_for(&self.value(), kind.into())
    }

    /// The shell commands in its arguments.
    pub(super) fn commands(&self) -> Vec<String> {
        commands(&self.value())
    }
}

/// Whether a rule of this name takes its argument from the key beside `completion`.
fn asks_for(value: &Value<'_>, name: &str) -> bool {
    match &value.node.value {
        Yaml::Text(bare) => bare.trim() == name,
        Yaml::Map(entries) => entries.iter().any(|entry| match entry.key.as_str() {
            "any" | "all" => Value::of_entry(entry, &value.at).elements().any(|part| asks_for(&part, name)),
            key => key == name && entry.node.value == Yaml::Null,
        }),
        _ => false,
    }
}

fn commands(value: &Value<'_>) -> Vec<String> {
    let Yaml::Map(entries) = &value.node.value else { return Vec::new() };
    let of_entry = |entry| -> Vec<String> {
        let argument = Value::of_entry(entry, &value.at);
        match argument.key {
            "any" | "all" => argument.elements().flat_map(|part| commands(&part)).collect(),
            "command" | "verify" => texts(&argument).unwrap_or_default(),
            _ => Vec::new(),
        }
    };
    entries.iter().flat_map(of_entry).collect()
}

impl Arguments {
    /// Those that a rule asks for; `verify` holds for any rule.
    pub(super) fn used_by(self, completion: &Setting<RuleDef>) -> Self {
        let keep = |kind: RuleKind, argument: Setting<LocatedText>| match completion.as_on() {
            Some(rule) if rule.asks_for(kind) => argument,
            _ => Setting::Absent,
        };
        Self {
            command: keep(RuleKind::Command, self.command),
            promise: keep(RuleKind::Promise, self.promise),
            checklist: keep(RuleKind::Checklist, self.checklist),
            ..self
        }
    }
}

impl Arguments {
    /// Whether one is set that makes a rule by itself.
    pub(super) fn is_of_a_rule(&self) -> bool {
        [&self.command, &self.promise, &self.checklist].into_iter().any(|argument| argument.as_on().is_some())
    }
}

fn leaf_names() -> impl Iterator<Item = &'static str> {
    RuleKind::VARIANTS.iter().copied().filter(|name| !matches!(*name, "any" | "all" | "merged"))
}

fn kind_of(name: &str, at: &Location) -> Option<RuleKind> {
    let kind = match name {
        // Names that other tools use.
        "fixed" => Some(RuleKind::FixedN),
        "judgment" => Some(RuleKind::Plateau),
        "queue" => Some(RuleKind::BeadsEmpty),
        // Only stages with `merge` have it.
        "merged" => None,
        name => name.parse().ok(),
    };
    kind.or_else(|| {
        let name: String = name.chars().take(80).collect();
        let known = leaf_names().collect::<Vec<_>>().join(", ");
        let fix = format!("{}Known are {known}, `any` and `all`", did_you_mean(&name, leaf_names()));
        at.refuse(format!("there is no completion rule `{name}`"), fix)
    })
}

pub(super) struct Resolver<'a> {
    pub(super) arguments: &'a Arguments,
    /// The run's name, for labels and files named after it.
    pub(super) run: &'a str,
    pub(super) items: usize,
    pub(super) at: Location,
}

impl Resolver<'_> {
    /// The rule of a stage: `completion`, and `verify` besides.
    pub(super) fn rule(&self, completion: &Setting<RuleDef>) -> Rule {
        let stated = completion.as_on();
        let asks_for = |kind: RuleKind| stated.is_some_and(|stated| stated.asks_for(kind));
        let mut unused = vec![
            (RuleKind::Command, &self.arguments.command),
            (RuleKind::Promise, &self.arguments.promise),
            (RuleKind::Checklist, &self.arguments.checklist),
        ];
        unused.retain(|(kind, argument)| argument.as_on().is_some() && !asks_for(*kind));
        let mut parts = Vec::new();
        match (stated, unused.as_slice()) {
            (Some(stated), []) => parts.extend(self.read(&stated.value(), 0)),
            (None, [(kind, _)]) => parts.extend(self.resolve(*kind, None, &self.at, 0)),
            // Items are there to be worked on, one after the other.
            (None, []) if completion.is_absent() && self.items > 0 => parts.push(Rule::AllItems),
            (None, []) if completion.is_absent() => {}
            (None, []) => parts.push(Rule::FixedN),
            (_, [(name, argument), ..]) => {
                let at = argument.as_on().map_or(&self.at, |(_, at)| at);
                let fix = format!("combine them: `completion: {{any: [{name}, …]}}`, or remove `{name}`");
                at.error(format!("`{name}` is given, but `completion` does not use it"), fix);
            }
        }
        let verify = self.arguments.verify.as_on().filter(|commands| !commands.is_empty());
        parts.extend(verify.filter(|_| !asks_for(RuleKind::Verify)).cloned().map(Rule::Verify));
        match parts.len() {
            0 => Rule::FixedN,
            1 => parts.swap_remove(0),
            _ => Rule::All(parts),
        }
    }

    /// The rule of a stage that merges: the branches are merged, and what the user verifies holds.
    pub(super) fn merge_rule(&self) -> Rule {
        match self.arguments.verify.as_on().filter(|commands| !commands.is_empty()) {
            Some(commands) => Rule::All(vec![Rule::Merged, Rule::Verify(commands.clone())]),
            None => Rule::Merged,
        }
    }

    fn read(&self, value: &Value<'_>, depth: usize) -> Option<Rule> {
        let at = &value.at;
        match &value.node.value {
            _ if depth > MAX_DEPTH => at.refuse("the rule is nested too deeply", "use fewer `any` and `all`"),
            Yaml::Text(name) => self.resolve(kind_of(name.trim(), at)?, None, at, depth),
            Yaml::Map(entries) => {
                let [entry] = entries.as_slice() else {
                    let fix = "write one rule, or combine several: `completion: {any: [plateau, {promise: DONE}]}`";
                    return at.refuse("a rule is one name with its argument", fix);
                };
                let argument = Value::of_entry(entry, at);
                self.resolve(kind_of(&entry.key, &argument.at)?, Some(&argument), &argument.at, depth)
            }
            Yaml::List(_) => {
                at.refuse("a list of rules needs `any` or `all`", "write `any:` or `all:` before the list")
            }
            _ => {
                let fix = format!("use one of {}, `any` or `all`", leaf_names().collect::<Vec<_>>().join(", "));
                at.refuse("`completion` has to be a rule", fix)
            }
        }
    }

    fn resolve(&self, kind: RuleKind, stated: Option<&Value<'_>>, at: &Location, depth: usize) -> Option<Rule> {
        let argument = stated.filter(|stated| stated.node.value != Yaml::Null);
        let text_or = |beside: Option<&String>, missing: &dyn Fn() -> Option<String>| match argument {
            Some(argument) => text(argument),
            None => beside.cloned().or_else(missing),
        };
        let of = |beside: &'_ Setting<LocatedText>| beside.as_on().map(|(text, _)| text.clone());
        let (command, promise) = (of(&self.arguments.command), of(&self.arguments.promise));
        let checklist = of(&self.arguments.checklist);
        Some(match kind {
            RuleKind::FixedN | RuleKind::AllItems if argument.is_some() => {
                let fix = "set the number with `runs`, or the items with `items`";
                return at.refuse(format!("the rule `{kind}` takes no argument"), fix);
            }
            RuleKind::FixedN => Rule::FixedN,
            RuleKind::Merged => Rule::Merged,
            RuleKind::AllItems if self.items == 0 => {
                return at.refuse("the rule `all-items` has no items", "add `items: [first, second]`");
            }
            RuleKind::AllItems => Rule::AllItems,
            RuleKind::Plateau => {
                let votes = match argument {
                    Some(argument) => count(argument)?,
                    None => self.arguments.consensus.unwrap_or(2),
                };
                if votes < 2 {
                    let fix = "use `plateau: 2`, so that a second agent has to agree";
                    at.warning("a single agent can end the stage", fix);
                }
                Rule::Plateau(votes)
            }
            RuleKind::BeadsEmpty => {
                let label = text_or(self.arguments.label.as_on(), &|| Some("loop/${SESSION}".into()))?;
                Rule::BeadsEmpty(self.named_after_run(&label, at))
            }
            RuleKind::Command => Rule::Command(text_or(command.as_ref(), &|| {
                at.refuse("the rule `command` has no command", "add `command: \"make check\"`")
            })?),
            RuleKind::Promise => {
                let promise = text_or(promise.as_ref(), &|| Some(PROMISE.into()))?;
                Rule::Promise(promise.trim().to_owned())
            }
            RuleKind::Verify => {
                let commands = argument.map_or_else(|| self.arguments.verify.as_on().cloned(), texts);
                let commands = commands.filter(|commands| !commands.is_empty());
                let fix = "add `verify: [\"cargo test\"]` or --verify";
                Rule::Verify(commands.or_else(|| at.refuse("the rule `verify` has no commands", fix))?)
            }
            RuleKind::Checklist => {
                let file = text_or(checklist.as_ref(), &|| {
                    at.refuse("the rule `checklist` has no file", "add `checklist: PLAN.md`")
                })?;
                let file = self.named_after_run(file.trim(), at);
                if !is_inside_project(&file) {
                    let fix = "name a file of the project, such as `checklist: PLAN.md`";
                    return at.refuse("the checklist has to be in the project", fix);
                }
                Rule::Checklist(file)
            }
            RuleKind::Any | RuleKind::All => {
                let parts: Vec<_> = stated.into_iter().filter(|s| !s.is_off()).flat_map(Value::elements).collect();
                if parts.is_empty() {
                    return at.refuse(format!("`{kind}` is empty"), "list the rules that it combines");
                }
                let rules = parts.iter().filter_map(|part| self.read(part, depth + 1)).collect();
                if kind == RuleKind::Any { Rule::Any(rules) } else { Rule::All(rules) }
            }
        })
    }

    fn named_after_run(&self, text: &str, at: &Location) -> String {
        let rendered = template::render_name(text, self.run);
        for name in rendered.unknown {
            at.warning(
                format!("`${{{name}}}` has no value here: it stays as it is"),
                "use `${SESSION}`, or write it out",
            );
        }
        rendered.text
    }
}

pub(super) fn is_inside_project(path: &str) -> bool {
    use std::path::Component;
    let mut components = std::path::Path::new(path).components();
    !path.is_empty() && components.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}
