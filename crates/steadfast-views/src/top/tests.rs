//! Screens at the sizes that people use, drawn from pages that are empty, usual, large and hostile.

pub(super) mod fixtures;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;
use steadfast_app::overview::find::{Found, FoundKind};
use steadfast_app::overview::now::Action;
use steadfast_app::usage::charts::{ModelDay, UsageDayView};
use steadfast_model::text;

use self::fixtures::{AT, empty, hostile, large, state, subject, typical};
use super::asking::Start;
use super::draw::draw;
use super::state::{
    Detail, Mode, OpenQuestion, ReadTrouble, SeenView, StatusKind, TextPrompt, TopPlace, TopState, TopStatus, Usage,
};
use super::style::Palette;
use super::{asking, list};

const SIZES: [(u16, u16); 3] = [(80, 24), (140, 40), (200, 50)];

fn buffer(state: &TopState) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(state.columns, state.lines)).unwrap();
    terminal.draw(|frame| draw(state, frame)).unwrap();
    terminal.backend().buffer().clone()
}

/// The lines of the screen. A wide character is followed by an empty cell, which is left out.
fn screen(state: &TopState) -> Vec<String> {
    let buffer = buffer(state);
    let area = buffer.area;
    let line = |y| {
        let mut line = String::new();
        let mut x = 0;
        while x < area.width {
            let symbol = buffer[(x, y)].symbol();
            line.push_str(symbol);
            x += u16::try_from(super::words::width(symbol).max(1)).unwrap();
        }
        line.trim_end().to_owned()
    };
    (0..area.height).map(line).collect()
}

fn shows(state: &TopState, text: &str) -> bool {
    screen(state).join("\n").contains(text)
}

#[test]
fn the_first_page_is_complete_at_80_by_24() {
    let lines = screen(&state(typical(), 80, 24));
    let expected = [
        "NEEDS YOU 2",
        "▸ ! blocked     Fix the login                                        shop · 12 m",
        "    it needs the password of the staging database · answer it, then `steadfast",
        "    goal resume`",
        "  ! approval    ship                                                 shop · 12 m",
        "    it needs the password of the staging database · answer it, then `steadfast",
        "    goal resume`",
        "WORKING 2",
        "  ● Make every test pass                                      Claude Code · shop",
        "    tokens ██████░░░░ 62 % · $1.20/$5.00          at this pace: 2 h 10 m, $14.00",
        "    now: Bash: cargo test --workspace, 1… · next: the turn ends, then the next…",
    ];
    assert_eq!(lines[1..=expected.len()], expected, "{lines:#?}");
    assert!(
        lines[0].starts_with("steadfast  2 need you · 4 goals · 1 run · today $4.12 of $20.00 (21 %)"),
        "{}",
        lines[0]
    );
    assert_eq!(lines[15], "RUNS 1");
    assert_eq!(lines[16], "  ● running     ship (pipeline)                    3/25 · $2.33 · 1 h 2 m · shop");
    assert_eq!(lines[17], "    ✓plan ●build ○deploy last: moved the session to its own module");
    assert_eq!(lines[18], "WAITING 1");
    assert_eq!(lines[19], "  ◷ in 1 h 12 m Import the data");
    assert_eq!(lines[21], "RECENTLY ENDED 2");
    assert!(lines[23].starts_with("enter open  p resume  x abandon  / search"), "{}", lines[23]);
    assert!(lines[23].ends_with("? help  q quit"), "{}", lines[23]);
}

#[test]
fn every_page_has_its_header_its_keys_and_the_selected_row_at_every_size() {
    for (columns, lines) in SIZES {
        for now in [empty(), typical(), large(), hostile()] {
            let mut state = state(now, columns, lines);
            for selected in 0..state.rows.len().max(1) {
                state.selected = selected;
                let screen = screen(&state);
                assert!(screen[0].starts_with("steadfast"), "{}", screen[0]);
                let keys = screen.last().unwrap();
                assert!(keys.contains("? help") && keys.contains("q quit"), "{keys}");
                if let Some(row) = state.row() {
                    let marked: Vec<&String> = screen.iter().filter(|line| line.starts_with('▸')).collect();
                    let title: String = row.title.chars().take(8).collect();
                    assert!(matches!(marked.as_slice(), [line] if line.contains(title.trim())), "{row:?}\n{screen:#?}");
                }
            }
        }
    }
}

