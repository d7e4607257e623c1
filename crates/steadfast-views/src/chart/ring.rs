//! A ring that fills as a limit is used.

use super::number::float;
use super::svg::{Anchor, Svg};

/// More percent than this are not spelled out.
const MOST_SPELLED: i64 = 999;
/// From here on a limit is near; the same share at which the agent is warned.
const NEAR: i64 = 80;

/// `percent` of what `label` names is used. More than 100 is a full ring with the number.
pub fn ring(percent: i64, label: &str) -> String {
    let percent = percent.max(0);
    let words = if percent > MOST_SPELLED { format!("over {MOST_SPELLED}%") } else { format!("{percent}%") };
    let (class, state) = match percent {
        100.. => ("chart-ring chart-over", "the limit is reached"),
        NEAR.. => ("chart-ring chart-near", "the limit is near"),
        _ => ("chart-ring", "within the limit"),
    };
    let mut svg = Svg::new(class, (64.0, 64.0), &format!("{label}: {words} used"), state);
    let center = (32.0, 32.0);
    svg.arc("chart-ring-track", center, 27.0, 100.0);
    if percent > 0 {
        svg.arc("chart-ring-used", center, 27.0, float(percent.min(100)));
    }
    let shown = if percent > MOST_SPELLED { format!(">{MOST_SPELLED}%") } else { words };
    svg.text("chart-ring-number", (32.0, 37.0), Anchor::Middle, &shown);
    svg.finish()
}
