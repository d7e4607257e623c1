//! Completion rules: what one needs, which checks it asks for, and whether it holds. Checks that cannot change the answer
//! are not run: `all: [promise, verify]` runs no command before the promise is made.

use super::{AgentPlan, Check, Checked, Rule, Success};
use crate::text;

pub use super::plan::RuleKind;

/// What a rule needs, part by part.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RuleNeeds<'a> {
    /// Shell commands that test it.
    pub commands: Vec<&'a str>,
    /// Programs that have to be on PATH.
    pub programs: Vec<&'static str>,
    pub files: Vec<&'a str>,
    /// Texts that the agent can promise.
    pub promises: Vec<&'a str>,
    /// A vote of the worker or of a judge.
    pub vote: bool,
}

/// What is known when a rule is tested.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Committed iterations, including the one that is tested.
    pub iterations: u32,
    pub max: u32,
    pub items: usize,
    /// Iterations in a row that agree, including the one that is tested; `None` until the judge has voted.
    pub agreeing: Option<u32>,
    /// Promises in the answer of the iteration that is tested.
    pub promises: &'a [String],
    /// Results of checks; `None` before they ran.
    pub facts: Option<&'a [Checked]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holding {
    /// With the names of the rules that hold.
    Yes(Vec<&'static str>),
    No,
    /// It depends on these checks.
    Unknown(Vec<Check>),
}

impl Rule {
    /// The name, as in plans and as the reason of a stage's end.
    pub fn name(&self) -> &'static str {
        RuleKind::from(self).into()
    }

    /// The rules that this one combines, in their order; itself, if it combines none.
    pub fn leaves(&self) -> impl Iterator<Item = &Self> {
        let mut rest = vec![self];
        std::iter::from_fn(move || {
            loop {
                match rest.pop()? {
                    Self::Any(rules) | Self::All(rules) => rest.extend(rules.iter().rev()),
                    leaf => return Some(leaf),
                }
            }
        })
    }

    /// What its parts need outside of the run's own state.
    pub fn needs(&self) -> RuleNeeds<'_> {
        let mut needs = RuleNeeds::default();
        for leaf in self.leaves() {
            match leaf {
                Self::Plateau(_) => needs.vote = true,
                Self::BeadsEmpty(_) => needs.programs.push("bd"),
                Self::Command(command) => needs.commands.push(command),
                Self::Promise(promise) => needs.promises.push(promise),
                Self::Verify(commands) => needs.commands.extend(commands.iter().map(String::as_str)),
                Self::Checklist(file) => needs.files.push(file),
                Self::FixedN | Self::AllItems | Self::Merged | Self::Any(_) | Self::All(_) => {}
            }
        }
        needs
    }

    /// The rule in words, for a stage with this maximum and this number of items.
    pub fn describe(&self, max: u32, items: usize) -> String {
        let join = |rules: &[Self], between: &str| {
            let parts = rules.iter().map(|rule| format!("({})", rule.describe(max, items)));
            parts.collect::<Vec<_>>().join(between)
        };
        match self {
            Self::FixedN if max == 1 => "1 iteration is done".to_owned(),
            Self::FixedN => format!("{max} iterations are done"),
            Self::AllItems => {
                format!("each of {} had its iteration", text::count(items, "item"))
            }
            Self::Plateau(1) => "an iteration finds nothing left to improve".to_owned(),
            Self::Plateau(count) => format!("{count} iterations in a row find nothing left to improve"),
            Self::BeadsEmpty(label) => format!("no bead labelled {label} is left"),
            Self::Command(command) => format!("`{command}` exits with 0"),
            Self::Promise(promise) => format!("the answer contains <promise>{promise}</promise>"),
            Self::Verify(commands) => format!("`{}` exits with 0", commands.join(" && ")),
            Self::Checklist(file) => format!("no box is left in {file}"),
            Self::Merged => "the chosen branches are merged".to_owned(),
            Self::Any(rules) => join(rules, " or "),
            Self::All(rules) => join(rules, " and "),
        }
    }

    pub fn promises(&self) -> impl Iterator<Item = &str> {
        self.needs().promises.into_iter()
    }

    /// Whether a pipeline stops if this does not hold in the end: it is tested from outside, and not only counted, voted
    /// or promised.
    pub fn is_gate(&self) -> bool {
        let is_tested =
            |leaf: &Self| matches!(leaf, Self::Verify(_) | Self::Command(_) | Self::Checklist(_) | Self::Merged);
        self.leaves().any(is_tested)
    }

    pub fn is_verified(&self) -> bool {
        self.leaves().any(|leaf| matches!(leaf, Self::Verify(_)))
    }

    /// Whether only counting ends the stage, so that iterations without progress do not stop it.
    pub fn only_counts(&self) -> bool {
        let mut leaves = self.leaves().peekable();
        leaves.peek().is_some() && leaves.all(|leaf| matches!(leaf, Self::FixedN | Self::AllItems))
    }

    /// Whether the worker or a judge has to vote on whether anything is left to improve.
    pub fn needs_vote(&self) -> bool {
        self.needs().vote
    }

    /// Whether a judge votes instead of the worker.
    pub fn is_judged(&self, judge: Option<&AgentPlan>) -> bool {
        judge.is_some() && self.needs_vote()
    }

    pub fn holds(&self, known: &Known<'_>) -> Holding {
        let answer = |holds: bool| if holds { Holding::Yes(vec![self.name()]) } else { Holding::No };
        let outside = |check: Check| match known.facts {
            None => Holding::Unknown(vec![check]),
            Some(facts) => answer(facts.iter().any(|fact| fact.check == check && fact.holds == Some(true))),
        };
        match self {
            Self::FixedN => answer(known.iterations >= known.max),
            Self::AllItems => answer(usize::try_from(known.iterations).is_ok_and(|done| done >= known.items)),
            Self::Plateau(needed) => match known.agreeing {
                Some(agreeing) => answer(agreeing >= (*needed).max(1)),
                None => Holding::Unknown(vec![Check::Judge]),
            },
            Self::Promise(promise) => answer(known.promises.contains(promise)),
            Self::BeadsEmpty(label) => outside(Check::BeadsEmpty(label.clone())),
            Self::Command(command) => outside(Check::Command(command.clone())),
            Self::Verify(commands) => outside(Check::Verify(commands.clone())),
            Self::Checklist(file) => outside(Check::Checklist(file.clone())),
            Self::Merged => outside(Check::Merged),
            Self::Any(rules) => match Parts::of(rules, known) {
                Parts { names, .. } if !names.is_empty() => Holding::Yes(names),
                Parts { checks, .. } if !checks.is_empty() => Holding::Unknown(checks),
                _ => Holding::No,
            },
            Self::All(rules) => match Parts::of(rules, known) {
                Parts { any_no: true, .. } => Holding::No,
                Parts { checks, .. } if !checks.is_empty() => Holding::Unknown(checks),
                Parts { names, .. } if !names.is_empty() => Holding::Yes(names),
                _ => Holding::No,
            },
        }
    }
}

