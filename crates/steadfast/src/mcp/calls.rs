//! The calls under way, so that a restart can answer them: a client without an answer waits for minutes.

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use rmcp::model::RequestId;
use serde_json::json;

use super::store_handle::ToolError;

static UNDER_WAY: Mutex<Vec<RequestId>> = Mutex::new(Vec::new());

/// A call that is answered when this is dropped, or by [`answer_all`].
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

/// Answers every call under way with an error, past the runtime, which may be the part that failed.
pub(super) fn answer_all() {
    let under_way = std::mem::take(&mut *UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner));
    let mut stdout = std::io::stdout().lock();
    for id in under_way {
        let result = json!({"content": [{"type": "text", "text": internal_error().to_string()}], "isError": true});
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        // A client that is gone needs no answer.
        let _ = writeln!(stdout, "{answer}");
    }
    let _ = stdout.flush();
}
