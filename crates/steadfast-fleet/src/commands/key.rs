//! `fleet key`: a new line for the key file.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::output::{CommandError, CommandResult, Output, code};

pub(super) fn new() -> CommandResult {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| CommandError::new(code::ENVIRONMENT, format!("no random bytes: {error}"), "try again"))?;
    let id = format!("k{}", jiff::Timestamp::now().strftime("%Y%m%d%H%M%S"));
    let line = format!("{id}:{}", STANDARD.encode(bytes));
    Output::new(line.clone(), json!({"id": id, "line": line}))
}
