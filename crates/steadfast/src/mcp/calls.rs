//! The calls under way, so that a restarted server can answer them: a client without an answer waits for minutes.

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use rmcp::model::RequestId;
use serde_json::json;

use super::store_handle::ToolError;

static UNDER_WAY: Mutex<Vec<RequestId>> = Mutex::new(Vec::new());

/// A call that is answered when this is dropped, or after a restart.
pub(super) struct CallUnderWay(RequestId);

impl CallUnderWay {
    pub(super) fn begin(id: RequestId) -> Self {
        UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).push(id.clone());
        Self(id)
    }
}

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).retain(|id| *id != self.0);
    }
}

pub(super) fn internal_error() -> ToolError {
    ToolError::new("internal error in the tool", "run `steadfast doctor`")
}

/// The ids of the calls under way, for the server that answers them after a restart. This one must not: its client may
/// send the next call at once, and what this process reads then is lost.
pub(super) fn hand_over() -> String {
    let under_way = std::mem::take(&mut *UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner));
    json!(under_way).to_string()
}

/// Answers the calls of the process before the restart with an error.
pub(super) fn answer(handed_over: &str) {
    // Only our own process writes this argument.
    let ids: Vec<RequestId> = serde_json::from_str(handed_over).unwrap_or_default();
    let mut stdout = std::io::stdout().lock();
    for id in ids {
        let result = json!({"content": [{"type": "text", "text": internal_error().to_string()}], "isError": true});
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        // A client that is gone needs no answer.
        let _ = writeln!(stdout, "{answer}");
    }
    let _ = stdout.flush();
}
