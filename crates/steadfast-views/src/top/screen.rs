//! The terminal while the view is open: raw mode and the alternate screen, given back however the process ends.

use std::io::{self, Stdout};
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::draw::draw;
use super::state::TopState;

/// An open screen; dropping it gives the terminal back.
pub(super) struct TopScreen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl TopScreen {
    pub(super) fn open() -> io::Result<Self> {
        enter()?;
        Ok(Self { terminal: Terminal::new(CrosstermBackend::new(io::stdout()))? })
    }

    pub(super) fn draw(&mut self, state: &TopState) -> io::Result<()> {
        self.terminal.draw(|frame| draw(state, frame)).map(drop)
    }

    /// Stops the process as Ctrl-Z does, and opens the screen again when it continues.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        leave();
        let own = rustix::process::getpid();
        rustix::process::kill_process(own, rustix::process::Signal::TSTP)?;
        enter()?;
        self.terminal.clear()
    }
}

impl Drop for TopScreen {
    fn drop(&mut self) {
        leave();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste).inspect_err(|_| leave())
}

/// Gives the terminal back. Errors change nothing: the terminal may be gone.
fn leave() {
    let _ = execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// From now on, a panic gives the terminal back before it is reported.
pub(super) fn leave_on_panic() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        leave();
        before(info);
    }));
}

/// Waits for input, at most this long, and says whether the terminal is gone. The library that reads the terminal would
/// read its end again and again.
pub(super) fn is_gone_within(nap: Duration) -> bool {
    let stdin = io::stdin();
    let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(nap.subsec_nanos()) };
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    // An interrupted wait is as good as a short one.
    let is_polled = poll(&mut polled, Some(&limit)).is_ok();
    is_polled
        && polled.iter().any(|input| input.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL))
}
