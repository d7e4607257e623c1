//! JSON output matches the schemas in `docs/schema/`.

use serde_json::Value;

use crate::env::Env;

pub(crate) fn check(schema: &str, instance: &Value) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema").join(schema);
    let schema: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> =
        validator.iter_errors(instance).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:#?}\n{instance:#}");
}

#[test]
fn status_history_and_doctor_match_their_schemas() {
    let env = Env::new();
    check("doctor.schema.json", &env.run(&["doctor", "--json"]).json());
    check("doctor.schema.json", &env.run(&["doctor", "--fix", "--json"]).json());
    check("goal-history.schema.json", &env.run(&["goal", "history", "--all", "--format=json"]).json());
    env.start(&["x", "--budget", "standard", "--usd", "5", "--deadline", "2h", "--verify", "true"]);
    env.says("s1", "m1", "one", 100);
    env.stop("s1", "one", false);
    env.goal(&["verify"]).succeeds();
    check("goal-status.schema.json", &env.goal(&["status", "--json"]).json());
    check("goal-status.schema.json", &env.goal(&["pause", "--json"]).json());
    check("goal-status.schema.json", &env.run(&["goal", "status", "--session", "none", "--json"]).json());
    env.goal(&["abandon"]).succeeds();
    check("goal-status.schema.json", &env.goal(&["start", "second", "--json"]).json());
    check("goal-history.schema.json", &env.run(&["goal", "history", "--all", "--format=json"]).json());
    check("goal-history.schema.json", &env.goal(&["history", "--format=json"]).json());
    check("doctor.schema.json", &env.run(&["doctor", "--json"]).json());
    check("error.schema.json", &env.run(&["goal", "pause", "--session", "none", "--json"]).json());
}

#[test]
fn the_schemas_reject_wrong_output() {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/schema/goal-status.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(!validator.is_valid(&serde_json::json!({"goal": {"status": "happy"}})));
    assert!(!validator.is_valid(&serde_json::json!({})));
}
