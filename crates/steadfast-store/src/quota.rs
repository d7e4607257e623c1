//! How much of the user's plan is used, as clients last reported it.

use rusqlite::params;

use steadfast_model::clock::{self, Millis};
use steadfast_model::host::Host;
use steadfast_model::quota::Quota;

use crate::column::word;
use crate::{Db, StoreError};

/// A window whose reset moved by less is the same one: some clients count in seconds from now.
const SAME_RESET: Millis = 120_000;

impl Db<'_> {
    /// The windows of a host's plan.
    pub fn quotas(self, host: Host) -> Result<Vec<Quota>, StoreError> {
        let sql = "SELECT * FROM plan_usage WHERE host = ?1 ORDER BY window";
        self.all(sql, [<&str>::from(host)], |row| {
            let used_percent: f64 = row.get("used_percent")?;
            #[expect(clippy::cast_possible_truncation, reason = "it is a percentage")]
            let used_percent = used_percent as i64;
            Ok(Quota {
                window: word(row, "window")?,
                used_percent,
                resets_at_ms: row.get("resets_at_ms")?,
                seen_at_ms: row.get("seen_at_ms")?,
            })
        })
    }

    /// Those of the reported windows that differ from what is stored, or whose number would soon be old.
    pub fn news_of_quota(self, host: Host, reported: &[Quota]) -> Result<Vec<Quota>, StoreError> {
        const REFRESH: Millis = 3_600_000;
        if reported.is_empty() {
            return Ok(Vec::new());
        }
        let stored = self.quotas(host)?;
        let is_new = |quota: &&Quota| {
            let known = stored.iter().find(|known| known.window == quota.window);
            known.is_none_or(|known| {
                quota.seen_at_ms >= known.seen_at_ms
                    && (known.used_percent != quota.used_percent
                        || !same_reset(known.resets_at_ms, quota.resets_at_ms)
                        || quota.seen_at_ms - known.seen_at_ms > REFRESH)
            })
        };
        Ok(reported.iter().filter(is_new).copied().collect())
    }

    pub fn put_quota(self, host: Host, quota: &Quota) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO plan_usage (host, window, used_percent, resets_at_ms, seen_at_ms) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (host, window) DO UPDATE SET used_percent = excluded.used_percent,
               resets_at_ms = excluded.resets_at_ms, seen_at_ms = excluded.seen_at_ms",
            params![
                <&str>::from(host),
                <&str>::from(quota.window),
                quota.used_percent,
                quota.resets_at_ms,
                quota.seen_at_ms
            ],
        )?;
        Ok(())
    }

    /// Whether the user was warned about a window since its last reset.
    pub fn is_quota_warned(self, host: Host, quota: &Quota) -> Result<bool, StoreError> {
        let sql = "SELECT warned_reset_ms FROM plan_usage WHERE host = ?1 AND window = ?2";
        let values = [<&str>::from(host), <&str>::from(quota.window)];
        let warned: Option<Millis> = self.first(sql, values, |row| row.get(0))?.flatten();
        Ok(warned.is_some() && same_reset(warned, Some(warning_of(quota))))
    }

    /// Notes that the user is warned about a window.
    pub fn note_quota_warning(self, host: Host, quota: &Quota) -> Result<(), StoreError> {
        let sql = "UPDATE plan_usage SET warned_reset_ms = ?3 WHERE host = ?1 AND window = ?2";
        self.execute(sql, params![<&str>::from(host), <&str>::from(quota.window), warning_of(quota)])?;
        Ok(())
    }
}

/// The reset by which a warning is remembered. Without one, the user is warned once a day.
fn warning_of(quota: &Quota) -> Millis {
    quota.resets_at_ms.unwrap_or_else(|| clock::day_start(quota.seen_at_ms))
}

fn same_reset(one: Option<Millis>, other: Option<Millis>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => (one - other).abs() <= SAME_RESET,
        (None, None) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use steadfast_model::quota::Window;

    use super::*;
    use crate::testing::{HOUR, START, World};

    #[test]
    fn only_news_is_written_and_each_window_is_warned_about_once() {
        let mut world = World::new();
        let quota = |used_percent, reset, seen| Quota {
            window: Window::FiveHour,
            used_percent,
            resets_at_ms: Some(START + reset),
            seen_at_ms: START + seen,
        };
        let first = quota(80, HOUR, 0);
        world.store.write(|db| db.put_quota(Host::Claude, &first)).unwrap();
        assert_eq!(world.store.read().quotas(Host::Claude).unwrap(), [first]);
        assert_eq!(world.store.read().quotas(Host::Codex).unwrap(), []);
        for (reported, is_news) in [
            (quota(80, HOUR, 1), false),
            (quota(80, HOUR + 1_000, 1), false),
            (quota(81, HOUR, 1), true),
            (quota(81, HOUR, -1), false),
            (quota(80, 6 * HOUR, 1), true),
            (quota(80, HOUR, 2 * HOUR), true),
            (Quota { window: Window::Weekly, ..first }, true),
        ] {
            let news = world.store.read().news_of_quota(Host::Claude, &[reported]).unwrap();
            assert_eq!(!news.is_empty(), is_news, "{reported:?}");
        }
        let warned = |world: &World, quota: &Quota| world.store.read().is_quota_warned(Host::Claude, quota).unwrap();
        assert!(!warned(&world, &first));
        world.store.write(|db| db.note_quota_warning(Host::Claude, &first)).unwrap();
        assert!(warned(&world, &first) && warned(&world, &quota(95, HOUR + 1_000, 5)));
        assert!(!warned(&world, &quota(80, 6 * HOUR, 2 * HOUR)), "the next window");
    }
}
