//! Acceptance items of a goal: what must be true at the end, in words. The list is fixed at the start.

use serde::{Deserialize, Serialize};

use crate::clock::Millis;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    pub text: String,
    /// `None` while the item is open.
    pub proof: Option<ItemProof>,
}

/// What shows that an item is met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemProof {
    pub text: String,
    pub at_ms: Millis,
}

impl Item {
    pub fn open(text: String) -> Self {
        Self { text, proof: None }
    }
}
