//! `steadfast --version`: the version, and what this binary was built from.

use serde_json::{Value, json};

/// The short line, also of `-V`.
pub(crate) const SHORT: &str = concat!("steadfast ", env!("CARGO_PKG_VERSION"));

const COMMIT: &str = env!("STEADFAST_BUILD_COMMIT");
const TARGET: &str = env!("STEADFAST_BUILD_TARGET");
const PROFILE: &str = env!("STEADFAST_BUILD_PROFILE");

pub(crate) fn long() -> String {
    let sqlite = steadfast_store::sqlite_version();
    format!("{SHORT}\ncommit   {COMMIT}\ntarget   {TARGET}\nprofile  {PROFILE}\nSQLite   {sqlite}")
}

pub(crate) fn json() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"), "commit": (COMMIT != "unknown").then_some(COMMIT), "target": TARGET,
        "profile": PROFILE, "sqlite": steadfast_store::sqlite_version(),
    })
}
