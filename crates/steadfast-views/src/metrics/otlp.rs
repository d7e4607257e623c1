//! Metrics as an OTLP request with JSON encoding: the JSON form of Protocol Buffers, in which 64-bit integers are
//! strings, enumerations are numbers and ids are hexadecimal.

use serde_json::{Value, json};
use steadfast_model::clock::{self, Millis};

use super::family::{Family, MetricKind, Sample};

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`: each value counts from its beginning.
const CUMULATIVE: i32 = 2;

/// Who sends.
#[derive(Debug, Clone, Default)]
pub struct Sender {
    /// The name of this machine, by which backends keep the series of several apart.
    pub machine: Option<String>,
}

impl Sender {
    pub(super) fn resource(&self) -> Value {
        let mut attributes = vec![
            attribute("service.name", "steadfast"),
            attribute("service.version", env!("CARGO_PKG_VERSION")),
            attribute("service.instance.id", self.machine.as_deref().unwrap_or("unknown")),
        ];
        attributes.extend(self.machine.as_deref().map(|name| attribute("host.name", name)));
        json!({"attributes": attributes})
    }
}

pub(super) fn scope() -> Value {
    json!({"name": "steadfast", "version": env!("CARGO_PKG_VERSION")})
}

/// A value of an attribute.
pub(super) enum AnyValue {
    Text(String),
    Int(i64),
    Double(f64),
}

impl From<&str> for AnyValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for AnyValue {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<f64> for AnyValue {
    fn from(number: f64) -> Self {
        Self::Double(number)
    }
}

pub(super) fn attribute(key: &str, value: impl Into<AnyValue>) -> Value {
    let value = match value.into() {
        AnyValue::Text(text) => json!({"stringValue": text}),
        AnyValue::Int(number) => json!({"intValue": number.to_string()}),
        AnyValue::Double(number) => json!({"doubleValue": number}),
    };
    json!({"key": key, "value": value})
}

/// A moment as other programs see it, in nanoseconds since 1970.
pub(super) fn nanos(at: Millis) -> String {
    (i128::from(clock::to_wall(at)).max(0) * 1_000_000).to_string()
}

/// The body of a request to `/v1/metrics`. Metrics without a value are left out.
pub fn metrics(families: &[Family], sender: &Sender, now: Millis) -> Value {
    let metrics: Vec<Value> = families.iter().filter(|it| !it.samples.is_empty()).map(|it| metric(it, now)).collect();
    json!({"resourceMetrics": [{
        "resource": sender.resource(),
        "scopeMetrics": [{"scope": scope(), "metrics": metrics}],
    }]})
}

fn metric(family: &Family, now: Millis) -> Value {
    let spec = family.spec;
    let point = |sample: &Sample| {
        let attributes: Vec<Value> =
            spec.labels.iter().zip(&sample.values).map(|(label, value)| attribute(label, value.as_str())).collect();
        let mut point = json!({"attributes": attributes, "timeUnixNano": nanos(now), "asDouble": sample.value});
        if let Some(since) = sample.since_ms {
            point["startTimeUnixNano"] = json!(nanos(since));
        }
        point
    };
    let points: Vec<Value> = family.samples.iter().map(point).collect();
    let mut metric = json!({"name": spec.name, "description": spec.help, "unit": spec.unit});
    match spec.kind {
        MetricKind::Gauge => metric["gauge"] = json!({"dataPoints": points}),
        MetricKind::Counter => {
            metric["sum"] = json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true});
        }
    }
    metric
}
