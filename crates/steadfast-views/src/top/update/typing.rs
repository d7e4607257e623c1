//! Keys while the user types: a search, or words for an action.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use steadfast_app::overview::now::Action;
use steadfast_model::text;

use super::{Ask, TopEffect, busy, fail};
use crate::actions::ActionFields;
use crate::top::asking;
use crate::top::state::{Mode, TextPrompt, TopPlace, TopState};
use crate::top::words;

/// The most that can be typed.
const LONGEST: usize = 4_000;

/// Changes what is typed by a key; false if the key means something else.
fn edit(typed: &mut String, key: KeyEvent) -> bool {
    let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('u') if with_control => typed.clear(),
        KeyCode::Char('w') if with_control => {
            let kept = typed.trim_end().rfind(' ').map_or(0, |space| space + 1);
            typed.truncate(kept);
        }
        KeyCode::Char('h') if with_control => drop(typed.pop()),
        KeyCode::Char(_) if with_control => {}
        KeyCode::Char(character) if !character.is_control() && typed.len() < LONGEST => typed.push(character),
        KeyCode::Backspace => drop(typed.pop()),
        _ => return false,
    }
    true
}

/// Pasted text goes to where the user types, as one line; elsewhere it is dropped.
pub(super) fn paste(state: &mut TopState, text: &str) {
    let text = words::plain(text);
    match &mut state.mode {
        Mode::Search => {
            state.search.push_str(text::head(&text, LONGEST.saturating_sub(state.search.len())));
            state.list_rows();
        }
        Mode::Prompt(prompt) => prompt.typed.push_str(text::head(&text, LONGEST.saturating_sub(prompt.typed.len()))),
        _ => {}
    }
}

/// The list shows what matches while the user types; enter searches everything.
pub(super) fn search(state: &mut TopState, key: KeyEvent, effects: &mut Vec<TopEffect>) {
    match key.code {
        KeyCode::Esc => {
            state.search.clear();
            state.list_rows();
        }
        KeyCode::Enter => {
            if !state.search.trim().is_empty() {
                state.place = TopPlace::Found;
                state.found.clear();
                state.list_rows();
                busy(state, format!("searching for “{}” …", state.search));
                effects.push(TopEffect::Read(Ask::Find(state.search.clone())));
            }
        }
        KeyCode::Up | KeyCode::Down => {
            state.mode = Mode::Normal;
            super::normal(state, key, effects);
        }
        _ => {
            let mut typed = std::mem::take(&mut state.search);
            edit(&mut typed, key);
            state.search = typed;
            state.mode = Mode::Search;
            state.list_rows();
        }
    }
}

pub(super) fn prompt(state: &mut TopState, mut prompt: TextPrompt, key: KeyEvent, effects: &mut Vec<TopEffect>) {
    match key.code {
        KeyCode::Esc => state.status = None,
        KeyCode::Enter => match fields(&prompt) {
            Ok(fields) => {
                busy(state, format!("{}: {} …", prompt.label.to_lowercase(), prompt.typed.trim()));
                effects.push(TopEffect::Act {
                    action: prompt.action,
                    subject: prompt.subject,
                    fields: Box::new(fields),
                });
            }
            Err(why) => {
                fail(state, why);
                state.mode = Mode::Prompt(Box::new(prompt));
            }
        },
        _ => {
            edit(&mut prompt.typed, key);
            state.mode = Mode::Prompt(Box::new(prompt));
        }
    }
}

/// What the typed words mean.
fn fields(prompt: &TextPrompt) -> Result<ActionFields, String> {
    let text = prompt.typed.trim();
    if prompt.action == Action::Extend {
        return asking::amounts(text);
    }
    if prompt.action == Action::Say && text.is_empty() {
        return Err("type what to say; esc leaves".to_owned());
    }
    let text = (!text.is_empty()).then(|| text.to_owned());
    let stage = prompt.stage.clone();
    Ok(match prompt.action {
        Action::Say => ActionFields { text, ..ActionFields::default() },
        _ => ActionFields { reason: text, stage, ..ActionFields::default() },
    })
}
