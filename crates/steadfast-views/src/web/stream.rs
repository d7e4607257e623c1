//! Server-sent events: `changed`, whenever the store or the output of a run under way changed. One thread looks for all
//! streams, and only while there are some. An event has no content, so a slow reader misses nothing but repetitions.

mod looking;

use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use http_body::Frame;
use steadfast_system::paths::Paths;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use looking::Looking;

const MOST: usize = 64;
const LOOK_EVERY: Duration = Duration::from_millis(250);
const PING_EVERY: Duration = Duration::from_secs(15);
/// Events that wait for a slow reader.
const WAITING: usize = 4;
/// Pings in a row that found no room: the reader is gone or stuck.
const MOST_MISSED: u32 = 4;

/// The open streams.
#[derive(Debug)]
pub(crate) struct Streams {
    slots: Arc<Semaphore>,
    state: Mutex<StreamState>,
    /// A stream was opened, or the server ends.
    news: Condvar,
}

#[derive(Debug, Default)]
struct StreamState {
    readers: Vec<StreamReader>,
    /// The id of the newest event.
    last: u64,
    is_over: bool,
}

#[derive(Debug)]
struct StreamReader {
    sender: mpsc::Sender<Bytes>,
    missed_pings: u32,
}

impl Default for Streams {
    fn default() -> Self {
        Self { slots: Arc::new(Semaphore::new(MOST)), state: Mutex::default(), news: Condvar::new() }
    }
}

impl Streams {
    /// Opens a stream; `None` if there are too many. It begins with an event, because something may have changed since
    /// its page was built.
    pub(crate) fn open(&self) -> Option<Body> {
        let slot = Arc::clone(&self.slots).try_acquire_owned().ok()?;
        let (sender, receiver) = mpsc::channel(WAITING);
        let mut state = self.state();
        if state.is_over {
            return None;
        }
        let first = format!("retry: 1000\n\n{}", changed(state.last));
        sender.try_send(first.into()).ok()?;
        state.readers.push(StreamReader { sender, missed_pings: 0 });
        self.news.notify_all();
        Some(Body::new(EventStream { receiver, _slot: slot }))
    }

    /// Ends all streams, and the thread that looks.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        state.readers.clear();
        self.news.notify_all();
    }

    /// Looks for changes until [`Self::end`].
    pub(crate) fn work(&self, paths: &Paths) {
        while self.wait_for_readers() {
            let mut looking = Looking::new(paths);
            let mut pinged = Instant::now();
            while self.nap() {
                if looking.has_changed() {
                    self.send_changed();
                } else if pinged.elapsed() >= PING_EVERY {
                    pinged = Instant::now();
                    self.ping();
                }
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns once there is a stream; false at the end.
    fn wait_for_readers(&self) -> bool {
        let is_idle = |state: &mut StreamState| !state.is_over && state.readers.is_empty();
        let state = self.news.wait_while(self.state(), is_idle).unwrap_or_else(PoisonError::into_inner);
        !state.is_over
    }

    /// Waits for a moment; false if the last stream was closed.
    fn nap(&self) -> bool {
        let is_on = |state: &mut StreamState| !state.is_over;
        let napped = self.news.wait_timeout_while(self.state(), LOOK_EVERY, is_on);
        let (mut state, _) = napped.unwrap_or_else(PoisonError::into_inner);
        state.readers.retain(|reader| !reader.sender.is_closed());
        !state.readers.is_empty()
    }

    fn send_changed(&self) {
        let mut state = self.state();
        state.last += 1;
        let event: Bytes = changed(state.last).into();
        for reader in &state.readers {
            // A reader without room has the same event before it.
            let _ = reader.sender.try_send(event.clone());
        }
    }

    fn ping(&self) {
        for reader in &mut self.state().readers {
            let is_sent = reader.sender.try_send(Bytes::from_static(b": ping\n\n")).is_ok();
            reader.missed_pings = if is_sent { 0 } else { reader.missed_pings + 1 };
        }
        self.state().readers.retain(|reader| reader.missed_pings < MOST_MISSED);
    }
}

fn changed(id: u64) -> String {
    format!("id: {id}\nevent: changed\ndata: {id}\n\n")
}

/// The body of an answer; ends when its sender is dropped.
struct EventStream {
    receiver: mpsc::Receiver<Bytes>,
    /// Free again when the connection closes.
    _slot: OwnedSemaphorePermit,
}

impl http_body::Body for EventStream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.receiver.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
