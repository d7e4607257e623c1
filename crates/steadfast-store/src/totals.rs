//! Sums over everything the store knows, for metrics: they never decrease when old details are deleted.

use std::collections::BTreeMap;

use rusqlite::Row;

use crate::{Db, StoreError};
use steadfast_model::clock::{self, Millis};
use steadfast_model::reading::Tokens;

/// What one model used on one host since the store began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageTotal {
    /// A host's name, or `run` for the agents of runs, whose tokens are not split by model.
    pub host: String,
    /// Empty for agents of runs.
    pub model: String,
    /// The day of the first response, which deleting details does not change.
    pub first_day: String,
    pub responses: i64,
    pub tokens: Tokens,
    /// The part with a known price.
    pub cost_micros: i64,
    pub unpriced_tokens: i64,
}

/// How many goals or runs there are of one sort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusCount {
    /// The host of goals, the kind of runs.
    pub sort: String,
    pub status: String,
    pub count: i64,
}

/// A response of a goal, as far as a trace needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalResponse {
    pub at_ms: Millis,
    pub model: String,
    pub tokens: Tokens,
    /// `None` if the model has no known price.
    pub cost_micros: Option<i64>,
}

/// The ledger and the attempts of runs, then what was deleted of both.
const SUMS: &str = "SELECT host, model, min(at_ms), '', count(*), sum(input_tokens), sum(output_tokens),
        sum(cache_creation_tokens), sum(cache_creation_1h_tokens), sum(cache_read_tokens),
        sum(coalesce(cost_micros, 0)), sum(iif(cost_micros IS NULL,
          input_tokens + output_tokens + cache_creation_tokens + cache_read_tokens, 0))
      FROM responses GROUP BY host, model
    UNION ALL
    SELECT 'run', '', min(coalesce(ended_at_ms, started_at_ms)), '', count(*), sum(input_tokens), sum(output_tokens),
        sum(cache_creation_tokens), 0, sum(cache_read_tokens), sum(iif(cost_unknown, 0, cost_micros)),
        sum(iif(cost_unknown, input_tokens + output_tokens + cache_creation_tokens + cache_read_tokens, 0))
      FROM run_attempts HAVING count(*) > 0
    UNION ALL
    SELECT host, model, NULL, min(day), sum(responses), sum(input_tokens), sum(output_tokens),
        sum(cache_creation_tokens), sum(cache_creation_1h_tokens), sum(cache_read_tokens), sum(cost_micros),
        sum(unpriced_tokens)
      FROM usage_days GROUP BY host, model";

fn read(row: &Row<'_>) -> rusqlite::Result<UsageTotal> {
    let first: Option<Millis> = row.get(2)?;
    Ok(UsageTotal {
        host: row.get(0)?,
        model: row.get(1)?,
        first_day: first.map_or_else(|| row.get(3), |at| Ok(clock::local_day(at)))?,
        responses: row.get(4)?,
        tokens: Tokens {
            input: row.get(5)?,
            output: row.get(6)?,
            cache_creation: row.get(7)?,
            cache_creation_1h: row.get(8)?,
            cache_read: row.get(9)?,
        },
        cost_micros: row.get(10)?,
        unpriced_tokens: row.get(11)?,
    })
}

