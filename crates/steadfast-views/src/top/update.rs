//! What happens on a key, a tick or an answer: a function of the state and the event, which returns the state afterwards
//! and what is to be done.

mod typing;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use steadfast_app::overview::find::Found;
use steadfast_app::overview::now::{Action, Now, Subject};
use steadfast_app::usage::charts::UsageCharts;
use steadfast_model::clock::Millis;

use super::asking::{self, Start};
use super::state::{
    Detail, Mode, OpenQuestion, ReadTrouble, SeenView, StatusKind, TextPrompt, TopPlace, TopState, TopStatus, Usage,
};
use super::words;
use crate::actions::{self, ActionFields};

#[derive(Debug)]
pub(super) enum TopEvent {
    Key(KeyEvent),
    /// Text that was pasted; it is never taken as keys.
    Paste(String),
    Resize(u16, u16),
    /// A second passed.
    Tick(Millis),
    /// The store changed, or it is time for another look.
    Stale,
    Answer(ReadAnswer),
    Acted(actions::CommandAnswer),
}

/// What a look into the store returned.
#[derive(Debug)]
pub(super) enum ReadAnswer {
    Now(Box<Now>),
    Missing,
    Trouble { message: String, hint: String },
    Detail(Subject, Box<Detail>),
    Found(String, Vec<Found>),
    Usage(Result<Box<UsageCharts>, String>),
}

/// What to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ask {
    Now,
    Detail(Subject),
    Find(String),
    Usage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TopEffect {
    Read(Ask),
    Act { action: Action, subject: Subject, fields: Box<ActionFields> },
    Suspend,
    Quit,
}

/// How far a page goes, of the lines on the screen.
const AROUND: u16 = 4;

pub(super) fn update(mut state: TopState, event: TopEvent) -> (TopState, Vec<TopEffect>) {
    let mut effects = Vec::new();
    match event {
        TopEvent::Key(key) => on_key(&mut state, key, &mut effects),
        TopEvent::Paste(text) => typing::paste(&mut state, &text),
        TopEvent::Resize(columns, lines) => (state.columns, state.lines) = (columns, lines),
        TopEvent::Tick(at) => {
            state.at_ms = at;
            // The log of a live run grows without a change of the store.
            let is_live = matches!(&state.detail, Some((_, Detail::Run { run, .. })) if run.run.is_live);
            effects.extend(state.shown().filter(|_| is_live).cloned().map(|shown| TopEffect::Read(Ask::Detail(shown))));
        }
        TopEvent::Stale => {
            effects.push(TopEffect::Read(Ask::Now));
            effects.extend(state.shown().cloned().map(|shown| TopEffect::Read(Ask::Detail(shown))));
        }
        TopEvent::Answer(answer) => on_answer(&mut state, answer),
        TopEvent::Acted(answer) => {
            let hint = words::plain(&answer.hint);
            let hint = if hint.is_empty() { hint } else { format!(" ({hint})") };
            let kind = if answer.is_ok { StatusKind::Done } else { StatusKind::Failed };
            state.status = Some(TopStatus { text: format!("{}{hint}", words::plain(&answer.message)), kind });
            effects.push(TopEffect::Read(Ask::Now));
            effects.extend(state.shown().cloned().map(|shown| TopEffect::Read(Ask::Detail(shown))));
        }
    }
    // Details of another row than before.
    let shown = state.shown().cloned();
    if shown != state.asked {
        state.scroll = 0;
        if let Some(shown) =
            shown.clone().filter(|shown| !effects.contains(&TopEffect::Read(Ask::Detail(shown.clone()))))
        {
            effects.push(TopEffect::Read(Ask::Detail(shown)));
        }
        state.asked = shown;
    }
    (state, effects)
}

fn on_answer(state: &mut TopState, answer: ReadAnswer) {
    match answer {
        ReadAnswer::Now(now) => {
            state.at_ms = state.at_ms.max(now.at_ms);
            (state.seen, state.trouble) = (SeenView::Now(now), None);
            state.list_rows();
        }
        ReadAnswer::Missing => {
            (state.seen, state.trouble) = (SeenView::Missing, None);
            state.list_rows();
        }
        ReadAnswer::Trouble { message, hint } => {
            let since_ms = state.trouble.as_ref().map_or(state.at_ms, |trouble| trouble.since_ms);
            state.trouble = Some(ReadTrouble { message, hint, since_ms });
        }
        ReadAnswer::Detail(subject, detail) => {
            if state.asked.as_ref() == Some(&subject) {
                state.detail = Some((subject, *detail));
            }
        }
        ReadAnswer::Found(words, found) => {
            if state.place == TopPlace::Found && state.search == words {
                let count = i64::try_from(found.len()).unwrap_or(i64::MAX);
                let text = format!("{} for “{}”", steadfast_model::text::count(count, "result"), words::plain(&words));
                state.status = Some(TopStatus { text, kind: StatusKind::Done });
                state.found = found;
                state.selected = 0;
                state.list_rows();
            }
        }
        ReadAnswer::Usage(Ok(charts)) => state.usage = Usage::Read(charts),
        ReadAnswer::Usage(Err(message)) => state.usage = Usage::Failed(message),
    }
}

