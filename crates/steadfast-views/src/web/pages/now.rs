//! The first page: what needs the user, what works, what waits, what ended.

use std::collections::BTreeMap;

use minijinja::{Value, context};
use steadfast_app::overview::now::{Action, GoalCard, NeedKind, Now, Subject};
use steadfast_model::clock::Millis;
use steadfast_model::run::name;
use steadfast_store::{Db, StoreError};
use steadfast_system::paths::Paths;

use super::template::{chart, serde};
use super::{PageError, extend};
use crate::{chart as charts, facts};

pub(super) fn content(db: Db<'_>, paths: &Paths, at: Millis) -> Result<(String, Value), PageError> {
    let now = facts::now(db, paths, at)?;
    Ok(of(db, &now, at)?)
}

/// The title and values of a first page.
pub(super) fn of(db: Db<'_>, now: &Now, at: Millis) -> Result<(String, Value), StoreError> {
    let goals = extendable(db, now, at)?;
    let title = match now.needs.len() {
        0 => "Now".to_owned(),
        count => format!("({count}) Now"),
    };
    let fields = |goal_id: &str| goals.get(goal_id).cloned().unwrap_or_else(|| Value::from(Vec::<Value>::new()));
    let needs = now.needs.iter().map(|need| {
        let goal_id = goal_of(&need.subject).unwrap_or_default();
        let asks = matches!(need.kind, NeedKind::Blocked | NeedKind::SignOff);
        context! { extend => fields(goal_id), open => asks.then(|| open_command(&need.subject)).flatten(), ..serde(need) }
    });
    let working = now.working.iter().map(|card| context! { extend => fields(&card.goal.goal_id), ..goal_card(card) });
    let values = context! {
        header => serde(&now.header), needs => needs.collect::<Value>(), working => working.collect::<Value>(),
        runs => now.runs.iter().map(serde).collect::<Value>(),
        waiting => now.waiting.iter().map(serde).collect::<Value>(),
        ended => now.ended.iter().map(serde).collect::<Value>(),
        goals_left_out => now.goals_left_out, runs_left_out => now.runs_left_out,
        fleet => now.fleet.as_ref().map(serde),
    };
    Ok((title, values))
}

fn goal_card(card: &GoalCard) -> Value {
    let ring = card.limits.first().map(|bar| {
        let label = bar.axis.noun();
        chart(charts::ring(bar.percent, label))
    });
    let spark = (card.burn.len() > 1).then(|| chart(charts::spark(&card.burn, card.goal.token_budget)));
    context! { ring, spark, state => card.goal.state(), ..serde(card) }
}

/// What opens the session of a goal, where a person can answer its agent.
fn open_command(subject: &Subject) -> Option<String> {
    match subject {
        Subject::Goal { session_id, host, .. } if !name::is_of_goal(session_id) => {
            Some(host.resume_command(session_id))
        }
        _ => None,
    }
}

fn goal_of(subject: &Subject) -> Option<&str> {
    match subject {
        Subject::Goal { goal_id, .. } => Some(goal_id),
        Subject::Run { .. } | Subject::Appointment { .. } => None,
    }
}

/// The fields that raise the limits of each goal that can be extended from the page.
fn extendable(db: Db<'_>, now: &Now, at: Millis) -> Result<BTreeMap<String, Value>, StoreError> {
    let needs = now.needs.iter().filter(|need| need.actions.contains(&Action::Extend));
    let needs = needs.filter_map(|need| Some((goal_of(&need.subject)?, None)));
    let cards = now.working.iter().filter(|card| card.actions.contains(&Action::Extend));
    let cards = cards.map(|card| (card.goal.goal_id.as_str(), card.limits.first().map(|bar| bar.axis)));
    let mut fields = BTreeMap::new();
    for (goal_id, first) in needs.chain(cards) {
        if let Some(goal) = db.goal_with_id(goal_id)? {
            fields.insert(goal_id.to_owned(), extend::fields(&goal, extend::reached(&goal, at).or(first)));
        }
    }
    Ok(fields)
}
