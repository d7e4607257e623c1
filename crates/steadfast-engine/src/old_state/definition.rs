//! From the compiled plan of the newest tool to a definition that our planner reads. JSON is YAML, and the planner knows
//! the words of that tool, so only the shape changes.

use std::path::Path;

use serde_json::{Map, Value, json};
use steadfast_system::bounded;

use super::named_file;

const MOST_PROMPT: u64 = 1 << 20;
const MOST_NODES: usize = 100;

/// The definition of a compiled plan; `None` if it has no stages.
pub(super) fn from_plan(plan: &Value, project: &Path, known: &[String]) -> Option<String> {
    let nodes = plan.get("nodes")?.as_array()?;
    let stages: Vec<Value> = nodes.iter().take(MOST_NODES).map(|node| stage(node, project, known)).collect();
    if stages.is_empty() {
        return None;
    }
    let name = plan.pointer("/pipeline/name").and_then(Value::as_str).unwrap_or("pipeline");
    let mut pipeline = Map::from_iter([("name".to_owned(), json!(name))]);
    for key in ["commands", "inputs"] {
        let value = plan.get("pipeline").and_then(|pipeline| pipeline.get(key)).cloned().map(without_nulls);
        pipeline.extend(value.filter(|value| !is_empty(value)).map(|value| (key.to_owned(), value)));
    }
    pipeline.insert("stages".to_owned(), stages.into());
    serde_json::to_string_pretty(&pipeline).ok()
}

/// A stage of a known loop type, or one with its own prompt. A type that is not known stays named, so that the planner
/// reports it.
fn stage(node: &Value, project: &Path, known: &[String]) -> Value {
    let text = |name: &str| node.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let mut stage = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value.map(without_nulls).filter(|value| !is_empty(value)) {
            stage.insert(name.to_owned(), value);
        }
    };
    put("name", text("id").or_else(|| text("name")).map(Into::into));
    put("description", text("description").map(Into::into));
    if let Some(block) = block(node, project, known) {
        put("parallel", Some(block));
        put("inputs", node.get("inputs").cloned());
        return Value::Object(stage);
    }
    let loop_type = text("ref").or_else(|| text("stage"));
    let file = || bounded::text(&named_file(project, text("prompt_path")?).ok()??, MOST_PROMPT).ok();
    let own_prompt = || text("prompt").map(str::to_owned).or_else(file);
    let is_known = loop_type.is_some_and(|name| known.iter().any(|known| known == name));
    match own_prompt().filter(|_| !is_known) {
        Some(prompt) => put("prompt", Some(prompt.into())),
        None => put("stage", loop_type.map(Into::into)),
    }
    put("agent", node.pointer("/provider/type").cloned());
    put("model", node.pointer("/provider/model").or_else(|| node.get("model")).cloned());
    for name in ["delay", "termination", "inputs", "context", "output_path"] {
        put(name, node.get(name).cloned());
    }
    Value::Object(stage)
}

/// The agents and stages of a block that runs several agents side by side.
fn block(node: &Value, project: &Path, known: &[String]) -> Option<Value> {
    let is_block = node.get("kind").and_then(Value::as_str) == Some("parallel");
    let parts = node.get("parallel").filter(|block| block.is_object()).or(is_block.then_some(node))?;
    let stages = parts.get("stages").and_then(Value::as_array).into_iter().flatten().take(MOST_NODES);
    let stages: Vec<Value> = stages.map(|inner| stage(inner, project, known)).collect();
    Some(json!({
        "providers": parts.get("providers"), "failure_mode": parts.get("failure_mode"), "stages": stages,
    }))
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().map(|(name, value)| (name, without_nulls(value)));
            Value::Object(kept.filter(|(_, value)| !is_empty(value)).collect())
        }
        Value::Array(values) => values.into_iter().map(without_nulls).collect(),
        other => other,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}
