//! What a reader of a rollout must remember from line to line, and so between two readings: whose file it is,
//! which model answers, and the totals so far.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::text;
use super::wire::{WireTokens, made_at};
use steadfast_model::clock::{self, Millis};
use steadfast_model::reading::Tier;

/// A line that comes this long after the one before was not copied together with it.
const PAUSE_MS: Millis = 500;

/// The type of a subagent whose role is not recorded.
const UNNAMED_SUBAGENT: &str = "subagent";

/// Whether the lines being read were copied from another thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Inherits {
    #[default]
    Nothing,
    /// The client says where the thread's own lines begin.
    UntilOrdinal(u64),
    /// It does not say; the first turn that is younger than the thread is its own.
    UntilOwnTurn,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Thread {
    /// The file's own name, for want of an id.
    #[serde(skip)]
    file: String,
    /// The id in the first `session_meta`; empty before it.
    id: String,
    started_ms: Millis,
    pub(super) model: String,
    pub(super) tier: Tier,
    /// The kind of agent, if the thread is a subagent's.
    pub(super) agent_type: String,
    /// The thread that a subagent works for; empty for other threads.
    parent: String,
    /// The MCP server that the model called since the last response.
    pub(super) tool: String,
    /// The thread began with another one's history, so its totals may begin with that one's.
    forked: bool,
    inherits: Inherits,
    /// A turn of its own has begun.
    worked: bool,
    /// The ids of its turns contain their time.
    dated: bool,
    /// The time of the line before; kept only while it is needed.
    previous_ms: Millis,
    /// The last total seen, and what was said of the last response beside it.
    total: Option<WireTokens>,
    last: Option<WireTokens>,
    /// How often the totals began anew.
    resets: u32,
    /// A `token_usage_record` was read since the last total.
    pub(super) recorded: bool,
    /// The model said or called something since the last total.
    pub(super) answered: bool,
    /// The turn was started by the client's own goal feature.
    pub(super) native_turn: bool,
}

impl Thread {
    /// A thread of which nothing was read yet.
    pub(super) fn unread(path: &Path) -> Self {
        let file = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self { file, ..Self::default() }
    }

    /// What an earlier reading left; `None` if that is nothing, or of another version of this program.
    pub(super) fn remembered(path: &Path, carry: &str) -> Option<Self> {
        let thread: Self = serde_json::from_slice(carry.as_bytes()).ok()?;
        Some(Self { file: Self::unread(path).file, ..thread })
    }

