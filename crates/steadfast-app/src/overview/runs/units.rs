//! Numbers of runs with their units in JSON.

use serde::{Serialize, Serializer};
use steadfast_model::clock::{self, Millis};
use steadfast_model::price::dollars;

/// A point in time, RFC 3339 in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp(pub Millis);

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&clock::to_rfc3339(self.0))
    }
}

/// Millionths of a US dollar, dollars in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usd(pub i64);

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(dollars(self.0))
    }
}

/// A cost, unless a part of it is not known.
pub(super) fn known(micros: i64, is_unknown: bool) -> Option<Usd> {
    (!is_unknown).then_some(Usd(micros))
}

/// A time span in milliseconds, hours in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours(pub Millis);

impl Serialize for Hours {
    #[expect(clippy::cast_precision_loss, reason = "time spans are far below 2^53 milliseconds")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 3_600_000.0)
    }
}
