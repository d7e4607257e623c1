//! What was spent, against the caps of the configuration, and which of them the user was told about.

use rusqlite::{Row, params};
use strum::IntoEnumIterator as _;

use steadfast_model::clock::{DAY, Millis};
use steadfast_model::limit::{Cap, CapScope, CapStanding, Period, Spend};
use steadfast_model::run::AttemptId;

use crate::{Db, Store, StoreError};

/// Notices of older periods are of no use.
const NOTICES_KEPT: Millis = 60 * DAY;

/// Whose caps of a session count.
#[derive(Debug, Clone, Copy)]
pub enum Spender<'a> {
    Session(&'a str),
    /// A run counts as one session. What it spent includes an attempt that is not in the store yet.
    Run {
        spent: Spend,
        unsaved: Spend,
    },
}

/// The caps that are near or reached. Without caps the time zone, which is slow to find, is not needed.
pub fn standings(db: Db<'_>, caps: &[Cap], spender: Spender<'_>, now: Millis) -> Result<Vec<CapStanding>, StoreError> {
    let mut near = Vec::new();
    let mut counted: Option<(&CapScope, Millis, Spend)> = None;
    for cap in caps {
        let (from, spent) = match counted {
            // Tokens and money of a scope are one sum.
            Some((scope, from, spent)) if *scope == cap.scope => (from, spent),
            _ => {
                let from = db.cap_start(cap, now)?;
                (from, spent_within(db, cap, spender, from)?)
            }
        };
        counted = Some((&cap.scope, from, spent));
        let standing = cap.standing(spent, from);
        if standing.standing.is_near() {
            near.push(standing);
        }
    }
    Ok(near)
}

/// What everything on the machine spent of a cap of a day or week, as an engine that is about to start an agent sees it.
pub fn of_machine(db: Db<'_>, cap: &Cap, now: Millis) -> Result<Spend, StoreError> {
    let unsaved = Spend { tokens: 0, cost_micros: 0 };
    spent_within(db, cap, Spender::Run { spent: unsaved, unsaved }, db.cap_start(cap, now)?)
}

fn spent_within(db: Db<'_>, cap: &Cap, spender: Spender<'_>, from: Millis) -> Result<Spend, StoreError> {
    Ok(match (&cap.scope, spender) {
        (CapScope::Machine(_), Spender::Session(_)) => db.spent_since(from)?,
        (CapScope::Machine(_), Spender::Run { unsaved, .. }) => {
            let spent = db.spent_since(from)?;
            Spend {
                tokens: spent.tokens.saturating_add(unsaved.tokens),
                cost_micros: spent.cost_micros.saturating_add(unsaved.cost_micros),
            }
        }
        (CapScope::Model(model, _), _) => db.spent_on_model(model, from)?,
        (CapScope::Session, Spender::Session(id)) => db.spent_by_session(id)?,
        (CapScope::Session, Spender::Run { spent, .. }) => spent,
    })
}

fn read(row: &Row<'_>) -> rusqlite::Result<Spend> {
    Ok(Spend { tokens: row.get(0)?, cost_micros: row.get(1)? })
}

/// Records that the day and the week have begun of which caps speak. Writes only in the first call of each.
pub fn keep_periods(store: &mut Store, caps: &[Cap], now: Millis) -> Result<(), StoreError> {
    if store.read().periods_to_keep(caps, now)?.is_empty() {
        return Ok(());
    }
    store.write(|db| db.keep_periods(caps, now))
}