fn on_key(state: &mut TopState, key: KeyEvent, effects: &mut Vec<TopEffect>) {
    let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if with_control => return effects.push(TopEffect::Quit),
        KeyCode::Char('z') if with_control => return effects.push(TopEffect::Suspend),
        _ => {}
    }
    match std::mem::take(&mut state.mode) {
        Mode::Normal => normal(state, key, effects),
        Mode::Go => go(state, key, effects),
        // Any key closes the help.
        Mode::Help => {}
        Mode::Search => typing::search(state, key, effects),
        Mode::Prompt(prompt) => typing::prompt(state, *prompt, key, effects),
        Mode::Confirm(asked) => {
            let is_yes = matches!(key.code, KeyCode::Char('y' | 'Y'));
            if is_yes {
                let fields = ActionFields { stage: asked.stage, ..ActionFields::default() };
                busy(state, format!("{} …", asked.question.trim_end_matches('?')));
                effects.push(TopEffect::Act { action: asked.action, subject: asked.subject, fields: Box::new(fields) });
            } else {
                state.status = Some(TopStatus { text: "nothing was done".to_owned(), kind: StatusKind::Done });
            }
        }
    }
}

fn normal(state: &mut TopState, key: KeyEvent, effects: &mut Vec<TopEffect>) {
    let page = usize::from(state.lines.saturating_sub(AROUND)).max(1);
    // In a list, a page has fewer rows than lines.
    let page = if state.is_open { page } else { (page / 3).max(1) };
    let half = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('d') if half => down(state, page / 2),
        KeyCode::Char('u') if half => up(state, page / 2),
        KeyCode::Char('l') if half => effects.push(TopEffect::Read(Ask::Now)),
        KeyCode::Char('q') => effects.push(TopEffect::Quit),
        KeyCode::Char('?') => state.mode = Mode::Help,
        KeyCode::Char('g') => state.mode = Mode::Go,
        KeyCode::Char('/') => {
            if state.place == TopPlace::Found || state.place == TopPlace::Usage {
                state.place = TopPlace::Now;
            }
            state.is_open = false;
            state.search.clear();
            state.list_rows();
            state.mode = Mode::Search;
        }
        KeyCode::Char('j') | KeyCode::Down => down(state, 1),
        KeyCode::Char('k') | KeyCode::Up => up(state, 1),
        KeyCode::PageDown | KeyCode::Char(' ') => down(state, page),
        KeyCode::PageUp => up(state, page),
        KeyCode::Home => up(state, usize::MAX),
        KeyCode::End | KeyCode::Char('G') => down(state, usize::MAX),
        KeyCode::Enter | KeyCode::Char('l') | KeyCode::Right if state.place != TopPlace::Usage => {
            let has_subject = state.row().is_some_and(|row| row.subject.is_some());
            if has_subject {
                state.is_open = true;
            } else if state.row().is_some() {
                fail(state, "this has no page of its own".to_owned());
            }
        }
        KeyCode::Esc | KeyCode::Char('h') | KeyCode::Left | KeyCode::Backspace => back(state),
        KeyCode::Char(key) if asking::KEYS.contains(&key) && state.place != TopPlace::Usage => act(state, key, effects),
        _ => {}
    }
}

/// One step back: from the details, from a search, from another place, and at last from a message.
fn back(state: &mut TopState) {
    if state.is_open {
        state.is_open = false;
    } else if state.place != TopPlace::Now || !state.search.is_empty() {
        state.place = TopPlace::Now;
        state.search.clear();
        state.list_rows();
    }
    state.status = None;
}

fn go(state: &mut TopState, key: KeyEvent, effects: &mut Vec<TopEffect>) {
    let place = match key.code {
        KeyCode::Char('n') => TopPlace::Now,
        KeyCode::Char('r') => TopPlace::Runs,
        KeyCode::Char('u') => TopPlace::Usage,
        KeyCode::Char('g') => return up(state, usize::MAX),
        _ => return,
    };
    state.place = place;
    state.is_open = false;
    state.status = None;
    state.search.clear();
    state.scroll = 0;
    state.list_rows();
    if place == TopPlace::Usage && !matches!(state.usage, Usage::Reading) {
        if !matches!(state.usage, Usage::Read(_)) {
            state.usage = Usage::Reading;
        }
        effects.push(TopEffect::Read(Ask::Usage));
    }
}

fn down(state: &mut TopState, by: usize) {
    if state.is_open || state.place == TopPlace::Usage {
        // Drawing knows the length, and stops at the end.
        state.scroll = state.scroll.saturating_add(by).min(super::draw::longest_scroll(state));
    } else {
        state.selected = state.selected.saturating_add(by).min(state.rows.len().saturating_sub(1));
    }
}

fn up(state: &mut TopState, by: usize) {
    if state.is_open || state.place == TopPlace::Usage {
        state.scroll = state.scroll.saturating_sub(by);
    } else {
        state.selected = state.selected.saturating_sub(by);
    }
}

fn act(state: &mut TopState, key: char, effects: &mut Vec<TopEffect>) {
    let Some(row) = state.row().cloned() else { return };
    let (Some(action), Some(subject)) = (asking::action_of(key, &row), row.subject.clone()) else {
        return fail(state, format!("{} {}", words::cut(&row.title, 40), asking::refused(key)));
    };
    let asking_stage = row.stage.map(|number| number.to_string());
    match asking::start(action, &row) {
        Start::AtOnce { says } => {
            busy(state, says);
            let fields = Box::new(ActionFields { stage: asking_stage, ..ActionFields::default() });
            effects.push(TopEffect::Act { action, subject, fields });
        }
        Start::Confirm { question } => {
            state.mode = Mode::Confirm(Box::new(OpenQuestion { action, subject, stage: asking_stage, question }));
        }
        Start::Prompt { label, help } => {
            let prompt = TextPrompt { action, subject, stage: asking_stage, label, help, typed: String::new() };
            state.mode = Mode::Prompt(Box::new(prompt));
        }
    }
}

fn busy(state: &mut TopState, text: String) {
    state.status = Some(TopStatus { text, kind: StatusKind::Busy });
}

fn fail(state: &mut TopState, text: String) {
    state.status = Some(TopStatus { text, kind: StatusKind::Failed });
}

#[cfg(test)]
mod tests;
