//! What the model of a goal is told when it continues: everything once, and a short reminder while it still knows that.

use steadfast_model::clock::Millis;
use steadfast_model::goal::change::{Change, Span};
use steadfast_model::goal::{Actor, Goal};
use steadfast_model::limit::Axis;
use steadfast_model::prompt::{self, PromptError, Wording};
use steadfast_store::{Db, Origin, StoreError};

/// Which text the model gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Brief {
    kind: Kind,
    /// Tasks of an earlier turn still run.
    background_work: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The first turn of the goal.
    Started,
    Full,
    Reminder,
    WindDown(Axis),
}

/// Chooses the text, and records in the goal that the model has been told.
pub fn brief(db: Db<'_>, goal: &mut Goal) -> Result<Brief, StoreError> {
    let session = db.session(&goal.session_id)?;
    let background_work = session.is_some_and(|session| session.activity.background_since_ms.is_some());
    let hash = prompt::briefing_hash(goal);
    let is_new = goal.total_tokens() == 0 && goal.continuations_used <= 1;
    let kind = match goal.wind_down {
        Some(limit) => Kind::WindDown(limit),
        None if goal.briefed_hash.as_ref() == Some(&hash) => Kind::Reminder,
        None if is_new => Kind::Started,
        None => Kind::Full,
    };
    if goal.wind_down.is_none() {
        goal.briefed_hash = Some(hash);
    }
    Ok(Brief { kind, background_work })
}

/// Records that the model has been told everything about the goal in another text.
pub fn note_briefed(db: Db<'_>, goal: &Goal, now: Millis) -> Result<(), StoreError> {
    let origin = Origin { actor: Actor::Steadfast, place: "slash-command" };
    let briefed_hash = Some(prompt::briefing_hash(goal));
    let after = Goal { briefed_hash, updated_at_ms: now.max(goal.updated_at_ms), ..goal.clone() };
    db.save(goal, Change { goal: after, events: Vec::new(), span: Span::Keep }, origin)?;
    Ok(())
}

impl Brief {
    pub fn text(self, goal: &Goal, wording: Wording, now: Millis) -> Result<String, PromptError> {
        let text = match self.kind {
            Kind::Started => prompt::started(goal, wording),
            Kind::Full => prompt::continuation(goal, wording, &goal.warned, now),
            // A new warning comes with the full text.
            Kind::Reminder => prompt::reminder(goal, wording, &[], now),
            Kind::WindDown(limit) => prompt::wind_down(goal, wording, limit, now),
        }?;
        if self.background_work {
            let note = include_str!("../prompts/background.md").trim_end();
            return Ok(format!("{note}\n{text}"));
        }
        Ok(text)
    }
}
