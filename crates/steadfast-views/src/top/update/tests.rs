//! Keys, ticks and answers.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use steadfast_app::overview::now::Action;

use super::*;
use crate::actions::ActionFields;
use crate::top::rows::RowSection;
use crate::top::tests::fixtures::{AT, empty, large, run_subject, state, subject, typical};

fn key(code: KeyCode) -> TopEvent {
    TopEvent::Key(KeyEvent::new(code, KeyModifiers::NONE))
}

/// Presses keys one after the other; returns all effects but looks at details.
fn press(state: TopState, keys: &str) -> (TopState, Vec<TopEffect>) {
    keys.chars().fold((state, Vec::new()), |(state, mut effects), pressed| {
        let code = match pressed {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '\u{8}' => KeyCode::Backspace,
            other => KeyCode::Char(other),
        };
        let (state, more) = update(state, key(code));
        effects.extend(more.into_iter().filter(|effect| !matches!(effect, TopEffect::Read(Ask::Detail(_)))));
        (state, effects)
    })
}

fn at(section: RowSection) -> TopState {
    let mut state = state(typical(), 80, 24);
    state.selected = state.rows.iter().position(|row| row.section == section).unwrap();
    state
}

fn acts(action: Action, subject: Subject, fields: ActionFields) -> Vec<TopEffect> {
    vec![TopEffect::Act { action, subject, fields: Box::new(fields) }]
}

fn said(state: &TopState) -> &str {
    state.status.as_ref().map_or("", |status| status.text.as_str())
}

#[test]
fn the_selection_moves_and_stops_at_the_ends() {
    let (state, _) = press(state(typical(), 80, 24), "jjk");
    assert_eq!(state.selected, 1);
    let (state, _) = press(state, "G");
    assert_eq!(state.selected, state.rows.len() - 1);
    let (state, _) = press(state, "jgg");
    assert_eq!(state.selected, 0);
    let (state, _) = press(state, "k");
    assert_eq!(state.selected, 0);
    let (state, effects) = press(self::state(empty(), 80, 24), "jkG pevarsx\n");
    assert_eq!((state.selected, effects), (0, vec![]), "nothing is selected");
}

#[test]
fn what_was_selected_stays_selected_when_the_page_changes() {
    let (before, _) = press(at(RowSection::Working), "j");
    assert_eq!(before.row().unwrap().title, "Write the guide");
    let mut changed = typical();
    changed.working.swap(0, 1);
    changed.needs.clear();
    let (after, _) = update(before.clone(), TopEvent::Answer(ReadAnswer::Now(Box::new(changed))));
    assert_eq!(after.row().unwrap().title, "Write the guide");
    // It was paused: it waits now.
    let mut paused = typical();
    let card = paused.working.pop().unwrap();
    let mut wait = paused.waiting[0].clone();
    wait.subject = crate::top::rows::of_goal(&card);
    paused.waiting.push(wait);
    let (after, _) = update(before, TopEvent::Answer(ReadAnswer::Now(Box::new(paused))));
    assert_eq!(after.row().unwrap().section, RowSection::Waiting);
    assert_eq!(after.row().unwrap().subject, Some(subject("docs")));
}

#[test]
fn details_close_when_their_goal_is_gone() {
    let (state, _) = press(at(RowSection::Working), "\n");
    assert!(state.is_open);
    let (state, _) = update(state, TopEvent::Answer(ReadAnswer::Now(Box::new(empty()))));
    assert!(!state.is_open);
}

#[test]
fn pausing_and_verifying_begin_at_once() {
    let (state, effects) = press(at(RowSection::Working), "p");
    assert_eq!(effects, acts(Action::Pause, subject("tests"), ActionFields::default()));
    assert_eq!(said(&state), "pausing goal Make every test pass …");
    let (state, effects) = press(at(RowSection::Working), "v");
    assert_eq!(effects, acts(Action::Verify, subject("tests"), ActionFields::default()));
    assert_eq!(said(&state), "running the checks of Make every test pass …");
    let (_, effects) = press(at(RowSection::Needs), "p");
    assert_eq!(effects, acts(Action::Resume, subject("login"), ActionFields::default()));
}

#[test]
fn what_cannot_be_undone_asks_first() {
    let (state, effects) = press(at(RowSection::Runs), "x");
    assert_eq!(effects, []);
    assert!(matches!(&state.mode, Mode::Confirm(asked) if asked.question.starts_with("Kill pipeline ship?")));
    for no in ["n", "\u{1b}", "x", "\n", "q"] {
        let (state, effects) = press(state.clone(), no);
        assert_eq!((effects, said(&state), &state.mode), (vec![], "nothing was done", &Mode::Normal), "{no:?}");
    }
    let (state, effects) = press(state, "y");
    assert_eq!(effects, acts(Action::Kill, run_subject("ship"), ActionFields::default()));
    assert_eq!(state.mode, Mode::Normal);
    for (section, keys) in [(RowSection::Working, "x"), (RowSection::Working, "a"), (RowSection::Needs, "x")] {
        let (state, effects) = press(at(section), keys);
        assert!(effects.is_empty() && matches!(state.mode, Mode::Confirm(_)), "{section:?} {keys}");
    }
}

