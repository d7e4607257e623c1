//! Completion rules as definitions write them: a name, a name with its argument, or `any` and `all` of several. A bare
//! name takes its argument from the key of the same name beside `completion`.

use steadfast_model::run::rule::RuleKind;
use steadfast_model::run::{Rule, template};

use super::fault::{Location, did_you_mean};
use super::keys::{Count, FromYaml, Setting, Value, keys};
use super::yaml::Yaml;

/// What agents promise if the definition names no other text.
const PROMISE: &str = "COMPLETE";
const MAX_DEPTH: usize = 8;

keys! {
    /// The keys beside `completion` that give a bare name its argument.
    Arguments {
        verify: Setting<Vec<String>>,
        command: Setting<String>,
        promise: Setting<String>,
        checklist: Setting<String>,
        label: Setting<String>,
        consensus: Option<Count<1>>,
    }
}

/// A rule whose argument may still be missing.
#[derive(Debug, Clone)]
pub(super) struct RuleDef {
    pub(super) at: Location,
    kind: RuleKind,
    argument: Option<Argument>,
    /// The rules that `any` or `all` combines.
    parts: Vec<RuleDef>,
}

#[derive(Debug, Clone)]
enum Argument {
    Count(u32),
    Texts(Vec<String>),
}

/// A rule by its name alone.
#[derive(Debug, Clone)]
pub(super) struct BareRule(pub(super) RuleDef);

impl FromYaml for BareRule {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        let name = String::from_yaml(value)?;
        Some(Self(RuleDef::bare(leaf_kind(&name, &value.at)?, &value.at)))
    }
}

impl FromYaml for RuleDef {
    fn from_yaml(value: &Value<'_>) -> Option<Self> {
        Self::read(value, 0)
    }
}

fn leaf_names() -> impl Iterator<Item = &'static str> {
    RuleKind::names().filter(|name| !matches!(*name, "any" | "all"))
}

/// The kind of a rule that combines no others; the last three are names of other tools.
fn leaf_kind(name: &str, at: &Location) -> Option<RuleKind> {
    match name {
        "fixed" => Some(RuleKind::FixedN),
        "judgment" => Some(RuleKind::Plateau),
        "queue" => Some(RuleKind::BeadsEmpty),
        name if leaf_names().any(|known| known == name) => name.parse().ok(),
        _ => {
            let name: String = name.chars().take(80).collect();
            let known = leaf_names().collect::<Vec<_>>().join(", ");
            let fix = format!("{}Known are {known}, `any` and `all`", did_you_mean(&name, leaf_names()));
            at.refuse(format!("there is no completion rule `{name}`"), fix)
        }
    }
}

impl RuleDef {
    fn bare(kind: RuleKind, at: &Location) -> Self {
        Self { at: at.clone(), kind, argument: None, parts: Vec::new() }
    }

    fn read(value: &Value<'_>, depth: usize) -> Option<Self> {
        let at = &value.at;
        if depth > MAX_DEPTH {
            return at.refuse("the rule is nested too deeply", "use fewer `any` and `all`");
        }
        let entry = match &value.node.value {
            Yaml::Text(name) => return Some(Self::bare(leaf_kind(name.trim(), at)?, at)),
            Yaml::Map(entries) => match entries.as_slice() {
                [entry] => entry,
                _ => {
                    let fix = "write one rule, or combine several: `completion: {any: [plateau, {promise: DONE}]}`";
                    return at.refuse("a rule is one name with its argument", fix);
                }
            },
            Yaml::List(_) => {
                return at.refuse("a list of rules needs `any` or `all`", "write `any:` or `all:` before the list");
            }
            _ => {
                let fix = format!("use one of {}, `any` or `all`", leaf_names().collect::<Vec<_>>().join(", "));
                return at.refuse("`completion` has to be a rule", fix);
            }
        };
        let argument = Value::of_entry(entry, at);
        let kind = match entry.key.as_str() {
            "any" => RuleKind::Any,
            "all" => RuleKind::All,
            name => leaf_kind(name, &argument.at)?,
        };
        Self::bare(kind, &argument.at).with_argument(&argument, depth)
    }

    fn with_argument(self, value: &Value<'_>, depth: usize) -> Option<Self> {
        if matches!(self.kind, RuleKind::Any | RuleKind::All) {
            let elements: Vec<_> = value.elements().collect();
            if elements.is_empty() || value.is_off() {
                value.at.error(format!("`{}` is empty", value.key), "list the rules that it combines");
            }
            let parts = elements.iter().filter_map(|element| Self::read(element, depth + 1)).collect();
            return Some(Self { parts, ..self });
        }
        if value.node.value == Yaml::Null {
            return Some(self);
        }
        let argument = match self.kind {
            RuleKind::FixedN | RuleKind::AllItems | RuleKind::Any | RuleKind::All => {
                let what = format!("the rule `{}` takes no argument", value.key);
                return value.at.refuse(what, "set the number with `runs`, or the items with `items`");
            }
            RuleKind::Plateau => Argument::Count(Count::<1>::from_yaml(value)?.0),
            RuleKind::Verify => Argument::Texts(Vec::from_yaml(value)?),
            RuleKind::BeadsEmpty | RuleKind::Command | RuleKind::Promise | RuleKind::Checklist => {
                Argument::Texts(vec![String::from_yaml(value)?])
            }
        };
        Some(Self { argument: Some(argument), ..self })
    }

