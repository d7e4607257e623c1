//! `steadfast top`: what needs the user, what works, what waits and what ended, in a terminal. `update` and `draw` are
//! functions of a `TopState`; the loop here reads keys, asks for the store's answers and runs actions.

mod asking;
mod cards;
mod detail;
mod draw;
mod list;
mod reading;
mod rows;
mod screen;
mod state;
mod style;
mod update;
mod words;

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event as TerminalEvent, KeyEventKind};
use ratatui::crossterm::terminal;
use steadfast_app::overview::now::{Header, Now};
use steadfast_engine::interrupt::{self, EndRequest};
use steadfast_model::clock;
use steadfast_store::{Store, StoreError, StoreStamp};
use steadfast_system::paths::Paths;

use self::screen::TopScreen;
use self::state::{SeenView, StatusKind, TopPlace, TopState};
use self::style::Palette;
use self::update::{Ask, ReadAnswer, TopEffect, TopEvent, update};
use crate::actions::{self, ActionTarget, Actions};
use crate::{facts, fleet};

/// How often keys are waited for before another look at the store's files.
const NAP: Duration = Duration::from_millis(250);
/// The same while an answer is awaited.
const SHORT_NAP: Duration = Duration::from_millis(20);
const SECOND: Duration = Duration::from_secs(1);
/// The longest time between two looks into the store: the end of a process changes no file.
const LOOK_EVERY: Duration = Duration::from_secs(10);
const LOOK_EVERY_WITH_RUNS: Duration = Duration::from_secs(3);
const RETRY_EVERY: Duration = Duration::from_secs(2);

/// Shows the view until the user leaves it. Returns how the process was asked to end, if a signal did.
/// `program` is this program, which does what the user asks for.
pub fn run(paths: &Paths, program: PathBuf, has_colour: bool) -> io::Result<Option<EndRequest>> {
    let requests = interrupt::requests()?;
    screen::leave_on_panic();
    let (columns, lines) = terminal::size()?;
    let (asks, to_read) = mpsc::channel();
    let (answer, answers) = mpsc::channel();
    let (acted, outcomes) = mpsc::channel();
    let (own_paths, own_answer) = (paths.clone(), answer.clone());
    std::thread::spawn(move || reading::work(&own_paths, &to_read, &own_answer));
    let mut view = TopView {
        paths,
        state: TopState::new(columns, lines, Palette { has_colour }),
        actions: Actions::new(paths.clone(), program),
        asks,
        answer,
        acted,
        awaited: 0,
        is_over: false,
        is_dirty: true,
        is_suspended: false,
    };
    let mut screen = TopScreen::open()?;
    let ended = view.work(&mut screen, &requests, &answers, &outcomes);
    drop(screen);
    ended
}

struct TopView<'a> {
    paths: &'a Paths,
    state: TopState,
    actions: Actions,
    asks: Sender<Ask>,
    answer: Sender<ReadAnswer>,
    acted: Sender<actions::CommandAnswer>,
    /// Questions without an answer.
    awaited: usize,
    is_over: bool,
    is_dirty: bool,
    is_suspended: bool,
}