impl Db<'_> {
    /// The moment from which a cap counts. A day that has begun lasts: a clock that is set forward, or another time zone,
    /// begins no new one before its time.
    pub fn cap_start(self, cap: &Cap, now: Millis) -> Result<Millis, StoreError> {
        cap.period().map_or(Ok(0), |period| self.period_start(period, now))
    }

    fn period_start(self, period: Period, now: Millis) -> Result<Millis, StoreError> {
        let kept = self.kept_start(period, now)?;
        Ok(match kept {
            Some(kept) if now - kept < period.shortest() => kept,
            Some(kept) => period.start(now).max(kept),
            None => period.start(now),
        })
    }

    fn kept_start(self, period: Period, now: Millis) -> Result<Option<Millis>, StoreError> {
        let sql = "SELECT max(from_ms) FROM cap_notices WHERE cap = ?1 AND session_id = '' AND from_ms <= ?2";
        Ok(self.first(sql, params![<&str>::from(period), now], |row| row.get(0))?.flatten())
    }

    /// The periods of these caps whose beginning is not recorded.
    fn periods_to_keep(self, caps: &[Cap], now: Millis) -> Result<Vec<(Period, Millis)>, StoreError> {
        let mut found = Vec::new();
        for period in Period::iter().filter(|period| caps.iter().any(|cap| cap.period() == Some(*period))) {
            let start = self.period_start(period, now)?;
            if self.kept_start(period, now)? != Some(start) {
                found.push((period, start));
            }
        }
        Ok(found)
    }

    /// The same as [`keep_periods`] in a transaction. The rows are beside the notices, under the name of the period.
    pub fn keep_periods(self, caps: &[Cap], now: Millis) -> Result<(), StoreError> {
        let sql = "INSERT OR IGNORE INTO cap_notices (cap, session_id, from_ms, most, reached, told_at_ms)
                   VALUES (?1, '', ?2, 0, 0, ?3)";
        for (period, start) in self.periods_to_keep(caps, now)? {
            self.execute(sql, params![<&str>::from(period), start, now])?;
        }
        Ok(())
    }

    /// What everything on the machine spent since a moment: goals, runs, and sessions without a goal.
    pub fn spent_since(self, from: Millis) -> Result<Spend, StoreError> {
        let sql = "SELECT coalesce(sum(tokens), 0), coalesce(sum(cost_micros), 0) FROM
                     (SELECT input_tokens + cache_creation_tokens + output_tokens AS tokens, cost_micros
                        FROM responses WHERE at_ms >= ?1
                      UNION ALL
                      SELECT input_tokens + cache_creation_tokens + output_tokens, cost_micros
                        FROM run_attempts WHERE ended_at_ms >= ?1)";
        Ok(self.0.prepare_cached(sql)?.query_row([from], read)?)
    }

    /// What the models whose name begins with `prefix` spent since a moment.
    fn spent_on_model(self, prefix: &str, from: Millis) -> Result<Spend, StoreError> {
        let sql = "SELECT coalesce(sum(tokens), 0), coalesce(sum(cost_micros), 0) FROM
                     (SELECT input_tokens + cache_creation_tokens + output_tokens AS tokens, cost_micros
                        FROM responses WHERE at_ms >= ?1 AND substr(model, 1, length(?2)) = ?2
                      UNION ALL
                      SELECT tokens, cost_micros
                        FROM run_models WHERE ended_at_ms >= ?1 AND substr(model, 1, length(?2)) = ?2)";
        Ok(self.0.prepare_cached(sql)?.query_row(params![from, prefix], read)?)
    }

    /// What a session spent in its whole life.
    pub(crate) fn spent_by_session(self, session_id: &str) -> Result<Spend, StoreError> {
        let sql = "SELECT coalesce(sum(tokens), 0), coalesce(sum(cost_micros), 0) FROM
                     (SELECT input_tokens + cache_creation_tokens + output_tokens AS tokens, cost_micros
                        FROM responses WHERE session_id = ?1
                      UNION ALL SELECT tokens, cost_micros FROM session_sums WHERE session_id = ?1)";
        Ok(self.0.prepare_cached(sql)?.query_row([session_id], read)?)
    }

    /// Notes what the models of an attempt used. Harmless when repeated.
    pub fn put_run_models(
        self,
        run_id: &str,
        id: AttemptId,
        models: &[(String, Spend)],
        ended_at_ms: Millis,
    ) -> Result<(), StoreError> {
        let sql = "INSERT OR REPLACE INTO run_models (run_id, stage, iteration, attempt, model, tokens, cost_micros,
                     ended_at_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let AttemptId { stage, iteration, attempt } = id;
        for (model, spent) in models {
            let (tokens, cost) = (spent.tokens, spent.cost_micros);
            self.execute(sql, params![run_id, stage, iteration, attempt, model, tokens, cost, ended_at_ms])?;
        }
        Ok(())
    }

    /// Notes that the user is told about a cap. Returns `false` if that happened before in this period.
    pub fn note_cap(self, cap: &CapStanding, session_id: &str, now: Millis) -> Result<bool, StoreError> {
        let session_id = if cap.cap.scope == CapScope::Session { session_id } else { "" };
        let sql = "INSERT OR IGNORE INTO cap_notices (cap, session_id, from_ms, most, reached, told_at_ms)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let values = params![cap.cap.name(), session_id, cap.from_ms, cap.cap.most, cap.standing.is_reached(), now];
        let is_new = self.execute(sql, values)? == 1;
        if is_new {
            self.execute("DELETE FROM cap_notices WHERE told_at_ms < ?1", [self.aged_now(now)? - NOTICES_KEPT])?;
        }
        Ok(is_new)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use steadfast_model::host::Host;
    use steadfast_model::limit::{Axis, SharedSpend};
    use steadfast_model::reading::{Reading, Response, Tokens};

    use super::*;
    use crate::Source;
    use crate::testing::{HOUR, SESSION, START, World};

    fn spend(world: &mut World, session_id: &str, id: &str, model: &str, tokens: i64, at_ms: Millis) {
        let mut reading = Reading::default();
        let tokens = Tokens { input: tokens, ..Tokens::default() };
        reading.add(Response { id: id.into(), model: model.into(), tokens, at_ms, ..Response::default() });
        let source =
            Source { host: Host::Claude, session_id, agent_id: "", agent_type: "", path: Path::new("/t.jsonl") };
        world.store.write(|db| db.record(source, &reading, None, at_ms)).unwrap();
    }

    fn cap(scope: CapScope, most: i64) -> Cap {
        Cap { scope, axis: Axis::Tokens, most }
    }

    #[test]
    fn each_cap_counts_its_own_scope() {
        let mut world = World::new();
        spend(&mut world, SESSION, "r1", "claude-opus-4-8", 100, START);
        spend(&mut world, SESSION, "r2", "claude-haiku-4-5", 10, START + 1);
        spend(&mut world, "other", "r3", "claude-opus-4-8", 1_000, START + 2);
        spend(&mut world, "other", "r4", "claude-opus-4-8", 50_000, START - 14 * 24 * HOUR);
        let now = START + 3;
        let attempt = AttemptId { stage: 1, iteration: 1, attempt: 1 };
        let models = [("gpt-5.2-codex".to_owned(), Spend { tokens: 70, cost_micros: 0 })];
        for _ in 0..2 {
            world.store.write(|db| db.put_run_models("run", attempt, &models, now)).unwrap();
        }
        for (scope, spent) in [
            (CapScope::Model("gpt-5".into(), Period::Daily), 70),
            (CapScope::Machine(Period::Daily), 1_110),
            (CapScope::Machine(Period::Weekly), 1_110),
            (CapScope::Model("claude-opus".into(), Period::Daily), 1_100),
            (CapScope::Model("claude-haiku-4-5".into(), Period::Daily), 10),
            (CapScope::Model("opus".into(), Period::Daily), 0),
            (CapScope::Session, 110),
        ] {
            let spender = Spender::Session(SESSION);
            let at = |most| standings(world.store.read(), &[cap(scope.clone(), most)], spender, now).unwrap();
            assert_eq!(at(spent * 2 + 1), [], "{scope:?}");
            if spent > 0 {
                assert_eq!(at(spent)[0].standing.used, spent, "{scope:?}");
            }
        }
    }

    #[test]
    fn a_run_counts_as_one_session_with_what_is_not_saved_yet() {
        let world = World::new();
        let spender =
            Spender::Run { spent: Spend { tokens: 90, cost_micros: 0 }, unsaved: Spend { tokens: 40, cost_micros: 0 } };
        let level =
            |scope, most| SharedSpend::of(&standings(world.store.read(), &[cap(scope, most)], spender, START).unwrap());
        assert_eq!(level(CapScope::Session, 90), SharedSpend::Reached);
        assert_eq!(level(CapScope::Session, 200), SharedSpend::Free);
        assert_eq!(level(CapScope::Machine(Period::Daily), 40), SharedSpend::Reached);
        assert_eq!(level(CapScope::Machine(Period::Daily), 90), SharedSpend::Free);
    }

    #[test]
    fn the_user_is_told_once_for_each_period_amount_and_level() {
        let mut world = World::new();
        let daily = |used, most, now| {
            let spent = Spend { tokens: used, cost_micros: 0 };
            cap(CapScope::Machine(Period::Daily), most).standing(spent, Period::Daily.start(now))
        };
        let mut tell =
            |standing: &CapStanding, session| world.store.write(|db| db.note_cap(standing, session, START)).unwrap();
        assert!(tell(&daily(80, 100, START), "a"));
        assert!(!tell(&daily(90, 100, START), "b"), "another session of the same day");
        assert!(tell(&daily(100, 100, START), "a"), "reached");
        assert!(tell(&daily(180, 200, START), "a"), "the user raised it");
        assert!(tell(&daily(80, 100, START + 24 * HOUR), "a"), "the next day");
        let own = |used| cap(CapScope::Session, 100).standing(Spend { tokens: used, cost_micros: 0 }, START);
        assert!(tell(&own(80), "a") && tell(&own(80), "b") && !tell(&own(85), "a"));
    }
}
