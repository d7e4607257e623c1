//! The whole screen from the state: header, list and details, the line of messages, the line of keys.

mod edges;
mod help;
mod usage;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph};

use super::detail;
use super::list;
use super::state::{Mode, TopPlace, TopState};
use super::style::Tone;
use super::words;

pub(super) use edges::header;

/// The lines of the header and of the keys.
const EDGES: u16 = 2;
/// The width of questions and of the help.
const BOX: u16 = 64;
/// The least width of the list beside the details.
const LIST_LEAST: u16 = 80;

pub(super) fn draw(state: &TopState, frame: &mut Frame<'_>) {
    let area = frame.area();
    let columns = usize::from(area.width);
    frame.render_widget(Paragraph::new(header(state, columns)), Rect { height: 1, ..area }.intersection(area));
    let message = edges::message(state, columns);
    let below = u16::try_from(message.len()).unwrap_or(1);
    let height = area.height.saturating_sub(EDGES + below);
    let body = Rect { y: 1, height, ..area }.intersection(area);
    draw_body(state, frame, body);
    let y = body.y + body.height;
    frame.render_widget(Paragraph::new(message), Rect { y, height: below, ..area }.intersection(area));
    if let Some(x) = edges::cursor(state, columns) {
        frame.set_cursor_position((u16::try_from(x).unwrap_or(u16::MAX), y));
    }
    let keys = Rect { y: y + below, height: 1, ..area }.intersection(area);
    frame.render_widget(Paragraph::new(edges::keys(state, columns)), keys);
    match &state.mode {
        Mode::Help => draw_box(frame, body, " Keys ", help::lines(state.palette)),
        Mode::Confirm(asked) => {
            let lines = words::wrap(&asked.question, usize::from(BOX.min(body.width)).saturating_sub(4), 8);
            let lines = lines.into_iter().map(|line| state.palette.line(Tone::Strong, format!(" {line}")));
            draw_box(frame, body, " Are you sure? (y/n) ", lines.collect());
        }
        _ => {}
    }
}

fn draw_body(state: &TopState, frame: &mut Frame<'_>, area: Rect) {
    let mut area = area;
    // Trouble has the first lines; what was read before stays below it.
    let trouble = edges::trouble(state, usize::from(area.width));
    if !trouble.is_empty() {
        let height = u16::try_from(trouble.len()).unwrap_or(u16::MAX).min(area.height);
        frame.render_widget(Paragraph::new(trouble), Rect { height, ..area });
        area = Rect { y: area.y + height, height: area.height - height, ..area };
    }
    if state.place == TopPlace::Usage {
        return scrolled(frame, usage::lines(state, usize::from(area.width)), state.scroll, area);
    }
    if state.is_open {
        return scrolled(frame, detail::lines(state, usize::from(area.width)), state.scroll, area);
    }
    let (left, right) = panes(state, area);
    draw_list(state, frame, left);
    if let Some(right) = right {
        let line = Rect { x: right.x.saturating_sub(2), width: 1, ..right };
        let rule = vec![state.palette.line(Tone::Quiet, "│"); usize::from(line.height)];
        frame.render_widget(Paragraph::new(rule), line);
        scrolled(frame, detail::lines(state, usize::from(right.width)), 0, right);
    }
}

/// The places of the list and of the details beside it.
fn panes(state: &TopState, area: Rect) -> (Rect, Option<Rect>) {
    if !state.has_pane() {
        return (area, None);
    }
    let list = (area.width / 20 * 11).max(LIST_LEAST).min(area.width);
    let left = Rect { width: list, ..area };
    // One column of the rule and one of space on each side.
    let x = list + 3;
    (left, Some(Rect { x, width: area.width.saturating_sub(x), ..area }))
}

fn draw_list(state: &TopState, frame: &mut Frame<'_>, area: Rect) {
    let list = list::list(state, usize::from(area.width), true);
    let (height, total) = (usize::from(area.height), list.lines.len());
    // The selected row is in the middle, as far as the ends of the list allow. A row that is longer than the screen
    // shows its beginning.
    let selected = list.rows.get(state.selected).cloned().unwrap_or(0..0);
    let middle = selected.start + selected.len().min(height) / 2;
    let offset = middle.saturating_sub(height / 2).min(total.saturating_sub(height));
    scrolled(frame, list.lines, offset, area);
}

fn scrolled(frame: &mut Frame<'_>, lines: Vec<Line<'static>>, offset: usize, area: Rect) {
    let offset = offset.min(lines.len().saturating_sub(usize::from(area.height)));
    let shown: Vec<Line<'static>> = lines.into_iter().skip(offset).take(usize::from(area.height)).collect();
    frame.render_widget(Paragraph::new(shown), area);
}

/// How far what fills the screen can be scrolled.
pub(super) fn longest_scroll(state: &TopState) -> usize {
    let columns = usize::from(state.columns);
    let lines = match state.place {
        TopPlace::Usage => usage::lines(state, columns),
        _ => detail::lines(state, columns),
    };
    lines.len().saturating_sub(usize::from(state.lines.saturating_sub(EDGES + 1)))
}

fn draw_box(frame: &mut Frame<'_>, body: Rect, title: &'static str, lines: Vec<Line<'static>>) {
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(body.height);
    let width = BOX.min(body.width);
    let area = Rect { x: body.x + (body.width - width) / 2, y: body.y + (body.height - height) / 2, width, height };
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title(title)), area);
}
