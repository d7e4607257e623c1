//! The page of a goal, live or over.

use minijinja::{Value, context};
use steadfast_app::overview::goal_page::{self, GoalPage};
use steadfast_model::clock::Millis;
use steadfast_model::goal::Goal;
use steadfast_model::{price, text};
use steadfast_store::Db;
use steadfast_system::paths::Paths;

use super::template::{chart, serde};
use super::{PageError, extend};
use crate::chart::{self as charts, BurnDown};

/// Objectives that are longer than this get a box of their own that scrolls.
const LONG: usize = 700;
/// Longer output is cut; the command prints all of it again.
const TAIL: usize = 4_000;

pub(super) fn model(db: Db<'_>, paths: &Paths, id: &str, at: Millis) -> Result<GoalPage, PageError> {
    Ok(goal_page::goal_page(db, &find(db, id)?, paths, at)?)
}

pub(super) fn content(db: Db<'_>, paths: &Paths, id: &str, at: Millis) -> Result<(String, Value), PageError> {
    let goal = find(db, id)?;
    let page = goal_page::goal_page(db, &goal, paths, at)?;
    Ok(of(&goal, &page, at))
}

/// The goal with this id, or with the only id that begins with it; also one that was replaced.
fn find(db: Db<'_>, id: &str) -> Result<Goal, PageError> {
    let not_found = || PageError::NotFound { noun: "goal", id: text::headline(id, 60) };
    if id.is_empty() {
        return Err(not_found());
    }
    let mut found = db.goals_by_id(id)?;
    found.extend(db.replaced_by_id(id)?);
    let exact = found.iter().position(|goal| goal.goal_id == id);
    match (exact, found.len()) {
        (Some(index), _) => Ok(found.swap_remove(index)),
        (None, 1) => Ok(found.swap_remove(0)),
        _ => Err(not_found()),
    }
}

/// The title and values of a goal's page.
fn of(goal: &Goal, page: &GoalPage, at: Millis) -> (String, Value) {
    let view = &page.report.goal;
    let until = if goal.status.is_live() { at } else { goal.updated_at_ms };
    let burn_down = (page.burn.len() > 1).then(|| {
        chart(charts::burn_down(&BurnDown {
            points: &page.burn,
            budget: view.token_budget,
            usd_budget_micros: view.usd_budget.map(price::micros),
            pauses: &page.pauses,
            marks: &page.marks,
            from_ms: goal.created_at_ms,
            to_ms: until,
            pace: page.pace.as_ref().filter(|_| goal.status.is_live()),
        }))
    });
    let evidence = page.evidence.iter().map(|run| {
        let tail = text::tail(&run.output_tail, TAIL);
        context! { tail, is_cut => tail.len() < run.output_tail.len(), ..serde(run) }
    });
    let first = extend::reached(goal, at).or_else(|| page.bars.first().map(|bar| bar.axis));
    let values = context! {
        goal => serde(view), state => view.state(), when => &view.done.when, ceilings => &view.ceilings,
        is_live => goal.status.is_live(), is_long => view.objective.len() > LONG,
        report => serde(&page.report), bars => serde(&page.bars), pace => serde(&page.pace),
        burn_down, timeline => serde(&page.timeline), timeline_left_out => page.timeline_left_out,
        evidence => evidence.collect::<Value>(), models => serde(&page.models), queue => serde(&page.queue),
        memory => serde(&page.memory), actions => serde(&page.actions), extend => extend::fields(goal, first),
    };
    (text::headline(&view.objective, 60), values)
}
