//! The environment of a goal's start. Its checks run with it, so that an agent cannot pass them by a `PATH` of its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::text;

/// Variables that are kept with their values. Their values are paths and languages, no secrets.
const KEPT: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "SHELL",
    "TMPDIR",
    "USER",
    "LOGNAME",
    "TZ",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYENV_ROOT",
    "PYTHONPATH",
    "PYTHONHOME",
    "JAVA_HOME",
    "M2_HOME",
    "GRADLE_HOME",
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "NVM_DIR",
    "NODE_PATH",
    "PNPM_HOME",
    "GEM_HOME",
    "GEM_PATH",
    "RBENV_ROOT",
    "ANDROID_HOME",
    "DOTNET_ROOT",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
];
const KEPT_PREFIX: &str = "LC_";

/// Names with values, and of all other variables only the hash of their value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartEnvironment {
    values: BTreeMap<String, String>,
    hashes: BTreeMap<String, String>,
}

impl StartEnvironment {
    pub fn of(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut environment = Self::default();
        for (name, value) in variables {
            if KEPT.contains(&name.as_str()) || name.starts_with(KEPT_PREFIX) {
                environment.values.insert(name, value);
            } else {
                environment.hashes.insert(name, hash(&value));
            }
        }
        environment
    }

    /// What a check gets: the kept values, and of the variables of now those that have not changed.
    pub fn for_check(&self, now: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, String> {
        let unchanged = now.into_iter().filter(|(name, value)| self.hashes.get(name) == Some(&hash(value)));
        self.values.clone().into_iter().chain(unchanged).collect()
    }
}

fn hash(value: &str) -> String {
    text::hex(&Sha256::digest(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_check_gets_the_environment_of_the_start() {
        let start = variables(&[("PATH", "/bin"), ("LC_ALL", "C"), ("TOKEN", "s3cret"), ("MODE", "strict")]);
        let environment = StartEnvironment::of(start);
        assert!(!serde_json::to_string(&environment).unwrap().contains("s3cret"));
        let now =
            variables(&[("PATH", "/tmp/evil:/bin"), ("TOKEN", "s3cret"), ("MODE", "lax"), ("LD_PRELOAD", "x.so")]);
        let given: Vec<_> = environment.for_check(now).into_iter().collect();
        assert_eq!(given, variables(&[("LC_ALL", "C"), ("PATH", "/bin"), ("TOKEN", "s3cret")]));
    }
}