impl Db<'_> {
    /// What each model used on each host, the one that was used first of all first.
    pub fn usage_totals(self) -> Result<Vec<UsageTotal>, StoreError> {
        let mut totals = BTreeMap::<(String, String), UsageTotal>::new();
        for part in self.all(SUMS, [], read)? {
            let key = (part.host.clone(), part.model.clone());
            let Some(total) = totals.get_mut(&key) else {
                totals.insert(key, part);
                continue;
            };
            total.first_day = part.first_day.min(std::mem::take(&mut total.first_day));
            total.responses += part.responses;
            total.tokens += part.tokens;
            total.cost_micros += part.cost_micros;
            total.unpriced_tokens += part.unpriced_tokens;
        }
        let mut totals: Vec<UsageTotal> = totals.into_values().collect();
        // Models of the same day stay in the order of their names.
        totals.sort_by(|one, other| one.first_day.cmp(&other.first_day));
        Ok(totals)
    }

    /// Goals by host and status. One that another goal replaced before its end counts as `replaced`.
    pub fn goals_by_status(self) -> Result<Vec<StatusCount>, StoreError> {
        self.counts(
            "SELECT host, status, count(*) FROM (SELECT host, status FROM goals UNION ALL
               SELECT host, iif(status IN ('complete', 'abandoned'), status, 'replaced') FROM goal_history)
             GROUP BY host, status ORDER BY host, status",
        )
    }

    /// Runs by kind and status.
    pub fn runs_by_status(self) -> Result<Vec<StatusCount>, StoreError> {
        self.counts("SELECT kind, status, count(*) FROM runs GROUP BY kind, status ORDER BY kind, status")
    }

    fn counts(self, sql: &str) -> Result<Vec<StatusCount>, StoreError> {
        self.all(sql, [], |row| Ok(StatusCount { sort: row.get(0)?, status: row.get(1)?, count: row.get(2)? }))
    }

    /// The committed iterations of a run, over all its stages.
    pub fn committed_iterations(self, run_id: &str) -> Result<i64, StoreError> {
        let sql = "SELECT coalesce(sum(iterations), 0) FROM run_stages WHERE run_id = ?1";
        Ok(self.first(sql, [run_id], |row| row.get(0))?.unwrap_or(0))
    }

    /// The responses that a goal was charged for, in the order of their time.
    pub fn responses_of_goal(self, goal_id: &str) -> Result<Vec<GoalResponse>, StoreError> {
        let sql = "SELECT at_ms, model, input_tokens, output_tokens, cache_creation_tokens, cache_creation_1h_tokens,
                     cache_read_tokens, cost_micros FROM responses WHERE goal_id = ?1 ORDER BY at_ms, response_id";
        self.all(sql, [goal_id], |row| {
            let tokens = Tokens {
                input: row.get(2)?,
                output: row.get(3)?,
                cache_creation: row.get(4)?,
                cache_creation_1h: row.get(5)?,
                cache_read: row.get(6)?,
            };
            Ok(GoalResponse { at_ms: row.get(0)?, model: row.get(1)?, tokens, cost_micros: row.get(7)? })
        })
    }

    /// Runs that are over and changed since a moment, oldest first.
    pub fn run_ids_over_since(self, since: Millis) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT run_id FROM runs WHERE status <> 'running' AND updated_at_ms >= ?1 ORDER BY updated_at_ms";
        self.all(sql, [since], |row| row.get(0))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use steadfast_model::host::Host;
    use steadfast_model::reading::{Reading, Response};
    use steadfast_system::config::RetentionConfig;

    use super::*;
    use crate::testing::{HOUR, START, World};
    use crate::{Keep, Source};

    fn spend(world: &mut World, id: &str, model: &str, tokens: i64, at_ms: Millis) {
        let mut reading = Reading::default();
        let tokens = Tokens { input: tokens, output: 1, cache_creation: 2, cache_creation_1h: 1, cache_read: 3 };
        reading.add(Response { id: id.into(), model: model.into(), tokens, at_ms, ..Response::default() });
        let source =
            Source { host: Host::Claude, session_id: "s", agent_id: "", agent_type: "", path: Path::new("/t.jsonl") };
        world.store.write(|db| db.record(source, &reading, None, at_ms)).unwrap();
    }

    #[test]
    fn sums_stay_when_their_details_are_deleted() {
        let mut world = World::new();
        assert_eq!(world.store.read().usage_totals().unwrap(), []);
        let day = 24 * HOUR;
        spend(&mut world, "r1", "claude-opus-4-8", 100, START - 40 * day);
        spend(&mut world, "r2", "claude-opus-4-8", 10, START);
        spend(&mut world, "r3", "a-model-without-price", 1_000, START - 39 * day);
        let totals = world.store.read().usage_totals().unwrap();
        let summary: Vec<_> = totals.iter().map(|t| (t.model.as_str(), t.responses, t.tokens.input)).collect();
        assert_eq!(summary, [("claude-opus-4-8", 2, 110), ("a-model-without-price", 1, 1_000)]);
        assert!(totals[0].cost_micros > 0 && totals[0].unpriced_tokens == 0, "{totals:?}");
        assert_eq!((totals[1].cost_micros, totals[1].unpriced_tokens), (0, 1_006));

        let details = RetentionConfig { ledger_days: 20, ..RetentionConfig::default() };
        world.store.upkeep_all(&Keep { details: &details, memory_days: 30 }, START).unwrap();
        assert_eq!(world.count("SELECT count(*) FROM responses"), 1, "the old ones are deleted");
        assert_eq!(world.store.read().usage_totals().unwrap(), totals);
    }

    #[test]
    fn attempts_of_runs_are_a_host_of_their_own_also_when_they_are_deleted() {
        let mut world = World::new();
        world
            .store
            .write(|db| {
                db.execute(
                    "INSERT INTO run_attempts (run_id, stage, iteration, attempt, status, input_tokens, output_tokens,
                       cost_micros, cost_unknown, started_at_ms, ended_at_ms)
                     VALUES ('r', 1, 1, 1, 'succeeded', 70, 5, 9000, 0, ?1, ?1),
                            ('r', 1, 2, 1, 'succeeded', 8, 0, 0, 1, ?1, ?1)",
                    [START],
                )
            })
            .unwrap();
        let totals = world.store.read().usage_totals().unwrap();
        assert_eq!((totals.len(), totals[0].host.as_str(), totals[0].responses), (1, "run", 2));
        assert_eq!((totals[0].tokens.input, totals[0].cost_micros, totals[0].unpriced_tokens), (78, 9_000, 8));
    }
}