impl TopView<'_> {
    fn work(
        &mut self,
        screen: &mut TopScreen,
        requests: &Receiver<EndRequest>,
        answers: &Receiver<ReadAnswer>,
        outcomes: &Receiver<actions::CommandAnswer>,
    ) -> io::Result<Option<EndRequest>> {
        let mut seen = StoreStamp::of(&self.paths.store);
        let (mut looked, mut ticked) = (Instant::now(), Instant::now());
        self.take(TopEvent::Stale);
        while !self.is_over {
            if let Ok(request) = requests.try_recv() {
                return Ok(Some(request));
            }
            for answer in answers.try_iter() {
                self.awaited = self.awaited.saturating_sub(1);
                self.take(TopEvent::Answer(answer));
            }
            for outcome in outcomes.try_iter() {
                self.take(TopEvent::Acted(outcome));
            }
            let stamp = StoreStamp::of(&self.paths.store);
            if stamp != seen || looked.elapsed() >= self.look_every() {
                (seen, looked) = (stamp, Instant::now());
                self.take(TopEvent::Stale);
            }
            if ticked.elapsed() >= SECOND {
                ticked = Instant::now();
                self.take(TopEvent::Tick(clock::now()));
            }
            if std::mem::take(&mut self.is_suspended) {
                screen.suspend()?;
                self.is_dirty = true;
            }
            if std::mem::take(&mut self.is_dirty) {
                screen.draw(&self.state)?;
            }
            let is_busy = matches!(&self.state.status, Some(status) if status.kind == StatusKind::Busy);
            let nap = if self.awaited > 0 || is_busy { SHORT_NAP } else { NAP };
            if screen::is_gone_within(nap) {
                return Ok(Some(EndRequest::Terminate));
            }
            while !self.is_over && event::poll(Duration::ZERO)? {
                self.take_terminal_event(event::read()?);
            }
        }
        Ok(None)
    }

    fn look_every(&self) -> Duration {
        match &self.state.seen {
            _ if self.state.trouble.is_some() => RETRY_EVERY,
            SeenView::Now(now) if !now.runs.is_empty() => LOOK_EVERY_WITH_RUNS,
            _ => LOOK_EVERY,
        }
    }

    fn take_terminal_event(&mut self, event: TerminalEvent) {
        match event {
            TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => self.take(TopEvent::Key(key)),
            TerminalEvent::Paste(text) => self.take(TopEvent::Paste(text)),
            TerminalEvent::Resize(columns, lines) => self.take(TopEvent::Resize(columns, lines)),
            _ => {}
        }
    }

    fn take(&mut self, event: TopEvent) {
        let between = TopState::new(0, 0, self.state.palette);
        let (state, effects) = update(std::mem::replace(&mut self.state, between), event);
        self.state = state;
        self.is_dirty = true;
        for effect in effects {
            self.cause(effect);
        }
    }

    fn cause(&mut self, effect: TopEffect) {
        match effect {
            // The first reading of all transcripts takes long.
            TopEffect::Read(Ask::Usage) => {
                self.awaited += 1;
                let (paths, answer) = (self.paths.clone(), self.answer.clone());
                std::thread::spawn(move || answer.send(reading::usage(&paths)));
            }
            // Without its thread there is no answer; the next tick shows that nothing changes.
            TopEffect::Read(ask) => self.awaited += usize::from(self.asks.send(ask).is_ok()),
            TopEffect::Act { action, subject, fields } => {
                let (actions, acted) = (self.actions.clone(), self.acted.clone());
                std::thread::spawn(move || {
                    let answer = match ActionTarget::of(&subject) {
                        Some(target) => actions.perform(&target, action, &fields),
                        None => actions::CommandAnswer::refused(
                            400,
                            "this run has not begun",
                            "`steadfast loop cancel NAME`",
                        ),
                    };
                    // The view may be gone by now.
                    acted.send(answer)
                });
            }
            TopEffect::Suspend => self.is_suspended = true,
            TopEffect::Quit => self.is_over = true,
        }
    }
}

/// The first page as data; empty without a store.
pub fn data(paths: &Paths) -> Result<Now, StoreError> {
    // There is no next look.
    fleet::wait_for_answer(paths);
    match Store::open_if_there(&paths.store)? {
        Some(store) => facts::now(store.read(), paths, clock::now()),
        None => Ok(Now { fleet: fleet::look(paths), ..nothing() }),
    }
}

/// What there is without a store.
fn nothing() -> Now {
    let header =
        Header { live_goals: 0, live_runs: 0, today_tokens: 0, today_cost_usd: Some(0.0), caps: vec![], plan: vec![] };
    Now {
        at_ms: clock::now(),
        header,
        needs: vec![],
        working: vec![],
        runs: vec![],
        waiting: vec![],
        ended: vec![],
        goals_left_out: 0,
        runs_left_out: 0,
        fleet: None,
    }
}

/// The whole first page as text, with escape sequences for colours.
pub fn once(paths: &Paths, columns: usize) -> Result<String, StoreError> {
    let now = data(paths)?;
    let mut state = TopState::new(u16::try_from(columns).unwrap_or(u16::MAX), 0, Palette { has_colour: true });
    state.at_ms = now.at_ms;
    state.place = TopPlace::Now;
    state.seen = SeenView::Now(Box::new(now));
    state.list_rows();
    let header = draw::header(&state, columns);
    let list = list::list(&state, columns, false);
    let lines: Vec<String> = std::iter::once(&header).chain(&list.lines).map(style::ansi).collect();
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests;
