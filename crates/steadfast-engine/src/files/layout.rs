//! Pretty-printed JSON for documents whose `history` only grows: the text of earlier iterations is kept, so that adding
//! one does not format all of them again.

use serde_json::Value;

const HISTORY: &str = "history";

/// The formatted history. Valid for one document as long as its history only grows.
#[derive(Debug, Default)]
pub(super) struct Layout {
    /// The run of the history; another run resets it.
    run_id: Option<Value>,
    count: usize,
    text: String,
}

impl Layout {
    /// The whole document, exactly as `serde_json` formats it, and a newline.
    pub(super) fn text(&mut self, value: &Value) -> std::io::Result<Vec<u8>> {
        let Some(object) = value.as_object().filter(|object| object.contains_key(HISTORY)) else {
            let mut text = serde_json::to_vec_pretty(value)?;
            text.push(b'\n');
            return Ok(text);
        };
        let mut whole = String::with_capacity(self.text.len() + 4_096);
        let mut separator = "{\n  ";
        for (name, value) in object {
            whole.push_str(separator);
            separator = ",\n  ";
            whole.push_str(&serde_json::to_string(name)?);
            whole.push_str(": ");
            match value.as_array().filter(|history| name == HISTORY && !history.is_empty()) {
                Some(history) => {
                    self.extend(object.get("run_id"), history)?;
                    whole.push_str(&self.text);
                    whole.push_str("\n  ]");
                }
                None => push_indented(&mut whole, value, "\n  ")?,
            }
        }
        whole.push_str("\n}\n");
        Ok(whole.into_bytes())
    }

    fn extend(&mut self, run_id: Option<&Value>, history: &[Value]) -> std::io::Result<()> {
        if self.run_id.as_ref() != run_id || self.count > history.len() {
            *self = Self { run_id: run_id.cloned(), ..Self::default() };
        }
        for entry in history.iter().skip(self.count) {
            self.text.push_str(if self.count == 0 { "[\n    " } else { ",\n    " });
            push_indented(&mut self.text, entry, "\n    ")?;
            self.count += 1;
        }
        Ok(())
    }
}

/// Newlines in strings are escaped, so every newline in the output is formatting.
fn push_indented(text: &mut String, value: &Value, newline: &str) -> std::io::Result<()> {
    match value {
        Value::Array(_) | Value::Object(_) => {
            for (number, line) in serde_json::to_string_pretty(value)?.split('\n').enumerate() {
                if number > 0 {
                    text.push_str(newline);
                }
                text.push_str(line);
            }
        }
        _ => text.push_str(&serde_json::to_string(value)?),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_are_formatted_as_by_serde_json_however_they_grow() {
        let mut layout = Layout::default();
        let entry =
            |number: u32| json!({"iteration": number, "reasoning": "a\nb \"c\"", "more": [1, {"x": []}], "e": {}});
        let mut state =
            json!({"session": "s", "stages": [{"name": "x"}], "history": [], "run_id": "one", "q\"\n": 1.5});
        let check = |layout: &mut Layout, value: &Value| {
            let expected = serde_json::to_string_pretty(value).unwrap() + "\n";
            assert_eq!(String::from_utf8(layout.text(value).unwrap()).unwrap(), expected);
        };
        for count in 0..4 {
            check(&mut layout, &state);
            state["history"].as_array_mut().unwrap().push(entry(count));
        }
        state["history"].as_array_mut().unwrap().extend([json!(7), json!("text"), json!([])]);
        check(&mut layout, &state);
        // Another run with as many iterations; then a shorter history; then none.
        state["run_id"] = json!("two");
        state["history"].as_array_mut().unwrap().reverse();
        check(&mut layout, &state);
        state["history"].as_array_mut().unwrap().truncate(2);
        state["history"][0] = json!({"iteration": 9});
        check(&mut layout, &state);
        for other in [json!({}), json!([]), json!({"history": 7}), json!({"history": {}})] {
            check(&mut layout, &other);
        }
    }
}
