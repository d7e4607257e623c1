//! Sends messages to the user. A hook, the tool server and the engine start `steadfast __deliver` and do not wait: it
//! delivers what is due, and lingers for a moment to try again what failed. `steadfast watch` calls `deliver_due`.

mod command;
mod webhook;

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use steadfast_engine::notify;
use steadfast_model::clock::{self, Millis};
use steadfast_model::outbox::MessageKind;
use steadfast_model::outbox::delivery::{Channel, Delivery, Ending};
use steadfast_store::{Store, StoreError};
use steadfast_system::config::NotifyConfig;
use steadfast_system::log;
use steadfast_system::paths::Paths;
use strum::IntoEnumIterator as _;

use crate::cli::DELIVERER;
use crate::watch;

/// How long one try may take.
const LIMIT: Duration = Duration::from_secs(10);
/// How long `__deliver` stays to try again; later tries are left to the supervisor or to the next message.
const LINGER: Duration = Duration::from_mins(2);
/// How often it looks whether another process has delivered the rest.
const NAP: Duration = Duration::from_secs(1);

/// Whether the user probably watches the terminal that a run prints to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Watching,
    Away,
}

/// Why a try failed.
#[derive(Debug)]
struct DeliveryFailure {
    error: String,
    /// Another try would fail in the same way.
    is_final: bool,
}

impl DeliveryFailure {
    fn new(error: impl Into<String>) -> Self {
        Self { error: error.into(), is_final: false }
    }
}

/// Takes all waiting messages and starts their delivery. Failing to notify is not an error.
pub(crate) fn send(paths: &Paths, store: &mut Store, audience: Audience) {
    let (config, now) = (&paths.config.notify, clock::now());
    let taken = store.take_messages(|kind| channels(config, kind, audience), now);
    let is_quiet = config.quiet_hours.is_some_and(|hours| hours.end(now).is_some());
    if taken.is_ok()
        && !is_quiet
        && store.has_news(now).unwrap_or_default()
        && let Some(mut child) = start(paths)
    {
        // The tool server lives on, and would keep a zombie.
        std::thread::spawn(move || child.wait());
    }
}

/// Starts the delivery of what other calls of this process wrote.
pub(crate) fn start_if_news(paths: &Paths) {
    let store = Store::open_if_there(&paths.store).ok().flatten();
    if store.is_some_and(|store| store.has_news(clock::now()).unwrap_or_default()) {
        drop(start(paths));
    }
}

/// When the next delivery is due, quiet hours considered.
pub(crate) fn next_delivery(paths: &Paths, store: &Store) -> Result<Option<Millis>, StoreError> {
    let quiet_until = paths.config.notify.quiet_hours.and_then(|hours| hours.end(clock::now()));
    Ok(store.next_delivery()?.map(|due| quiet_until.map_or(due, |end| due.max(end))))
}

/// Starts the delivery in a process of its own.
pub(crate) fn start(paths: &Paths) -> Option<Child> {
    let spawn = || {
        let (home, store) = (std::path::absolute(&paths.home)?, std::path::absolute(&paths.store)?);
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(DELIVERER).args([home, store]).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    };
    let logged = |error: &std::io::Error| log::line(&paths.log_file(), &format!("cannot start {DELIVERER}: {error}"));
    spawn().inspect_err(logged).ok()
}

/// Delivers all that is due, and what becomes due within a moment.
pub(crate) fn deliver_and_linger(paths: &Paths) {
    let until = Instant::now() + LINGER;
    loop {
        let next = match deliver_due(paths) {
            Ok(next) => next,
            Err(error) => return log::line(&paths.log_file(), &format!("{DELIVERER}: {error}")),
        };
        let Some(due) = next else { return };
        let rest = Duration::from_millis(u64::try_from(due - clock::now()).unwrap_or_default());
        if rest > until.saturating_duration_since(Instant::now()) {
            return watch::ensure(paths);
        }
        std::thread::sleep(rest.min(NAP));
    }
}

/// Takes all waiting messages and tries every delivery that is due. Returns when the next one is due. It blocks while a
/// channel is slow: up to ten seconds for each message.
pub(crate) fn deliver_due(paths: &Paths) -> Result<Option<Millis>, StoreError> {
    let Some(mut store) = Store::open_if_there(&paths.store)? else { return Ok(None) };
    let config = &paths.config.notify;
    store.take_messages(|kind| channels(config, kind, Audience::Away), clock::now())?;
    if config.quiet_hours.and_then(|hours| hours.end(clock::now())).is_some() {
        return next_delivery(paths, &store);
    }
    for channel in Channel::iter() {
        while let Some(delivery) = claim(&mut store, channel)? {
            if channel == Channel::Desktop {
                // Marked first: what a killed process showed must not be shown again.
                store.end_delivery(&delivery, &Ending::Accepted, clock::now())?;
                notify::desktop(&delivery.title, &delivery.body);
            } else {
                let ending = try_once(paths, &delivery);
                store.end_delivery(&delivery, &ending, clock::now())?;
            }
        }
    }
    store.next_delivery()
}

/// Claims the next delivery of a channel; reads first, because a claim locks the store.
fn claim(store: &mut Store, channel: Channel) -> Result<Option<Delivery>, StoreError> {
    let now = clock::now();
    if store.next_delivery()?.is_some_and(|due| due <= now) { store.claim_delivery(channel, now) } else { Ok(None) }
}

fn try_once(paths: &Paths, delivery: &Delivery) -> Ending {
    let config = &paths.config.notify;
    let outcome = match delivery.channel {
        Channel::Desktop => Ok(()),
        Channel::Command => command::run(config, delivery),
        Channel::Webhook => webhook::post(config, delivery),
    };
    let Err(DeliveryFailure { error, is_final }) = outcome else { return Ending::Accepted };
    match delivery.rest(config.back_off_ms) {
        Some(rest) if !is_final => Ending::Failed { error, again_at: clock::now().saturating_add(rest) },
        _ => {
            let line = format!("notify {}: given up at try {}: {error}", delivery.channel, delivery.tries);
            log::line(&paths.log_file(), &line);
            Ending::GivenUp { error }
        }
    }
}

/// Where a message of this kind goes.
fn channels(config: &NotifyConfig, kind: MessageKind, audience: Audience) -> Vec<Channel> {
    if !config.events.contains(&kind) {
        return Vec::new();
    }
    let by_default = kind != MessageKind::RunEnded || audience == Audience::Away;
    let is_wanted = |channel: &Channel| match channel {
        Channel::Desktop => config.desktop.unwrap_or(by_default),
        Channel::Command => !config.command.is_empty(),
        Channel::Webhook => config.webhook.is_some(),
    };
    Channel::iter().filter(is_wanted).collect()
}

/// What commands and webhooks get; the same bytes at every try.
fn payload(delivery: &Delivery) -> String {
    let Delivery { kind, subject_id, title, body, .. } = delivery;
    json!({
        "id": delivery.id(), "kind": kind, "subject_id": subject_id, "title": title, "body": body,
        "text": format!("{title}\n{body}"), "created_at": clock::to_rfc3339(delivery.created_at_ms),
    })
    .to_string()
}
