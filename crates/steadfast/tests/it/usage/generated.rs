//! Generated trees with known totals.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::{amounts, usage};
use crate::env::Env;

/// The generator writes trees of many shapes, and the correct totals beside them.
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn generated_trees_are_counted_to_the_token() {
    // The generator is not part of this repository.
    let generator = std::env::var_os("GEN_TRANSCRIPTS").map(PathBuf::from).unwrap_or_default();
    let python = Command::new("python3").arg("--version").output();
    if !generator.exists() || python.is_err() {
        eprintln!("skipped: GEN_TRANSCRIPTS does not name the generator, or python3 is missing");
        return;
    }
    for (seed, shape) in [
        ("1", &["--torn", "--gateway-rate", "0.5", "--fork-rate", "0.5"][..]),
        ("2", &["--no-partials", "--sub-rate", "1"][..]),
        ("3", &["--torn", "--gateway-rate", "1", "--fork-rate", "0.4", "--sub-rate", "0.8"][..]),
    ] {
        let env = Env::new();
        let truth = env.path("truth.json");
        let mut generate = Command::new("python3");
        generate.arg(&generator).arg("--out").arg(env.claude_config().join("projects"));
        generate.arg("--truth").arg(&truth).args(["--mb", "4", "--projects", "4", "--session-kb", "150"]);
        let done = generate.args(["--seed", seed]).args(shape).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        let truth: Value = serde_json::from_slice(&std::fs::read(&truth).unwrap()).unwrap();
        for state in ["cold", "warm"] {
            let report = usage(&env, &["models"]);
            let rows = report["rows"].as_array().unwrap();
            let models = truth["unique"].as_object().unwrap();
            assert_eq!(rows.len(), models.len());
            for row in rows {
                let expected = &models[row["model"].as_str().unwrap()];
                let number = |name: &str| expected[name].as_i64().unwrap();
                let tokens =
                    ["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
                let expected = (number("responses"), tokens.map(number));
                assert_eq!(amounts(row), expected, "seed {seed}, {state}, {}", row["model"]);
            }
        }
    }
}