/// The answers of several rules, each name and check once.
#[derive(Default)]
struct Parts {
    names: Vec<&'static str>,
    checks: Vec<Check>,
    any_no: bool,
}

impl Parts {
    fn of(rules: &[Rule], known: &Known<'_>) -> Self {
        let mut parts = Self::default();
        for rule in rules {
            match rule.holds(known) {
                Holding::Yes(names) => add_new(&mut parts.names, names),
                Holding::No => parts.any_no = true,
                Holding::Unknown(checks) => add_new(&mut parts.checks, checks),
            }
        }
        parts
    }
}

fn add_new<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

/// Whether an iteration votes that nothing is left to improve: the judge's vote if there is a judge, else the worker's.
/// `None` without a vote.
pub fn vote(success: &Success, facts: &[Checked]) -> Option<bool> {
    match facts.iter().find(|fact| fact.check == Check::Judge) {
        Some(verdict) => verdict.holds,
        None => success.result.vote(),
    }
}

/// The reasons of the vote that counts: the judge's if it voted, or the worker's.
pub fn reasoning<'a>(success: &'a Success, facts: &'a [Checked]) -> Option<&'a str> {
    let judged = facts.iter().find(|fact| fact.check == Check::Judge && fact.holds.is_some());
    let judged = judged.map(|fact| fact.detail.as_str()).filter(|detail| !detail.is_empty());
    judged.or(success.result.reasoning.as_deref())
}

#[cfg(test)]
mod tests;
