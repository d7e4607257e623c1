//! One span, and the attributes that goals and runs share. The names that begin with `gen_ai.` are OpenTelemetry's
//! semantic conventions for generative AI.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use steadfast_model::clock::Millis;
use steadfast_model::host::Host;
use steadfast_model::price::dollars;
use steadfast_model::reading::Tokens;
use steadfast_model::text;

use crate::metrics::otlp::{AnyValue, attribute, nanos};

/// `SPAN_KIND_INTERNAL`
const INTERNAL: i32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanStatus {
    Unset = 0,
    Ok = 1,
    Error = 2,
}

pub(super) struct TraceSpan {
    trace_id: String,
    own_id: String,
    parent: Option<String>,
    name: String,
    start_ms: Millis,
    end_ms: Millis,
    pub(super) status: SpanStatus,
    attributes: Vec<Value>,
    events: Vec<Value>,
}

/// The first bytes of a hash as hexadecimal digits.
fn id(parts: &[&str], bytes: usize) -> String {
    let hash = Sha256::digest(parts.join("\0"));
    text::hex(hash.get(..bytes).unwrap_or_default())
}

impl TraceSpan {
    /// The span of a goal or run.
    pub(super) fn root(key: &str, name: &str, start_ms: Millis, end_ms: Millis) -> Self {
        Self {
            trace_id: id(&["trace", key], 16),
            own_id: id(&["root", key], 8),
            parent: None,
            name: name.to_owned(),
            start_ms,
            // Of two clocks one may have been set back.
            end_ms: end_ms.max(start_ms),
            status: SpanStatus::Unset,
            attributes: Vec::new(),
            events: Vec::new(),
        }
    }

    /// A part of it, with an id that is its own in the trace.
    pub(super) fn child(key: &str, own: &str, name: &str, start_ms: Millis, end_ms: Millis) -> Self {
        let root = Self::root(key, name, start_ms, end_ms);
        Self { own_id: id(&["child", key, own], 8), parent: Some(root.own_id), ..root }
    }

    pub(super) fn with(&mut self, key: &str, value: impl Into<AnyValue>) -> &mut Self {
        self.attributes.push(attribute(key, value));
        self
    }

    pub(super) fn with_some(&mut self, key: &str, value: Option<impl Into<AnyValue>>) -> &mut Self {
        if let Some(value) = value {
            self.with(key, value);
        }
        self
    }

    /// The agent that works, and whose model it asks.
    pub(super) fn with_agent(&mut self, host: Host) -> &mut Self {
        let facts = host.capabilities();
        self.with("gen_ai.agent.name", facts.product)
            .with("gen_ai.provider.name", facts.provider)
            .with("gen_ai.system", facts.provider)
    }

    /// Input tokens are all kinds together, as the convention asks.
    pub(super) fn with_tokens(&mut self, tokens: &Tokens) -> &mut Self {
        let input = tokens.input.saturating_add(tokens.cache_creation).saturating_add(tokens.cache_read);
        self.with("gen_ai.usage.input_tokens", input)
            .with("gen_ai.usage.output_tokens", tokens.output)
            .with("gen_ai.usage.cache_creation.input_tokens", tokens.cache_creation)
            .with("gen_ai.usage.cache_read.input_tokens", tokens.cache_read)
    }

    /// Left out if a part of the cost is unknown.
    pub(super) fn with_cost(&mut self, micros: Option<i64>) -> &mut Self {
        self.with_some("steadfast.cost_usd", micros.map(dollars))
    }

    pub(super) fn add_event(&mut self, name: &str, at: Millis) {
        self.events.push(json!({"timeUnixNano": nanos(at), "name": name}));
    }

    pub(super) fn into_json(self) -> Value {
        let mut span = json!({
            "traceId": self.trace_id, "spanId": self.own_id, "name": self.name, "kind": INTERNAL,
            "startTimeUnixNano": nanos(self.start_ms), "endTimeUnixNano": nanos(self.end_ms),
            "attributes": self.attributes, "events": self.events, "status": {"code": self.status as i32},
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = json!(parent);
        }
        span
    }
}