#[test]
fn a_stage_is_approved_and_rejected_by_its_number() {
    let waiting = at(RowSection::Needs);
    let second = || ActionFields { stage: Some("2".into()), ..ActionFields::default() };
    let (_, effects) = press(waiting.clone(), "jay");
    assert_eq!(effects, acts(Action::Approve, run_subject("ship"), second()));
    let (state, effects) = press(waiting.clone(), "jrno, not today\u{8}\n");
    let fields = ActionFields { reason: Some("no, not toda".into()), ..second() };
    assert_eq!(effects, acts(Action::Reject, run_subject("ship"), fields));
    assert_eq!(said(&state), "reject because: no, not toda …");
    let (_, effects) = press(waiting, "jr\n");
    assert_eq!(effects, acts(Action::Reject, run_subject("ship"), second()), "a reason is not needed");
}

#[test]
fn limits_are_extended_by_what_was_typed() {
    let (state, effects) = press(at(RowSection::Working), "e+1M tokens, $5\n");
    let fields = ActionFields { tokens: Some("1M".into()), usd: Some("5".into()), ..ActionFields::default() };
    assert_eq!(effects, acts(Action::Extend, subject("tests"), fields));
    assert_eq!(state.mode, Mode::Normal);
    let (state, effects) = press(at(RowSection::Working), "e5 pears\n");
    assert_eq!(effects, []);
    assert!(matches!(&state.mode, Mode::Prompt(prompt) if prompt.typed == "5 pears"), "it can be corrected");
    let (state, effects) = press(state, "\u{1b}");
    assert_eq!((effects, state.mode), (vec![], Mode::Normal));
}

#[test]
fn words_are_said_to_a_run() {
    let (state, effects) = press(at(RowSection::Runs), "s\n");
    assert!(effects.is_empty() && matches!(state.mode, Mode::Prompt(_)), "nothing is nothing to say");
    let (_, effects) = press(state, "leave q alone\n");
    let fields = ActionFields { text: Some("leave q alone".into()), ..ActionFields::default() };
    assert_eq!(effects, acts(Action::Say, run_subject("ship"), fields));
}

#[test]
fn a_key_without_a_meaning_for_the_row_says_so() {
    let (state, effects) = press(at(RowSection::Ended), "p");
    assert_eq!((effects, said(&state)), (vec![], "Remove the old API cannot be paused or resumed"));
    let (state, _) = press(at(RowSection::Working), "s");
    assert_eq!(said(&state), "Make every test pass cannot be told anything");
}

#[test]
fn answers_of_actions_appear_and_the_page_is_read_again() {
    let answer = |is_ok| actions::CommandAnswer {
        is_ok,
        ..actions::CommandAnswer::refused(409, "goal\u{1b}[31m paused", "go on")
    };
    let (state, effects) = update(at(RowSection::Working), TopEvent::Acted(answer(true)));
    assert_eq!(state.status, Some(TopStatus { text: "goal paused (go on)".into(), kind: StatusKind::Done }));
    assert_eq!(effects, [TopEffect::Read(Ask::Now)]);
    let (state, _) = update(at(RowSection::Working), TopEvent::Acted(answer(false)));
    assert_eq!(state.status.unwrap().kind, StatusKind::Failed);
}

#[test]
fn a_search_narrows_the_page_and_then_looks_everywhere() {
    let (state, effects) = press(state(typical(), 80, 24), "/GUIDE");
    assert_eq!((effects, state.rows.len()), (vec![], 1));
    assert_eq!(state.row().unwrap().title, "Write the guide");
    let (found, effects) = press(state.clone(), "\n");
    assert_eq!(effects, [TopEffect::Read(Ask::Find("GUIDE".into()))]);
    assert_eq!((found.place, found.mode.clone()), (TopPlace::Found, Mode::Normal));
    let late = ReadAnswer::Found("an older search".into(), vec![]);
    let (found, _) = update(found, TopEvent::Answer(late));
    assert_eq!(said(&found), "searching for “GUIDE” …", "an answer to another search is dropped");
    let (found, _) = update(found, TopEvent::Answer(ReadAnswer::Found("GUIDE".into(), vec![])));
    assert_eq!(said(&found), "0 results for “GUIDE”");
    let (back, _) = press(found, "\u{1b}");
    assert_eq!((back.place, back.rows.len()), (TopPlace::Now, state_rows()));
    let (left, _) = press(state, "\u{1b}");
    assert_eq!((left.search.as_str(), left.rows.len()), ("", state_rows()));
}

fn state_rows() -> usize {
    state(typical(), 80, 24).rows.len()
}

#[test]
fn letters_of_a_search_are_no_commands() {
    let (state, effects) = press(state(typical(), 80, 24), "/qxy?");
    assert_eq!((effects, state.search.as_str()), (vec![], "qxy?"));
}

