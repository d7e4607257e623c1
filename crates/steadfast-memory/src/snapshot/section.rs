//! A section of a snapshot: a list of items, of which as many are shown as there is room for.

use strum::{Display, EnumIter};

use super::item::attribute;
use steadfast_model::text;

/// The sections in the order in which they are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Display, EnumIter)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Kind {
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

impl Kind {
    /// The sections that share what room is left, the most valuable first: what the user laid down, what is broken,
    /// where work went on, and then what can be looked up elsewhere.
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

pub(super) struct Section {
    pub(super) kind: Kind,
    /// Not escaped. Oldest first, of which the newest are shown; tasks are in their order, of which the first are.
    pub(super) items: Vec<String>,
    /// How many there are, those beyond [`Kind::most`] too.
    pub(super) total: usize,
}

impl Section {
    /// The section with so many items; nothing without any.
    pub(super) fn render(&self, shown: usize) -> String {
        if shown == 0 {
            return String::new();
        }
        let from = if self.kind == Kind::TaskState { 0 } else { self.items.len().saturating_sub(shown) };
        let lines: String = self.items.iter().skip(from).take(shown).map(|item| self.line(item)).collect();
        if self.kind == Kind::Intent {
            return lines;
        }
        format!("<{kind} count=\"{}\">\n{lines}</{kind}>\n", self.total, kind = self.kind)
    }

    fn line(&self, item: &str) -> String {
        match self.kind {
            Kind::Intent => format!("<intent mode=\"{}\"/>\n", attribute(item)),
            Kind::RecentUserMessages => format!("<message>{}</message>\n", text::escape_xml(item)),
            _ => format!("- {}\n", text::escape_xml(item)),
        }
    }
}
