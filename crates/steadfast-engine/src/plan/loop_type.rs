//! Loop types: a folder with `loop.yaml` and a prompt.

use super::catalogue::Source;
use super::fault::{At, Faults};
use super::fields::{Fields, Setting, Value};
use super::stage::{Prompt, StageDef};
use super::yaml;

#[derive(Debug, Clone)]
pub(super) struct LoopDef {
    pub(super) at: At,
    pub(super) limits: super::limits::LimitsDef,
    pub(super) stage: StageDef,
}

/// Reads a loop type with its prompt.
pub(super) fn read(source: &Source, faults: &mut Faults) -> Option<LoopDef> {
    let at = At::new(&source.file, 1);
    let node = yaml::open(&source.bytes, &at, faults)?;
    let mut fields = Fields::of(&node, &at, "a loop type", faults)?;
    if let Some(name) = fields.take(&["name", "id"], faults)
        && let Some(text) = name.text(faults)
        && text != source.name
    {
        let what = format!("the name is `{text}`, but the folder is `{}`: the folder counts", source.name);
        faults.warning(&name.at, what, format!("write `name: {}`", source.name));
    }
    fields.text(&["description"], faults);
    let prompt = fields.take(&["prompt"], faults);
    let mut stage = StageDef::read(&mut fields, faults);
    stage.prompt = read_prompt(prompt.as_ref(), source, &at, faults).map_or(Setting::Off, Setting::On);
    let limits = super::limits::LimitsDef::read(&mut fields, faults);
    fields.finish("a loop type", faults);
    Some(LoopDef { at, limits, stage })
}

/// `prompt:` names a file beside `loop.yaml`; a text of several lines is the prompt itself.
fn read_prompt(value: Option<&Value<'_>>, source: &Source, at: &At, faults: &mut Faults) -> Option<Prompt> {
    let name = match value {
        Some(value) if !value.is_off() => Some(value.text(faults)?),
        _ => None,
    };
    if let (Some(text), Some(value)) = (&name, value)
        && text.trim().contains('\n')
    {
        return Some(Prompt::inside(value, text.clone()));
    }
    match source.prompts.read(name.as_deref()) {
        Ok((text, file)) if text.trim().is_empty() => {
            faults.error(&At::new(&file, 1), "the prompt is empty", "say what the agent is to do");
            None
        }
        Ok((text, file)) => Some(Prompt::of_file(&file, text)),
        Err((what, fix)) => {
            faults.error(value.map_or(at, |value| &value.at), what, fix);
            None
        }
    }
}
