//! A section of a snapshot: a list of items, of which as many are shown as there is room for.

use strum::{Display, EnumIter};

use super::item::attribute;
use steadfast_model::text;

/// The sections in the order of the snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display, EnumIter)]
#[strum(serialize_all = "snake_case")]
pub(super) enum SectionKind {
    Files,
    Errors,
    Fixes,
    Decisions,
    Rules,
    Git,
    TaskState,
    Environment,
    Subagents,
    Skills,
    Intent,
    RecentUserMessages,
}

impl SectionKind {
    /// The sections that share the remaining room, the most valuable first: what the user required, what is broken,
    /// where work happened, and last what can be looked up elsewhere.
    pub(super) const VALUE: [Self; 10] = [
        Self::Intent,
        Self::Rules,
        Self::Decisions,
        Self::Errors,
        Self::Files,
        Self::Environment,
        Self::Git,
        Self::Fixes,
        Self::Subagents,
        Self::Skills,
    ];

    /// The most items that are shown, however much room there is.
    pub(super) fn most(self) -> usize {
        match self {
            Self::Intent => 1,
            Self::RecentUserMessages => 3,
            Self::Environment => 4,
            Self::Fixes | Self::Subagents => 6,
            Self::Errors | Self::Decisions | Self::Rules | Self::Git => 8,
            Self::Files | Self::Skills => 12,
            Self::TaskState => 20,
        }
    }
}

pub(super) struct SnapshotSection {
    pub(super) kind: SectionKind,
    /// Not escaped. Oldest first, of which the newest are shown; tasks are in their order, of which the first are.
    pub(super) items: Vec<String>,
    /// How many there are, including those beyond [`SectionKind::most`].
    pub(super) total: usize,
}

impl SnapshotSection {
    /// The section with `shown` items; empty without any.
    pub(super) fn render(&self, shown: usize) -> String {
        if shown == 0 {
            return String::new();
        }
        let from = if self.kind == SectionKind::TaskState { 0 } else { self.items.len().saturating_sub(shown) };
        let lines: String = self.items.iter().skip(from).take(shown).map(|item| self.line(item)).collect();
        if self.kind == SectionKind::Intent {
            return lines;
        }
        format!("<{kind} count=\"{}\">\n{lines}</{kind}>\n", self.total, kind = self.kind)
    }

    fn line(&self, item: &str) -> String {
        match self.kind {
            SectionKind::Intent => format!("<intent mode=\"{}\"/>\n", attribute(item)),
            SectionKind::RecentUserMessages => format!("<message>{}</message>\n", text::escape_xml(item)),
            _ => format!("- {}\n", text::escape_xml(item)),
        }
    }
}
