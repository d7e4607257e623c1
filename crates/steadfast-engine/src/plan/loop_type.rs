//! Loop types: a folder with `loop.yaml` and a prompt.

use super::catalogue::Source;
use super::fault::{Faults, Location};
use super::keys::{LocatedText, Setting, Value, keys, located_text, text};
use super::limits::{LimitsDef, limits};
use super::stage::{Prompt, StageDef};
use super::yaml;

keys! {
    LoopDef {
        name: Option<LocatedText> = located_text("name" | "id"),
        description: Option<String> = text("description"),
        limits: Setting<LimitsDef> = limits("limits"),
        stage: StageDef,
    }
}

/// Reads a loop type with its prompt.
pub(super) fn read(source: &Source, faults: &Faults) -> Option<LoopDef> {
    let at = faults.file(&source.file);
    let node = yaml::open(&source.bytes, &at)?;
    let mut def: LoopDef = Value::document(&node, &at).table("a loop type")?;
    if let Some((name, at)) = def.name.as_ref().filter(|(name, _)| *name != source.name) {
        let what = format!("the name is `{name}`, but the folder is `{}`: the folder counts", source.name);
        at.warning(what, format!("write `name: {}`", source.name));
    }
    def.stage = def.stage.without_termination();
    def.stage.prompt = Some(read_prompt(def.stage.prompt.as_ref(), source, &at));
    Some(def)
}

/// `prompt:` names a file beside `loop.yaml`; a text of several lines is the prompt itself.
fn read_prompt(stated: Option<&Prompt>, source: &Source, at: &Location) -> Prompt {
    let name = match stated {
        Some(prompt) if prompt.text.trim().is_empty() || prompt.text.trim().contains('\n') => return prompt.clone(),
        Some(prompt) => Some(prompt.text.as_str()),
        None => None,
    };
    match source.prompts.read(name) {
        Ok((text, file)) => {
            let file = at.file(&file);
            if text.trim().is_empty() {
                Prompt::refuse_empty(&file);
            }
            Prompt::of_file(&file, text)
        }
        Err((what, fix)) => {
            stated.map_or(at, |prompt| &prompt.at).error(what, fix);
            Prompt::of_file(at, String::new())
        }
    }
}
