//! An agent's report about its iteration: from the result file, else a structured last message, else marker lines in
//! its last message, else that message itself. All of it comes from a model: it is bounded and made printable, and a
//! value of the wrong type is ignored.

mod fields;

use std::path::Path;

use serde_json::{Map, Value};
use steadfast_model::run::AgentResult;
use steadfast_system::bounded;

use crate::excerpt;

/// A larger result file is ignored.
const FILE_BYTES: u64 = 1 << 20;
const TEXT_CHARS: usize = 10_000;
const SUMMARY_CHARS: usize = 600;
const MOST_PROMISES: usize = 20;

/// Where an agent leaves its result, and what its decision means.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResultSource<'a> {
    pub file: &'a Path,
    /// The result file of other tools.
    pub status: &'a Path,
    /// Whether iterations vote, so that the `stop` of other tools is a vote.
    pub votes: bool,
    /// Marker lines to read: name of the field, marker.
    pub markers: &'a [(String, String)],
}

/// Reads the result of an iteration; `None` if the agent left nothing at all.
pub(crate) fn read(source: &ResultSource<'_>, structured: Option<&str>, answer: &str) -> Option<AgentResult> {
    let ResultSource { file, status, votes, markers } = *source;
    let from_json = |text: &str| from_json(text, votes);
    let mut result = from_file(file, votes);
    if let Some(status) = from_file(status, votes) {
        fields::fill_in(result.get_or_insert_default(), status, votes);
    }
    let mut result = result.or_else(|| structured.and_then(from_json)).or_else(|| from_json(answer));
    if let Some(marked) = from_markers(answer, markers) {
        let result = result.get_or_insert_default();
        result.plateau = result.plateau.or(marked.plateau);
        result.reasoning = result.reasoning.take().or(marked.reasoning);
        result.fields = marked.fields;
    }
    if result.as_ref().is_none_or(|result| result.summary.is_none())
        && let Some(summary) = last_lines(answer)
    {
        result.get_or_insert_default().summary = Some(summary);
    }
    result
}

fn from_file(file: &Path, votes: bool) -> Option<AgentResult> {
    from_json(&text_of(file)?, votes)
}

fn text_of(file: &Path) -> Option<String> {
    Some(String::from_utf8_lossy(&bounded::whole(file, FILE_BYTES).ok()?).into_owned())
}

/// The JSON object in a result file.
pub(super) fn object_in(file: &Path) -> Option<Map<String, Value>> {
    object(&text_of(file)?)
}

/// Whether there is a result file without a JSON object: cut off, too long, or something else. A directory or a pipe is
/// no result file.
pub(super) fn is_broken(file: &Path) -> bool {
    fs_err::metadata(file).is_ok_and(|metadata| metadata.is_file()) && object_in(file).is_none()
}

/// A judge's answer in the format of other tools: `{"stop": …, "reason": …, "confidence": …}`. The confidence is
/// ignored, as those tools do.
pub(crate) fn verdict(file: &Path, answer: &str) -> Option<(Option<bool>, Option<String>)> {
    let from_file = object_in(file);
    let object = from_file.filter(|object| object.contains_key("stop")).or_else(|| object(answer))?;
    let reason = object.get("reason").and_then(Value::as_str).map(harmless);
    Some((object.get("stop").and_then(Value::as_bool), reason))
}

fn harmless(text: &str) -> String {
    excerpt::head(text, TEXT_CHARS)
}

fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(without_fences(text).as_bytes()).ok()
}

/// A JSON object with at least one of our fields, perhaps between code fences.
fn from_json(text: &str, votes: bool) -> Option<AgentResult> {
    fields::own(&object(text)?, votes)
}

/// Agents also write booleans as words.
fn boolean(value: &Value) -> Option<bool> {
    value.as_bool().or_else(|| value.as_str().map(str::trim).and_then(vote))
}

fn without_fences(text: &str) -> &str {
    let trimmed = text.trim().trim_start_matches('\u{feff}');
    let Some(rest) = trimmed.strip_prefix("```") else { return trimmed };
    let inside = rest.split_once('\n').map_or("", |(_, inside)| inside);
    inside.trim_end().strip_suffix("```").unwrap_or(inside).trim()
}

/// Lines such as `PLATEAU: true`, `**PLATEAU:** yes` or `- Reasoning: …`; the last of several counts.
fn from_markers(answer: &str, markers: &[(String, String)]) -> Option<AgentResult> {
    let mut result = AgentResult::default();
    for line in answer.lines() {
        let line = without_markdown(line);
        let named = markers.iter().map(|(field, marker)| (field.as_str(), marker.as_str()));
        for (field, marker) in [("plateau", "PLATEAU"), ("reasoning", "REASONING")].into_iter().chain(named) {
            let Some(value) = marked(line, marker).filter(|value| !value.is_empty()) else { continue };
            match field {
                "plateau" => result.plateau = vote(value).or(result.plateau),
                "reasoning" => result.reasoning = Some(excerpt::head(value, TEXT_CHARS)),
                _ => {
                    let value = excerpt::head(value, TEXT_CHARS);
                    match result.fields.iter_mut().find(|(known, _)| known == field) {
                        Some((_, known)) => *known = value,
                        None => result.fields.push((field.to_owned(), value)),
                    }
                }
            }
        }
    }
    (result != AgentResult::default()).then_some(result)
}

