//! Trees of a generator that knows the truth about them.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{amounts, usage};
use crate::env::Env;

/// The generator writes trees of every shape and, apart from them, what a right count must find.
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn generated_trees_are_counted_to_the_token() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // The tools are beside the repository; a worktree elsewhere may name them.
    let generator = std::env::var_os("GEN_TRANSCRIPTS")
        .map_or_else(|| root.join("../shared/tools/gen_transcripts.py"), PathBuf::from);
    let python = Command::new("python3").arg("--version").output();
    if !generator.exists() || python.is_err() {
        eprintln!("skipped: {} or python3 is missing", generator.display());
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
