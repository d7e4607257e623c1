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
    let mut unnamed = Vec::new();
    find_unnamed(&schema, &[&schema], instance, "", &mut unnamed);
    assert!(unnamed.is_empty(), "fields that {} does not name: {unnamed:?}", path.display());
}

/// Collects the fields of an answer that no schema names: schemas allow fields of later versions, so they report none.
fn find_unnamed(root: &Value, schemas: &[&Value], instance: &Value, place: &str, unnamed: &mut Vec<String>) {
    let mut parts: Vec<&Value> = schemas.to_vec();
    let mut next = 0;
    while let Some(part) = parts.get(next).copied() {
        next += 1;
        let reference = part["$ref"].as_str().and_then(|it| root.pointer(it.trim_start_matches('#')));
        let branches = ["anyOf", "oneOf", "allOf"].iter().filter_map(|name| part[*name].as_array()).flatten();
        parts.extend(reference.into_iter().chain(branches));
    }
    match instance {
        Value::Object(fields) => {
            // A map has names of its own, and some fields are described in another schema.
            let is_open = parts.iter().any(|part| part["additionalProperties"].is_object());
            if is_open || parts.iter().all(|part| part["properties"].is_null()) {
                return;
            }
            for (name, inner) in fields {
                let of_name: Vec<&Value> = parts.iter().filter_map(|part| part["properties"].get(name)).collect();
                let place = format!("{place}.{name}");
                if of_name.is_empty() {
                    unnamed.push(place);
                } else {
                    find_unnamed(root, &of_name, inner, &place, unnamed);
                }
            }
        }
        Value::Array(values) => {
            let items: Vec<&Value> = parts.iter().filter_map(|part| part.get("items")).collect();
            for inner in values {
                find_unnamed(root, &items, inner, &format!("{place}[]"), unnamed);
            }
        }
        _ => {}
    }
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