    pub(super) fn carry(&self) -> String {
        let nothing = Self { file: self.file.clone(), ..Self::default() };
        if *self == nothing {
            return String::new();
        }
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What its turns and totals are named after.
    pub(super) fn name(&self) -> &str {
        if self.id.is_empty() { &self.file } else { &self.id }
    }

    pub(super) fn is(&self, id: &str) -> bool {
        self.id.is_empty() || self.id == id
    }

    pub(super) fn is_inheriting(&self) -> bool {
        self.inherits != Inherits::Nothing
    }

    /// Takes notice of a line's place and time, before what it says.
    pub(super) fn reach(&mut self, ordinal: Option<u64>, at: Option<Millis>) {
        match self.inherits {
            Inherits::Nothing => {}
            Inherits::UntilOrdinal(first_own) => {
                if ordinal.is_some_and(|ordinal| ordinal >= first_own) {
                    self.end_inheritance();
                }
            }
            Inherits::UntilOwnTurn => {
                let Some(at) = at else { return };
                // Copied lines are written at once or keep their old times; a user's first prompt comes later.
                let copied_until = self.previous_ms.max(self.started_ms);
                if !self.dated && self.previous_ms > 0 && at >= copied_until + PAUSE_MS {
                    self.end_inheritance();
                } else {
                    self.previous_ms = at;
                }
            }
        }
    }

    /// A `session_meta`: the first is the file's own, one of another thread comes before that one's history.
    pub(super) fn begin(&mut self, meta: &Value, ordinal: Option<u64>, at: Option<Millis>) {
        let Some(id) = text(meta, "id").or_else(|| text(meta, "session_id")) else {
            return;
        };
        if !self.id.is_empty() {
            if self.id != id && !self.worked && !self.is_inheriting() {
                self.forked = true;
                self.inherits = Inherits::UntilOwnTurn;
            }
            return;
        }
        id.clone_into(&mut self.id);
        self.started_ms = made_at(id)
            .or_else(|| text(meta, "timestamp").and_then(clock::parse_wall_rfc3339))
            .or(at)
            .unwrap_or_default();
        self.use_model(text(meta, "model"));
        let spawned = meta.pointer("/source/subagent/thread_spawn");
        self.be_subagent(meta, spawned);
        // With a base, the earlier history is in the parent's file.
        let base = meta.get("history_base").filter(|base| base.is_object());
        self.forked = base.is_some() || text(meta, "forked_from_id").is_some();
        let first_own = meta
            .get("subagent_history_start_ordinal")
            .and_then(Value::as_u64)
            .or_else(|| base?.get("end_ordinal_exclusive")?.as_u64());
        self.inherits = match first_own {
            Some(first_own) if ordinal.is_some() => Inherits::UntilOrdinal(first_own),
            _ if self.forked && base.is_none() => Inherits::UntilOwnTurn,
            // Some clients repeat the parent's totals here without naming a fork.
            None if spawned.is_some() => {
                self.forked = true;
                Inherits::UntilOwnTurn
            }
            _ => Inherits::Nothing,
        };
        self.reach(ordinal, at);
    }

    fn be_subagent(&mut self, meta: &Value, spawned: Option<&Value>) {
        let is_subagent = spawned.is_some()
            || text(meta, "thread_source") == Some("subagent")
            || meta.pointer("/source/subagent").is_some();
        if !is_subagent {
            return;
        }
        let named = |field: &str| spawned.and_then(|spawned| text(spawned, field)).or_else(|| text(meta, field));
        named("agent_role").unwrap_or(UNNAMED_SUBAGENT).clone_into(&mut self.agent_type);
        let root = text(meta, "session_id").filter(|root| *root != self.id);
        root.or_else(|| named("parent_thread_id")).unwrap_or_default().clone_into(&mut self.parent);
    }

    /// The thread that a subagent works for.
    pub(super) fn parent(&self) -> Option<&str> {
        Some(self.parent.as_str()).filter(|parent| !parent.is_empty())
    }

    pub(super) fn use_tool(&mut self, tool: Option<String>) {
        self.tool = tool.unwrap_or(std::mem::take(&mut self.tool));
    }

    pub(super) fn begin_turn(&mut self, turn_id: Option<&str>) {
        let begun = turn_id.and_then(made_at);
        if self.inherits == Inherits::UntilOwnTurn {
            self.dated |= begun.is_some();
            if begun.is_some_and(|begun| begun >= self.started_ms) {
                self.end_inheritance();
            }
        }
        self.worked |= !self.is_inheriting();
    }

    fn end_inheritance(&mut self) {
        self.inherits = Inherits::Nothing;
        self.previous_ms = 0;
        self.answered = false;
        self.recorded = false;
    }

    pub(super) fn use_model(&mut self, model: Option<&str>) {
        if let Some(model) = model {
            model.clone_into(&mut self.model);
        }
    }

    /// Stores a new total and returns the usage since the last one, unless records already counted it.
    pub(super) fn count(&mut self, total: WireTokens, last: Option<WireTokens>) -> Option<WireTokens> {
        let before = self.total.replace(total);
        let known = std::mem::replace(&mut self.last, last);
        let recorded = std::mem::take(&mut self.recorded);
        let answered = std::mem::take(&mut self.answered);
        let grown = total.since(before.unwrap_or_default());
        if grown.is_none() {
            self.resets += 1;
        }
        if recorded || self.is_inheriting() {
            return None;
        }
        let spent = match (grown, last) {
            // The parent's total is in it; what was spent here is what the client says of the last response.
            _ if before.is_none() && self.forked => last.filter(|_| answered).unwrap_or_default(),
            (Some(grown), _) => grown,
            // A total that shrank is another count, from zero or not. Estimates of the context have no tokens of a kind.
            (None, Some(last)) if answered || known != Some(last) => last,
            (None, Some(_)) => return None,
            (None, None) => total,
        };
        (spent != WireTokens::default()).then_some(spent)
    }

    /// The usage of the last response, in files without totals. The client repeats it.
    pub(super) fn count_last(&mut self, last: WireTokens) -> Option<WireTokens> {
        let known = self.last.replace(last);
        let recorded = std::mem::take(&mut self.recorded);
        let answered = std::mem::take(&mut self.answered);
        let is_new = !recorded && !self.is_inheriting() && (answered || known != Some(last));
        (is_new && last != WireTokens::default()).then_some(last)
    }

    /// The name of what was spent up to a total: the same whenever the file, or a copy of it, is read again.
    pub(super) fn id_of_total(&self, total: WireTokens) -> String {
        let WireTokens { input, cached, output, .. } = total;
        format!("{}#{}.{input}.{cached}.{output}", self.name(), self.resets)
    }
}