/// A line without the Markdown signs at its start.
fn without_markdown(line: &str) -> &str {
    let line = line.trim().trim_start_matches(['-', '*', '+', '>', '#', '_', '`', ' ']);
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    match numbered.strip_prefix(['.', ')']) {
        Some(rest) if numbered.len() < line.len() => rest.trim_start().trim_start_matches(['*', '_', '`']),
        _ => line,
    }
}

/// The text after `MARKER:`, without emphasis.
fn marked<'a>(line: &'a str, marker: &str) -> Option<&'a str> {
    let head = line.get(..marker.len()).filter(|head| head.eq_ignore_ascii_case(marker) && !marker.is_empty())?;
    let rest = line.get(head.len()..)?.trim_start_matches(['*', '_', '`', ' ']);
    Some(rest.strip_prefix(':')?.trim_matches(|c: char| matches!(c, '*' | '_' | '`') || c.is_whitespace()))
}

/// `true (ready)` is a vote; `true or false` repeats the instruction.
fn vote(value: &str) -> Option<bool> {
    let end = value.find(|c: char| !c.is_alphanumeric()).unwrap_or(value.len());
    let (word, rest) = value.split_at(end);
    let rest = rest.trim_start_matches(['*', '_', '`', '.', '"']).trim_start();
    if rest.starts_with(['/', '|']) || ["or ", "if ", "when ", "only "].iter().any(|next| rest.starts_with(next)) {
        return None;
    }
    match word.to_lowercase().as_str() {
        "true" | "yes" => Some(true),
        "false" | "no" => Some(false),
        _ => None,
    }
}

/// The last lines of an answer, as many as fit into a summary.
fn last_lines(answer: &str) -> Option<String> {
    let mut kept: Vec<&str> = Vec::new();
    let mut length = 0;
    for line in answer.lines().rev().map(str::trim).filter(|line| !line.is_empty()).take(5) {
        length += line.chars().count() + 1;
        if !kept.is_empty() && length > SUMMARY_CHARS {
            break;
        }
        kept.push(line);
    }
    kept.reverse();
    (!kept.is_empty()).then(|| excerpt::head(&kept.join("\n"), SUMMARY_CHARS))
}

/// An answer without repeated lines of the prompt that explain what to promise: repeating them is no promise. A line
/// with the promise alone counts, unless the line before it is repeated as well.
pub(crate) fn without_echo(answer: &str, prompt: &str) -> String {
    let is_bare = |line: &str| line.starts_with("<promise>") && line.ends_with("</promise>");
    let lines = |text| -> Vec<(String, String)> {
        let mut before = String::new();
        let pair = |line: &str| (std::mem::replace(&mut before, line.to_owned()), line.to_owned());
        str::lines(text).map(str::trim).filter(|line| !line.is_empty()).map(pair).collect()
    };
    let asked: Vec<(String, String)> =
        lines(prompt).into_iter().filter(|(_, line)| line.contains("<promise>")).collect();
    let is_echo = |(before, line): &(String, String)| {
        asked.iter().any(|(context, asked)| asked == line && (!is_bare(line) || context == before))
    };
    let kept: Vec<String> = lines(answer).into_iter().filter(|it| !is_echo(it)).map(|(_, line)| line).collect();
    kept.join("\n")
}

/// The texts between `<promise>` and `</promise>`, with normalized white space.
pub(crate) fn promises(answer: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for part in answer.split("<promise>").skip(1).take(MOST_PROMISES * 10) {
        let Some((inside, _)) = part.split_once("</promise>") else { continue };
        let promise = inside.split_whitespace().collect::<Vec<_>>().join(" ");
        if promise.chars().count() <= TEXT_CHARS && !promise.is_empty() && !found.contains(&promise) {
            found.push(promise);
        }
        if found.len() >= MOST_PROMISES {
            break;
        }
    }
    found
}

/// The end of a file as text, from a whole word on; `None` if it is missing or empty.
pub(crate) fn tail_of(path: &Path, most: u64) -> Option<String> {
    let tail = bounded::end_of(path, most).ok()?;
    let text = String::from_utf8_lossy(&tail.bytes);
    let text = if tail.from > 0 { excerpt::after_part_of_word(&text) } else { &text };
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
