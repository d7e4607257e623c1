//! All responses of a host, each once, in the smallest sums that a view needs.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::collect::{Details, ResponseRecord};
use steadfast_hosts::tree::TranscriptFile;
use steadfast_model::clock::Millis;
use steadfast_model::price::Table;
use steadfast_model::reading::{Bill, Tokens};

/// Sums are kept for quarters of an hour: days begin on one in every time zone, and blocks begin on an hour.
pub const SLOT_MS: Millis = 15 * 60 * 1000;
/// The slot of responses whose time is not known.
pub const UNDATED: i64 = i64::MIN;

/// A session and the directory it worked in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageSession {
    pub id: String,
    pub project: String,
}

/// The responses of one session, model, tool and kind of agent in one slot; those without a known price have a sum of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    pub slot: i64,
    pub session: u32,
    pub model: u32,
    /// Indexes into `Summary::names`.
    pub tool: u32,
    pub agent: u32,
    pub responses: i64,
    pub tokens: Tokens,
    /// Millionths of a dollar; `None` when the model has no known price.
    pub cost_micros: Option<i64>,
}

/// All responses of a host, in the smallest sums that a view needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Fingerprint of the files, their sizes and times.
    pub(super) listing: u128,
    /// Fingerprint of the price table.
    pub(super) prices: u64,
    pub models: Vec<String>,
    /// Of skills, MCP servers and kinds of subagents.
    pub names: Vec<String>,
    pub sessions: Vec<UsageSession>,
    pub sums: Vec<Sum>,
    /// Files with responses that were left out because a token field is not a number.
    pub malformed_files: u64,
    pub files: u64,
}

/// Adds up all responses, each once even if several files contain it.
pub(super) fn sum_up(files: &[TranscriptFile], details: &Details, prices: &Table) -> Summary {
    let parents: HashMap<&str, &str> = files
        .iter()
        .zip(&details.files)
        .filter(|(_, found)| !found.parent.is_empty())
        .map(|(file, found)| (file.session_id.as_str(), found.parent.as_str()))
        .collect();
    let mut sessions = Vec::new();
    let mut by_session: HashMap<&str, u32> = HashMap::new();
    let most = details.files.iter().map(|file| file.records.len()).sum();
    let mut responses: Vec<(u32, ResponseRecord)> = Vec::with_capacity(most);
    let mut by_id: HashMap<u128, usize> = HashMap::with_capacity(most);
    for (file, found) in files.iter().zip(&details.files) {
        if found.records.is_empty() {
            continue;
        }
        let session_id = root_of(&file.session_id, &parents);
        let is_subagent = file.is_subagent || session_id != file.session_id;
        let session = *by_session.entry(session_id).or_insert_with(|| {
            sessions.push(UsageSession::default());
            u32::try_from(sessions.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(known) = sessions.get_mut(session as usize) {
            // A subagent may work elsewhere than its session.
            if known.id.is_empty() || !is_subagent {
                let project = if found.project.is_empty() { &file.folder } else { &found.project };
                known.project.clone_from(project);
            }
            session_id.clone_into(&mut known.id);
        }
        for record in &found.records {
            let next = responses.len();
            match responses.get_mut(*by_id.entry(record.id).or_insert(next)) {
                Some((_, known)) => known.merge(record),
                None => responses.push((session, *record)),
            }
        }
    }
    Summary {
        prices: prices.fingerprint(),
        models: details.models.clone(),
        names: details.names.clone(),
        sessions,
        sums: add_up(&responses, &details.models, prices),
        malformed_files: details.files.iter().map(|file| u64::from(file.malformed)).sum(),
        files: files.len() as u64,
        ..Summary::default()
    }
}

/// The session at the root of a chain of subagents. A chain that is too long, or a circle, is followed for a while.
fn root_of<'a>(session: &'a str, parents: &HashMap<&'a str, &'a str>) -> &'a str {
    const LONGEST_CHAIN: usize = 16;
    let up = std::iter::successors(Some(session), |session| parents.get(session).copied());
    up.take(LONGEST_CHAIN).last().unwrap_or(session)
}

fn add_up(responses: &[(u32, ResponseRecord)], models: &[String], prices: &Table) -> Vec<Sum> {
    // One model may have a price for short contexts only.
    let mut sums: HashMap<(i64, u32, [u32; 3], bool), Sum> = HashMap::new();
    for (session, record) in responses {
        let slot = match record.at_ms {
            0 => UNDATED,
            at_ms => at_ms.div_euclid(SLOT_MS),
        };
        let model = models.get(record.model as usize).map_or("", String::as_str);
        let cost = prices.cost_micros(&Bill { model, tier: record.tier, tokens: &record.tokens });
        let kinds = [record.model, record.tool, record.agent];
        let sum = sums.entry((slot, *session, kinds, cost.is_some())).or_insert_with(|| Sum {
            slot,
            session: *session,
            model: record.model,
            tool: record.tool,
            agent: record.agent,
            responses: 0,
            tokens: Tokens::default(),
            cost_micros: cost.map(|_| 0),
        });
        sum.responses += 1;
        sum.tokens += record.tokens;
        sum.cost_micros = sum.cost_micros.zip(cost).map(|(sum, cost)| sum + cost);
    }
    let mut sums: Vec<Sum> = sums.into_values().collect();
    sums.sort_unstable_by_key(|sum| {
        (sum.slot, sum.session, [sum.model, sum.tool, sum.agent], sum.cost_micros.is_some())
    });
    sums
}
