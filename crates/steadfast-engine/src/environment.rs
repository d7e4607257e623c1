//! The environment of a stage's agents and checks: all that the engine has, or a basic set and the variables that the
//! stage names. Values go from process to process, and are never written to a file.

use std::collections::BTreeMap;
use std::fmt;
use std::process::Command;

use steadfast_model::run::StagePlan;
use steadfast_system::env_vars;

use crate::process::LimitedCommand;

#[derive(Clone, Default)]
pub(crate) struct StageEnvironment {
    /// All variables; `None` for those of this process.
    only: Option<BTreeMap<String, String>>,
    /// The values of the matrix.
    cell: BTreeMap<String, String>,
}

/// Variables that a stage names and this process does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not set in the environment of the engine: {} ({})", .0.join(", "), self.hint())]
pub(crate) struct MissingVariables(Vec<String>);

impl MissingVariables {
    fn hint(&self) -> &'static str {
        if self.0.len() == 1 {
            "set it, then `resume` from that shell"
        } else {
            "set them, then `resume` from that shell"
        }
    }
}

impl StageEnvironment {
    /// The environment of an iteration, by all variables that this process has.
    pub(crate) fn of(
        stage: &StagePlan,
        iteration: u32,
        all: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, MissingVariables> {
        let cell = stage.matrix_of(iteration).map(|(name, value)| (env_vars::of_matrix(name), value.clone())).collect();
        if stage.env.is_empty() {
            return Ok(Self { only: None, cell });
        }
        let all: BTreeMap<String, String> = all.collect();
        let missing: Vec<String> =
            stage.env.iter().map(|named| &named.from).filter(|from| !all.contains_key(*from)).cloned().collect();
        if !missing.is_empty() {
            return Err(MissingVariables(missing));
        }
        let named = stage.env.iter().filter_map(|named| Some((named.name.clone(), all.get(&named.from)?.clone())));
        let mut only: BTreeMap<String, String> = all
            .iter()
            .filter(|(name, _)| env_vars::is_basic(name))
            .map(|(n, value)| (n.clone(), value.clone()))
            .collect();
        only.extend(named);
        Ok(Self { only: Some(only), cell })
    }

    /// Sets the environment of a supervisor, whose agent inherits it.
    pub(crate) fn apply(&self, command: &mut Command) {
        if let Some(only) = &self.only {
            command.env_clear().envs(only);
        }
        command.envs(&self.cell);
    }

    /// The command of a check in this environment.
    pub(crate) fn of_check(&self, command: LimitedCommand) -> LimitedCommand {
        let command = match &self.only {
            Some(only) => command.only_env(only),
            None => command,
        };
        self.cell.iter().fold(command, |command, (name, value)| command.env(name, value))
    }
}

/// Names only: the values may be secrets.
impl fmt::Debug for StageEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |variables: &BTreeMap<String, String>| variables.keys().cloned().collect::<Vec<_>>();
        f.debug_struct("StageEnvironment")
            .field("only", &self.only.as_ref().map(names))
            .field("cell", &names(&self.cell))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use steadfast_model::run::{EnvVariable, Rule};

    use super::*;

    fn named(variables: &[(&str, &str)]) -> StagePlan {
        let variable = |(name, from): &(&str, &str)| EnvVariable { name: (*name).into(), from: (*from).into() };
        let cell = |os: &str| BTreeMap::from([("target-os".to_owned(), os.to_owned())]);
        StagePlan {
            env: variables.iter().map(variable).collect(),
            matrix: vec![cell("linux"), cell("mac")],
            ..StagePlan::new("deploy", Rule::FixedN, 1)
        }
    }

    fn engine() -> impl Iterator<Item = (String, String)> {
        [("PATH", "/bin"), ("LC_TIME", "C"), ("OTHER", "private"), ("CI_TOKEN", "s3cret"), ("no_proxy", "*")]
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
    }

    #[test]
    fn a_stage_that_names_variables_gets_those_and_basic_ones() {
        let of = |stage: &StagePlan, iteration| StageEnvironment::of(stage, iteration, engine()).unwrap();
        let all = of(&named(&[]), 2);
        assert_eq!((all.only, all.cell["STEADFAST_MATRIX_TARGET_OS"].as_str()), (None, "mac"));
        assert_eq!(of(&named(&[]), 3).cell, BTreeMap::new());
        let some = of(&named(&[("TOKEN", "CI_TOKEN")]), 1);
        let names: Vec<&String> = some.only.as_ref().unwrap().keys().collect();
        assert_eq!(names, ["LC_TIME", "PATH", "TOKEN", "no_proxy"]);
        assert!(!format!("{some:?}").contains("s3cret"), "{some:?}");
    }

    #[test]
    fn variables_that_are_not_set_are_named() {
        let error = StageEnvironment::of(&named(&[("A", "PATH"), ("B", "B"), ("C", "D")]), 1, engine()).unwrap_err();
        let expected = "not set in the environment of the engine: B, D (set them, then `resume` from that shell)";
        assert_eq!(error.to_string(), expected);
    }
}
