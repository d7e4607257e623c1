//! Generated trees with known totals.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{amounts, usage};
use crate::env::Env;

/// The generator writes trees of many shapes, and the correct totals beside them.
#[test]
fn generated_trees_are_counted_to_the_token() {
    let generator = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/make_transcripts.py");
    for (seed, shape) in [
        ("1", &["--torn", "--early-numbers", "--gateways", "0.5", "--forks", "0.5"][..]),
        ("2", &["--subagents", "1"][..]),
        ("3", &["--torn", "--early-numbers", "--gateways", "1", "--forks", "0.4", "--subagents", "0.8"][..]),
    ] {
        let env = Env::new();
        let totals = env.path("totals.json");
        let mut generate = Command::new("python3");
        generate.arg(&generator).arg(env.claude_config().join("projects")).arg("--totals").arg(&totals);
        let done = generate.args(["--mb", "4", "--responses", "15", "--seed", seed]).args(shape).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        let totals: Value = serde_json::from_slice(&std::fs::read(&totals).unwrap()).unwrap();
        let models = totals["models"].as_object().unwrap();
        assert!(models.len() > 1 && totals["bytes"].as_i64().unwrap() > 4_000_000, "{totals:#}");
        for state in ["cold", "warm"] {
            let report = usage(&env, &["models"]);
            let rows = report["rows"].as_array().unwrap();
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
