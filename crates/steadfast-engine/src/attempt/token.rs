//! What makes the records of a supervisor believable. The store has one random key per run. Each supervisor gets a token
//! made from it through its stdin, which its agent cannot read, and repeats it in what it writes. The agent knows the
//! directory of its attempt and could kill its supervisor and write the record of a success there.

use std::fmt;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use steadfast_model::text;

/// The most bytes of a token that a supervisor reads.
pub(crate) const TOKEN_BYTES: u64 = 256;

/// The key of a run.
#[derive(Clone, PartialEq, Eq)]
pub struct RunKey(Arc<str>);

impl RunKey {
    pub fn new(key: &str) -> Self {
        Self(key.into())
    }

    /// The token for the attempt in the directory of this name.
    pub(super) fn token(&self, directory: &str) -> AttemptToken {
        AttemptToken(digest(&[&self.0, directory]))
    }
}

impl fmt::Debug for RunKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RunKey")
    }
}

/// What the supervisor of an attempt has to know.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AttemptToken(String);

impl AttemptToken {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Proves that a text was written by a process that knows the token.
    pub(crate) fn seal(&self, text: &str) -> String {
        digest(&[&self.0, text])
    }
}

/// A hash of hashes, so that no part can run into the next.
fn digest(parts: &[&str]) -> String {
    let mut whole = Sha256::new();
    for part in parts {
        whole.update(Sha256::digest(part.as_bytes()));
    }
    text::hex(&whole.finalize())
}