#[test]
fn pasted_text_is_never_taken_as_keys() {
    let (state, effects) = update(at(RowSection::Runs), TopEvent::Paste("xy\nq".into()));
    assert_eq!((effects, &state.mode), (vec![], &Mode::Normal));
    let (state, _) = press(state, "s");
    let (state, effects) = update(state, TopEvent::Paste("one\ntwo\u{1b}[2J".into()));
    assert_eq!(effects, []);
    assert!(matches!(&state.mode, Mode::Prompt(prompt) if prompt.typed == "one two"));
}

#[test]
fn g_goes_to_places() {
    let (state, effects) = press(state(typical(), 80, 24), "gr");
    assert_eq!((state.place, effects), (TopPlace::Runs, vec![]));
    assert!(state.rows.iter().all(crate::top::rows::TopRow::is_run) && !state.rows.is_empty());
    let (state, effects) = press(state, "gu");
    assert_eq!((state.place, effects), (TopPlace::Usage, vec![TopEffect::Read(Ask::Usage)]));
    let (state, effects) = press(state, "gu");
    assert_eq!(effects, [], "it is being read already");
    let (state, effects) = press(state, "xpgn");
    assert_eq!((state.place, effects), (TopPlace::Now, vec![]), "there is nothing to act on");
    let (state, effects) = press(state, "gx");
    assert_eq!((state.place, effects), (TopPlace::Now, vec![]), "a wrong place is none, and no command either");
}

#[test]
fn details_are_read_when_they_are_shown_and_once() {
    let narrow = at(RowSection::Working);
    let (narrow, effects) = update(narrow, key(KeyCode::Char('j')));
    assert_eq!(effects, [], "nothing shows them");
    let (open, effects) = update(narrow, key(KeyCode::Enter));
    assert_eq!(effects, [TopEffect::Read(Ask::Detail(subject("docs")))]);
    assert!(open.is_open);
    let (open, effects) = update(open, TopEvent::Tick(AT + 1_000));
    assert_eq!(effects, []);
    let (open, effects) = update(open, TopEvent::Stale);
    assert_eq!(effects, [TopEffect::Read(Ask::Now), TopEffect::Read(Ask::Detail(subject("docs")))]);
    let old = ReadAnswer::Detail(subject("tests"), Box::new(Detail::None));
    let (open, _) = update(open, TopEvent::Answer(old));
    assert!(open.detail.is_none(), "an answer about another row is dropped");
    let (open, _) = update(open, TopEvent::Answer(ReadAnswer::Detail(subject("docs"), Box::new(Detail::None))));
    assert!(open.detail.is_some());
    let (closed, _) = press(open, "\u{1b}");
    assert!(!closed.is_open);
    let mut wide = at(RowSection::Working);
    (wide.columns, wide.lines) = (140, 40);
    let (_, effects) = update(wide, key(KeyCode::Char('j')));
    assert_eq!(effects, [TopEffect::Read(Ask::Detail(subject("docs")))]);
}

#[test]
fn a_resize_brings_the_pane() {
    let (state, effects) = update(at(RowSection::Working), TopEvent::Resize(200, 50));
    assert_eq!((state.columns, state.lines), (200, 50));
    assert_eq!(effects, [TopEffect::Read(Ask::Detail(subject("tests")))]);
}

#[test]
fn trouble_keeps_the_page_and_ends_with_the_next_look() {
    let trouble = || ReadAnswer::Trouble { message: "disk full".into(), hint: "make room".into() };
    let (state, _) = update(at(RowSection::Working), TopEvent::Answer(trouble()));
    assert!(state.now().is_some() && state.trouble.is_some());
    let since = state.trouble.as_ref().unwrap().since_ms;
    let (state, _) = update(state, TopEvent::Tick(AT + 60_000));
    let (state, _) = update(state, TopEvent::Answer(trouble()));
    assert_eq!(state.trouble.as_ref().unwrap().since_ms, since);
    let (state, _) = update(state, TopEvent::Answer(ReadAnswer::Now(Box::new(large()))));
    assert!(state.trouble.is_none());
    let (state, _) = update(state, TopEvent::Answer(ReadAnswer::Missing));
    assert!(state.rows.is_empty());
}

#[test]
fn keys_that_leave() {
    let control = |letter| TopEvent::Key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL));
    assert_eq!(press(state(typical(), 80, 24), "q").1, [TopEffect::Quit]);
    assert_eq!(update(state(typical(), 80, 24), control('z')).1, [TopEffect::Suspend]);
    for mode in [Mode::Normal, Mode::Help, Mode::Search, Mode::Go] {
        let state = TopState { mode, ..state(typical(), 80, 24) };
        assert_eq!(update(state, control('c')).1, [TopEffect::Quit]);
    }
    let (state, effects) = press(state(typical(), 80, 24), "?q");
    assert_eq!((effects, state.mode), (vec![], Mode::Normal), "any key closes the help only");
}
