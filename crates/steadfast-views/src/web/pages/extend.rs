//! The fields of the form that raises limits. The first is filled with a step to begin with: a quarter of the limit,
//! rounded.

use minijinja::{Value, context};
use steadfast_model::clock::{HOUR, Millis};
use steadfast_model::goal::Goal;
use steadfast_model::limit::Axis;
use steadfast_model::price::dollars;

/// Tokens, dollars, turns or hours to add.
struct Field {
    axis: Axis,
    step: String,
}

/// The fields for the limits that a goal has. `first` is the one that was reached, or will be.
pub(super) fn fields(goal: &Goal, first: Option<Axis>) -> Value {
    let first = first.map(Axis::extended_by);
    let limits = goal.limits.iter().filter(|(axis, _)| axis.extend_flag().is_some());
    let mut fields: Vec<Field> = Vec::new();
    for (axis, most) in limits {
        let axis = axis.extended_by();
        if fields.iter().all(|field| field.axis != axis) {
            fields.push(Field { axis, step: step(axis, most) });
        }
    }
    fields.sort_by_key(|field| Some(field.axis) != first);
    let shown = fields.iter().enumerate().map(|(index, field)| {
        context! {
            name => <&str>::from(field.axis), unit => unit(field.axis), step => &field.step,
            value => if index == 0 { field.step.as_str() } else { "" },
        }
    });
    shown.collect()
}

/// The limit that stopped a goal.
pub(super) fn reached(goal: &Goal, at: Millis) -> Option<Axis> {
    goal.paused_reason.and_then(Axis::of_pause).or_else(|| goal.reached_limit(at))
}

fn unit(axis: Axis) -> &'static str {
    match axis {
        Axis::Tokens => "tokens",
        Axis::Usd => "US dollars",
        Axis::Turns => "turns",
        _ => "hours",
    }
}

/// A quarter of a limit as people write it.
fn step(axis: Axis, most: i64) -> String {
    match axis {
        Axis::Tokens => rounded(most / 4).max(1_000).to_string(),
        Axis::Usd => dollars(rounded((most / 4).max(1_000_000))).to_string(),
        Axis::Turns => rounded(most / 4).max(1).to_string(),
        // A deadline is a moment, and a quarter of it says nothing.
        _ => (most / 4 / HOUR).clamp(1, 24).to_string(),
    }
}

/// With one digit that is not zero: `437_500` becomes `400_000`.
fn rounded(amount: i64) -> i64 {
    let mut unit = 1_i64;
    while amount / unit >= 10 {
        unit = unit.saturating_mul(10);
    }
    amount / unit * unit
}

#[cfg(test)]
mod tests {
    use steadfast_model::limit::Limits;
    use steadfast_model::testing::goal_with;

    use super::*;

    #[test]
    fn a_step_is_a_round_quarter_of_the_limit() {
        assert_eq!(step(Axis::Tokens, 1_750_000), "400000");
        assert_eq!(step(Axis::Tokens, 0), "1000");
        assert_eq!(step(Axis::Usd, 50_000_000), "10");
        assert_eq!(step(Axis::Usd, 100), "1");
        assert_eq!(step(Axis::Turns, 50), "10");
        assert_eq!(step(Axis::Turns, 2), "1");
        assert_eq!(step(Axis::Hours, 10 * HOUR), "2");
    }

    #[test]
    fn the_first_limit_to_be_reached_comes_first_and_alone_has_a_value() {
        let goal = goal_with(Limits::default().with(Axis::Tokens, 1_000_000).with(Axis::Turns, 40));
        let shown = serde_json::to_value(fields(&goal, Some(Axis::Turns))).unwrap();
        let names: Vec<&str> = shown.as_array().unwrap().iter().filter_map(|field| field["name"].as_str()).collect();
        assert_eq!(names, ["turns", "tokens"]);
        assert_eq!(shown[0]["value"], "10");
        assert_eq!(shown[1]["value"], "");
    }
}
