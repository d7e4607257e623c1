//! Subagents of Codex belong to the session that they work for.

use serde_json::{Value, json};

use super::usage;
use crate::env::Env;

#[test]
fn a_codex_subagent_belongs_to_its_session() {
    let env = Env::new();
    let folder = env.path("user/.codex/sessions/2026/11/15");
    std::fs::create_dir_all(&folder).unwrap();
    let samples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../steadfast-hosts/samples/codex/rollout");
    let (parent, child) = ("01a1de5a-6ea7-72c1-b185-58481c18109f", "01a1de5a-7344-7911-a33c-85462129068d");
    for (thread, name) in [(child, "subagent-v1.child"), (parent, "subagent-v1.parent")] {
        let target = folder.join(format!("rollout-2026-11-15T08-00-00-{thread}.jsonl"));
        std::fs::copy(samples.join(format!("{name}.jsonl")), target).unwrap();
    }
    for state in ["cold", "warm"] {
        let report = usage(&env, &["session"]);
        let rows = report["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 1, "{state}: {report:#}");
        assert_eq!((&rows[0]["session_id"], &rows[0]["responses"]), (&json!(parent), &json!(6)), "{state}");
        let agents = usage(&env, &["agents"]);
        let found: Vec<(&Value, &Value)> =
            agents["rows"].as_array().unwrap().iter().map(|row| (&row["agent_type"], &row["responses"])).collect();
        assert_eq!(found, [(&json!("(main)"), &json!(3)), (&json!("subagent"), &json!(3))], "{state}");
    }
}
