//! Runs on the fleet, as `steadfast fleet list --json` prints them.

use serde::{Deserialize, Serialize};

/// Live runs that are shown.
const LIVE_SHOWN: usize = 40;
/// Runs that ended.
const ENDED_SHOWN: usize = 5;

/// The fleet on the first page.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FleetCard {
    /// Live ones first, then the newest that ended.
    pub runs: Vec<FleetRun>,
    /// Live runs that are not shown.
    pub left_out: usize,
    /// Why the list may be old.
    pub trouble: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FleetRun {
    pub name: String,
    pub kind: String,
    #[serde(rename = "type")]
    pub title: String,
    pub status: String,
    pub reason: Option<String>,
    pub iteration: u32,
    pub max_iterations: u32,
    pub tokens: Option<i64>,
    pub cost_usd: Option<f64>,
    pub started_at: String,
    pub completed_at: Option<String>,
    pub project: String,
    pub live: bool,
}

#[derive(Deserialize)]
struct List {
    runs: Vec<FleetRun>,
}

impl FleetCard {
    /// Reads the list; `None` if it is none.
    pub fn parse(json: &[u8]) -> Option<Self> {
        let List { runs } = serde_json::from_slice(json).ok()?;
        let (live, ended): (Vec<FleetRun>, Vec<FleetRun>) = runs.into_iter().partition(|run| run.live);
        let left_out = live.len().saturating_sub(LIVE_SHOWN);
        let runs = live.into_iter().take(LIVE_SHOWN).chain(ended.into_iter().take(ENDED_SHOWN)).collect();
        Some(Self { runs, left_out, trouble: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_runs_come_first_and_few_that_ended_follow() {
        let run =
            |number: usize, live: bool| format!(r#"{{"name":"r{number}","status":"x","live":{live},"new_field":1}}"#);
        let runs: Vec<String> = (0..60).map(|number| run(number, number % 6 != 0)).collect();
        let card =
            FleetCard::parse(format!(r#"{{"runs":[{}],"appointments":[]}}"#, runs.join(",")).as_bytes()).unwrap();
        assert_eq!((card.runs.len(), card.left_out), (LIVE_SHOWN + ENDED_SHOWN, 10));
        assert!(card.runs[..LIVE_SHOWN].iter().all(|run| run.live) && !card.runs[LIVE_SHOWN].live);
        assert_eq!(FleetCard::parse(b"{}"), None);
    }
}
