//! How many items of each section are shown. The last prompts and the next tasks come first; then every section gets
//! a few items, the most valuable section first; what room is left then goes to the rest, again by value.

use super::section::{Kind, Section};
use steadfast_model::host::Cap;

/// What every section may take before any takes more.
const FAIR_SHARE: usize = 3;
/// Open tasks that come before all that is not pinned.
const PINNED_TASKS: usize = 10;

/// For each section, how many items fit into the room together.
pub(super) fn choose(sections: &[Section], cap: Cap, mut room: usize) -> Vec<usize> {
    let mut shown = vec![0; sections.len()];
    for (kind, wanted) in steps() {
        let Some((section, shown)) = sections.iter().zip(&mut shown).find(|(section, _)| section.kind == kind) else {
            continue;
        };
        let taken = cap.measure(&section.render(*shown));
        for more in (*shown + 1..=wanted.min(section.items.len())).rev() {
            let cost = cap.measure(&section.render(more)).saturating_sub(taken);
            if cost <= room {
                room -= cost;
                *shown = more;
                break;
            }
        }
    }
    shown
}

/// What is pinned, up to a length; then one item for every section, then a fair share, then all.
fn steps() -> impl Iterator<Item = (Kind, usize)> {
    let pinned = [
        (Kind::RecentUserMessages, 1),
        (Kind::TaskState, FAIR_SHARE),
        (Kind::RecentUserMessages, Kind::RecentUserMessages.most()),
        (Kind::TaskState, PINNED_TASKS),
    ];
    let first = Kind::VALUE.into_iter().map(|kind| (kind, 1));
    let fair = Kind::VALUE.into_iter().map(|kind| (kind, FAIR_SHARE));
    let rest = [Kind::TaskState].into_iter().chain(Kind::VALUE).map(|kind| (kind, kind.most()));
    pinned.into_iter().chain(first).chain(fair).chain(rest)
}
