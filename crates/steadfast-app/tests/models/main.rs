//! The real store against small models in memory: random steps change both, and after each step both must say the same.
//! A failure is shortened to the fewest steps that still show it. `PROPTEST_CASES` makes the runs longer.
#![expect(clippy::expect_used, reason = "a model fails by a panic")]

mod goals;
mod ledger;
mod runs;
mod session;
mod wakes;

use proptest::test_runner::Config;

/// The usual number of cases takes a few seconds for each model. Failures are reported, not kept in files.
#[expect(clippy::disallowed_methods, reason = "the variable of proptest itself")]
fn cases(usual: u32) -> Config {
    let asked = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok());
    Config { cases: asked.unwrap_or(usual), failure_persistence: None, ..Config::default() }
}