#[test]
fn hostile_text_moves_nothing_and_stays_in_its_cells() {
    for (columns, lines) in SIZES {
        let mut state = state(hostile(), columns, lines);
        for selected in 0..state.rows.len() {
            state.selected = selected;
            let buffer = buffer(&state);
            for cell in &buffer.content {
                let symbol = cell.symbol();
                assert!(!symbol.chars().any(char::is_control), "{symbol:?}");
                assert_eq!(text::without_invisible(symbol), symbol, "{symbol:?}");
                assert!(super::words::width(symbol) <= 2, "{symbol:?}");
            }
        }
        assert!(shows(&self::state(hostile(), columns, lines), "Fix the login"));
    }
}

#[test]
fn a_page_with_a_thousand_goals_says_how_many_it_leaves_out() {
    let mut state = state(large(), 80, 24);
    state.selected = state.rows.iter().rposition(|row| row.title.starts_with("Objective")).unwrap();
    assert!(shows(&state, "Objective number 59"));
    assert!(shows(&state, "… and 936 goals more"));
    assert!(screen(&state)[0].contains("1000 goals"));
}

#[test]
fn an_empty_page_teaches_the_first_steps() {
    let missing = TopState { seen: SeenView::Missing, ..TopState::new(80, 24, Palette { has_colour: true }) };
    assert!(shows(&missing, "/goal-start OBJECTIVE") && shows(&missing, "steadfast demo"));
    let empty = state(empty(), 80, 24);
    assert!(shows(&empty, "Nothing needs you.") && shows(&empty, "steadfast run \"All tests pass\""));
    let mut searched = state(typical(), 80, 24);
    searched.search = "nowhere to be found".into();
    searched.list_rows();
    assert!(shows(&searched, "enter searches everything"));
    searched.place = TopPlace::Found;
    searched.list_rows();
    assert!(shows(&searched, "Nothing found"));
}

#[test]
fn trouble_with_the_store_is_shown_over_what_was_read_before() {
    let mut state = state(typical(), 80, 24);
    let (message, hint) = ("the store is damaged: /home/ann/goals.db".to_owned(), "steadfast db recover".to_owned());
    state.trouble = Some(ReadTrouble { message, hint, since_ms: AT });
    let lines = screen(&state);
    assert!(lines[0].contains("not read since"), "{}", lines[0]);
    assert_eq!(lines[1], "error: the store is damaged: /home/ann/goals.db");
    assert_eq!(lines[2], "hint:  steadfast db recover");
    assert!(lines.join("\n").contains("Fix the login"));
    state.seen = SeenView::Nothing;
    state.list_rows();
    assert!(shows(&state, "the store is damaged"));
}

#[test]
fn wide_terminals_have_the_details_beside_the_list() {
    for (columns, lines) in SIZES {
        let mut state = state(typical(), columns, lines);
        state.selected = 2;
        state.detail = Some((subject("tests"), Detail::None));
        let text = "no more is known about it";
        assert_eq!(shows(&state, text), columns >= 140, "{columns}");
        assert!(shows(&state, "NEEDS YOU"));
        state.is_open = true;
        assert!(shows(&state, text) && !shows(&state, "NEEDS YOU"));
        assert!(shows(&state, "esc back"));
    }
}

#[test]
fn without_colour_no_cell_has_one() {
    for now in [typical(), hostile()] {
        let mut state = state(now, 200, 50);
        let coloured = |state: &TopState| buffer(state).content.iter().filter(|cell| cell.fg != Color::Reset).count();
        assert!(coloured(&state) > 0);
        state.palette = Palette { has_colour: false };
        assert_eq!(coloured(&state), 0);
    }
}

#[test]
fn only_the_terminals_own_colours_are_used() {
    let own = [Color::Reset, Color::Cyan, Color::Green, Color::Yellow, Color::Red];
    let buffer = buffer(&state(typical(), 200, 50));
    assert!(buffer.content.iter().all(|cell| own.contains(&cell.fg) && cell.bg == Color::Reset));
}

