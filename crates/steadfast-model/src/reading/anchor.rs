//! How a reader notices that bytes which it has read were changed since.

use serde::{Deserialize, Serialize};

use crate::text::Fingerprint;

/// The number and a fingerprint of the bytes just before an offset. The bytes themselves are words of people and agents,
/// which are not kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    length: u16,
    fingerprint: [u8; 16],
}

/// Begins a stored anchor. No line of a session file contains this byte.
const MARK: u8 = 0;

impl Anchor {
    /// The anchor of up to 64 kB.
    pub fn of(bytes: &[u8]) -> Self {
        let mut fingerprint = Fingerprint::default();
        fingerprint.add(bytes);
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        if length == 0 { Self::default() } else { Self { length, fingerprint: fingerprint.value().to_le_bytes() } }
    }

    /// How many bytes it is about.
    pub fn length(&self) -> u64 {
        self.length.into()
    }

    /// Whether these are the bytes. One of no bytes holds everywhere.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        *self == Self::of(bytes)
    }

    /// As it is stored; empty for one of no bytes.
    pub fn to_stored(&self) -> Vec<u8> {
        if self.length == 0 {
            return Vec::new();
        }
        [&[MARK][..], &self.length.to_le_bytes(), &self.fingerprint].concat()
    }

    /// Reads a stored anchor. Earlier versions stored the bytes themselves.
    pub fn from_stored(stored: &[u8]) -> Self {
        let parts = stored.split_first_chunk::<3>().filter(|([mark, ..], _)| *mark == MARK);
        match parts.map(|([_, low, high], rest)| (u16::from_le_bytes([*low, *high]), rest.try_into())) {
            Some((length, Ok(fingerprint))) => Self { length, fingerprint },
            _ => Self::of(stored),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_holds_for_its_bytes_alone_and_has_none_of_them() {
        let bytes = b"{\"lastPrompt\":\"my key is hunter2\"}\n";
        let anchor = Anchor::of(bytes);
        assert!(anchor.holds(bytes) && !anchor.holds(&bytes[1..]) && anchor.length() == bytes.len() as u64);
        let stored = anchor.to_stored();
        assert!(stored.len() < 20 && !stored.windows(7).any(|part| part == b"hunter2"));
        assert_eq!(Anchor::from_stored(&stored), anchor);
        assert_eq!(Anchor::from_stored(bytes), anchor, "of an earlier version");
        assert_eq!(Anchor::from_stored(b""), Anchor::default());
        assert!(Anchor::default().holds(b"") && Anchor::default().to_stored().is_empty());
    }
}