    fn texts(&self) -> Option<&Vec<String>> {
        match &self.argument {
            Some(Argument::Texts(texts)) => Some(texts),
            Some(Argument::Count(_)) | None => None,
        }
    }

    /// Whether a rule of this kind takes its argument from the key beside `completion`.
    fn asks_for(&self, kind: RuleKind) -> bool {
        (self.kind == kind && self.argument.is_none()) || self.parts.iter().any(|part| part.asks_for(kind))
    }

    /// The shell commands in its arguments.
    pub(super) fn commands(&self) -> Vec<String> {
        let runs = matches!(self.kind, RuleKind::Command | RuleKind::Verify);
        let own = self.texts().filter(|_| runs).into_iter().flatten().cloned();
        own.chain(self.parts.iter().flat_map(Self::commands)).collect()
    }
}

impl Arguments {
    /// Those that a rule asks for; `verify` holds for any rule.
    pub(super) fn used_by(self, completion: &Setting<RuleDef>) -> Self {
        let keep = |kind: RuleKind, argument: Setting<String>| match completion.as_on() {
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

/// Makes a rule of its definition.
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
        let given = [
            (RuleKind::Command, &self.arguments.command),
            (RuleKind::Promise, &self.arguments.promise),
            (RuleKind::Checklist, &self.arguments.checklist),
        ];
        let unused: Vec<RuleKind> = given
            .into_iter()
            .filter(|(kind, argument)| argument.as_on().is_some() && !asks_for(*kind))
            .map(|(kind, _)| kind)
            .collect();
        let mut parts = Vec::new();
        match (stated, unused.as_slice()) {
            (Some(stated), []) => parts.extend(self.resolve(stated)),
            (None, [kind]) => parts.extend(self.resolve(&RuleDef::bare(*kind, &self.at))),
            (None, []) if completion.is_absent() => {}
            (None, []) => parts.push(Rule::FixedN),
            (_, [name, ..]) => {
                let fix = format!("combine them: `completion: {{any: [{name}, …]}}`, or remove `{name}`");
                self.at.error(format!("`{name}` is given, but `completion` does not use it"), fix);
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

    fn resolve(&self, def: &RuleDef) -> Option<Rule> {
        let text = |beside: &Setting<String>| {
            let own = def.texts().and_then(|texts| texts.first());
            own.or(beside.as_on()).cloned()
        };
        let parts = || def.parts.iter().filter_map(|part| self.resolve(part)).collect();
        Some(match def.kind {
            RuleKind::FixedN => Rule::FixedN,
            RuleKind::AllItems if self.items == 0 => {
                return def.at.refuse("the rule `all-items` has no items", "add `items: [first, second]`");
            }
            RuleKind::AllItems => Rule::AllItems,
            RuleKind::Plateau => {
                let count = match (&def.argument, &self.arguments.consensus) {
                    (Some(Argument::Count(count)), _) | (_, Some(Count(count))) => *count,
                    _ => 2,
                };
                if count < 2 {
                    let fix = "use `plateau: 2`, so that a second agent has to agree";
                    def.at.warning("a single agent can end the stage", fix);
                }
                Rule::Plateau(count)
            }
            RuleKind::BeadsEmpty => {
                let label = text(&self.arguments.label).unwrap_or_else(|| "loop/${SESSION}".into());
                Rule::BeadsEmpty(self.named_after_run(&label, &def.at))
            }
            RuleKind::Command => match text(&self.arguments.command) {
                Some(command) => Rule::Command(command),
                None => return def.at.refuse("the rule `command` has no command", "add `command: \"make check\"`"),
            },
            RuleKind::Promise => {
                let promise = text(&self.arguments.promise).unwrap_or_else(|| PROMISE.into());
                Rule::Promise(promise.trim().to_owned())
            }
            RuleKind::Verify => match def.texts().or(self.arguments.verify.as_on()) {
                Some(commands) if !commands.is_empty() => Rule::Verify(commands.clone()),
                _ => {
                    let fix = "add `verify: [\"cargo test\"]` or --verify";
                    return def.at.refuse("the rule `verify` has no commands", fix);
                }
            },
            RuleKind::Checklist => {
                let Some(file) = text(&self.arguments.checklist) else {
                    return def.at.refuse("the rule `checklist` has no file", "add `checklist: PLAN.md`");
                };
                let file = self.named_after_run(file.trim(), &def.at);
                if !is_inside_project(&file) {
                    let fix = "name a file of the project, such as `checklist: PLAN.md`";
                    return def.at.refuse("the checklist has to be in the project", fix);
                }
                Rule::Checklist(file)
            }
            RuleKind::Any => Rule::Any(parts()),
            RuleKind::All => Rule::All(parts()),
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

fn is_inside_project(path: &str) -> bool {
    use std::path::Component;
    let mut components = std::path::Path::new(path).components();
    !path.is_empty() && components.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}
