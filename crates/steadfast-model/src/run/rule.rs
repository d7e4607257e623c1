//! Completion rules: what has to be looked up for one, and whether it holds. Nothing is asked that cannot change
//! the answer: `all: [promise, verify]` runs no command before the promise is there.

use super::{AgentPlan, Check, Checked, Rule, Success};

/// What is known when a rule is tested.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// Iterations committed, the one in question included.
    pub iterations: u32,
    /// The most iterations of the stage.
    pub max: u32,
    pub items: usize,
    /// Iterations in a row that agree, the one in question included; `None` while a judge has not been asked.
    pub agreeing: Option<u32>,
    /// Promises in the answer of the iteration in question.
    pub promises: &'a [String],
    /// What was looked up; `None` before anything was.
    pub facts: Option<&'a [Checked]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holding {
    /// With the names of the rules that hold.
    Yes(Vec<&'static str>),
    No,
    /// It depends on these.
    Unknown(Vec<Check>),
}

impl Rule {
    /// The name, as in plans and as the reason of a stage's end.
    pub fn name(&self) -> &'static str {
        match self {
            Self::FixedN => "fixed-n",
            Self::AllItems => "all-items",
            Self::Plateau(_) => "plateau",
            Self::BeadsEmpty(_) => "beads-empty",
            Self::Command(_) => "command",
            Self::Promise(_) => "promise",
            Self::Verify(_) => "verify",
            Self::Checklist(_) => "checklist",
            Self::Any(_) => "any",
            Self::All(_) => "all",
        }
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

    /// What an agent may promise for the rule to hold.
    pub fn promises(&self) -> impl Iterator<Item = &str> {
        self.leaves().filter_map(|leaf| if let Self::Promise(promise) = leaf { Some(promise.as_str()) } else { None })
    }

    /// Whether only counting ends the stage. Such a stage does what it was told to, progress or not.
    pub fn only_counts(&self) -> bool {
        let mut leaves = self.leaves().peekable();
        leaves.peek().is_some() && leaves.all(|leaf| matches!(leaf, Self::FixedN | Self::AllItems))
    }

    /// Whether somebody has to say if anything is left to improve.
    pub fn needs_vote(&self) -> bool {
        self.leaves().any(|leaf| matches!(leaf, Self::Plateau(_)))
    }

    /// Whether a judge votes instead of the worker.
    pub fn is_judged(&self, judge: Option<&AgentPlan>) -> bool {
        judge.is_some() && self.needs_vote()
    }

    pub fn holds(&self, known: &Known<'_>) -> Holding {
        let told = |holds: bool| if holds { Holding::Yes(vec![self.name()]) } else { Holding::No };
        let outside = |check: Check| match known.facts {
            None => Holding::Unknown(vec![check]),
            Some(facts) => told(facts.iter().any(|fact| fact.check == check && fact.holds == Some(true))),
        };
        match self {
            Self::FixedN => told(known.iterations >= known.max),
            Self::AllItems => told(usize::try_from(known.iterations).is_ok_and(|done| done >= known.items)),
            Self::Plateau(needed) => match known.agreeing {
                Some(agreeing) => told(agreeing >= (*needed).max(1)),
                None => Holding::Unknown(vec![Check::Judge]),
            },
            Self::Promise(promise) => told(known.promises.contains(promise)),
            Self::BeadsEmpty(label) => outside(Check::BeadsEmpty(label.clone())),
            Self::Command(command) => outside(Check::Command(command.clone())),
            Self::Verify(commands) => outside(Check::Verify(commands.clone())),
            Self::Checklist(file) => outside(Check::Checklist(file.clone())),
            Self::Any(rules) => {
                let parts = Parts::of(rules, known);
                if !parts.names.is_empty() {
                    Holding::Yes(parts.names)
                } else if !parts.checks.is_empty() {
                    Holding::Unknown(parts.checks)
                } else {
                    Holding::No
                }
            }
            Self::All(rules) => {
                let parts = Parts::of(rules, known);
                if parts.any_no || rules.is_empty() {
                    Holding::No
                } else if !parts.checks.is_empty() {
                    Holding::Unknown(parts.checks)
                } else {
                    Holding::Yes(parts.names)
                }
            }
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

/// Whether an iteration says that nothing is left to improve: the judge's word where one was asked, and otherwise
/// the worker's. `None` if nobody said.
pub fn vote(success: &Success, facts: &[Checked]) -> Option<bool> {
    match facts.iter().find(|fact| fact.check == Check::Judge) {
        Some(verdict) => verdict.holds,
        None => success.result.vote(),
    }
}

#[cfg(test)]
mod tests;
