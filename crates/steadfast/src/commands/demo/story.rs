//! What the agent tells the audience: one JSON object a line on its stdout, each answered by an empty line on
//! its stdin. The agent does nothing more until it is answered, so the audience sets the pace and can kill it
//! at exactly the moment it wants to.

use std::io::BufRead as _;

use anyhow::bail;
use serde::{Deserialize, Serialize};

use crate::output;

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Voice {
    User,
    Agent,
    /// The program the agent runs in.
    Client,
    Steadfast,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoryEvent {
    Scene(String),
    Said(Voice, String),
    /// The model answered and will be paid for it; `lines` of the transcript repeat the same numbers.
    Answered {
        tokens: i64,
        lines: usize,
    },
    /// Steadfast has just read the transcript.
    Accounted,
    /// Steadfast warned the model of a limit.
    Warned,
    /// Steadfast did not let the turn end.
    Continued,
    Compacted,
    /// Steadfast told the model its goal anew; whether it did so word for word.
    Reminded {
        verbatim: bool,
    },
    CompletionRefused,
    CompletionAccepted,
    /// The agent is in the middle of a turn, with a file half written.
    InMidTurn,
    SessionEnded,
}

/// Tells the audience, and waits until it has heard.
pub(super) fn tell(event: &StoryEvent) -> anyhow::Result<()> {
    output::line(&serde_json::to_string(event)?);
    let mut heard = String::new();
    if std::io::stdin().lock().read_line(&mut heard)? == 0 {
        bail!("nobody listens any more");
    }
    Ok(())
}

pub(super) fn say(voice: Voice, text: impl Into<String>) -> anyhow::Result<()> {
    tell(&StoryEvent::Said(voice, text.into()))
}