#[test]
fn questions_and_prompts_say_what_will_happen() {
    let mut state = state(typical(), 80, 24);
    state.selected = state.rows.iter().position(|row| row.section == super::rows::RowSection::Runs).unwrap();
    let row = state.row().cloned().unwrap();
    let Start::Confirm { question } = asking::start(Action::Kill, &row) else { panic!("kill does not ask") };
    let subject = row.subject.clone().unwrap();
    state.mode = Mode::Confirm(Box::new(OpenQuestion { action: Action::Kill, subject, stage: None, question }));
    assert!(shows(&state, "Kill pipeline ship? Its agents stop now"), "{:#?}", screen(&state));
    assert!(shows(&state, "y yes") && shows(&state, "any other key no"));
    let mut prompt = TextPrompt {
        action: Action::Extend,
        subject: fixtures::subject("tests"),
        stage: None,
        label: "Extend by",
        help: "+1M tokens",
        typed: String::new(),
    };
    state.mode = Mode::Prompt(Box::new(prompt.clone()));
    assert!(shows(&state, "Extend by:") && shows(&state, "+1M tokens"));
    prompt.typed = "+2M tokens".into();
    state.mode = Mode::Prompt(Box::new(prompt.clone()));
    assert!(shows(&state, "adds 2M tokens; resumes it"));
    prompt.typed = "2 pears".into();
    state.mode = Mode::Prompt(Box::new(prompt));
    assert!(shows(&state, "`2` needs a unit"));
}

#[test]
fn the_help_fits_into_80_by_24() {
    let mut state = state(typical(), 80, 24);
    state.mode = Mode::Help;
    for text in ["j k ↓ ↑", "g u", "kill a run or abandon a goal; asks first", "quit"] {
        assert!(shows(&state, text), "{text}\n{:#?}", screen(&state));
    }
}

#[test]
fn a_long_answer_is_shown_in_full() {
    let mut state = state(typical(), 80, 24);
    let text = "the goal cannot be resumed because its money budget of $5.00 is spent; \
                extend it first (steadfast goal extend --add-usd 5)";
    state.status = Some(TopStatus { text: text.into(), kind: StatusKind::Failed });
    let lines = screen(&state);
    assert_eq!(lines[21], "✗ the goal cannot be resumed because its money budget of $5.00 is spent; extend");
    assert_eq!(lines[22], "it first (steadfast goal extend --add-usd 5)");
}

#[test]
fn results_of_a_search_show_the_line_that_matched() {
    let mut state = state(typical(), 80, 24);
    state.found = vec![Found {
        kind: FoundKind::Memory,
        subject: None,
        session_id: Some("s".into()),
        title: "an old session".into(),
        line: "the password \u{1b}[2Jis in the vault".into(),
        project: None,
        at_ms: AT,
    }];
    state.place = TopPlace::Found;
    state.list_rows();
    let lines = screen(&state);
    assert_eq!(lines[1], "FOUND 1");
    assert!(lines[2].starts_with("▸ · memory      an old session"), "{}", lines[2]);
    assert_eq!(lines[3], "    the password is in the vault");
}

#[test]
fn usage_is_a_bar_for_each_day() {
    let mut state = state(typical(), 80, 24);
    state.place = TopPlace::Usage;
    assert!(shows(&state, "reading transcripts"));
    let day = |date: &str, tokens| UsageDayView {
        date: date.into(),
        models: vec![ModelDay { model: "opus".into(), tokens, cost_usd: 1.5 }],
        tokens,
        cost_usd: 1.5,
    };
    let zone = jiff::tz::TimeZone::UTC;
    let mut charts = steadfast_app::usage::charts::charts(&[], 0, &zone, AT);
    charts.days = vec![day("2026-11-16", 500), day("2026-11-17", 1_000)];
    state.usage = Usage::Read(Box::new(charts));
    let lines = screen(&state);
    assert!(lines[2].starts_with("  2026-11-16 ██████████████████████  "), "{}", lines[2]);
    assert!(lines[3].starts_with("  2026-11-17 ████████████████████████████████████████████ "), "{}", lines[3]);
    assert!(shows(&state, "together 1.5k tokens, $3.00"));
}

#[test]
fn tiny_terminals_do_not_end_the_program() {
    for (columns, lines) in [(1, 1), (5, 2), (20, 3), (30, 5)] {
        for mode in [Mode::Normal, Mode::Help, Mode::Search] {
            for is_open in [false, true] {
                buffer(&TopState { mode: mode.clone(), is_open, ..state(hostile(), columns, lines) });
            }
        }
    }
}

#[test]
fn a_page_for_a_file_has_all_rows_and_no_marker() {
    let list = list::list(&state(large(), 100, 0), 100, false);
    let text: Vec<String> = list.lines.iter().map(ToString::to_string).collect();
    let text = text.join("\n");
    assert!(text.contains("Objective number 59") && text.contains("Port to Windows") && !text.contains('▸'));
}
