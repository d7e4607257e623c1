//! The activities by name, as workflows call them. `activities.rs` does them.

use temporalio_macros::activity_definitions;
use temporalio_sdk::activities::ActivityError;

use crate::wire::{
    AttemptInput, AttemptResult, CheckInput, CheckReport, ConditionInput, ConditionReport, Decided, FinishInput,
    ForkInput, RunRef, SaveInput, StepRequest,
};

pub(crate) struct Calls;

#[activity_definitions]
impl Calls {
    #[activity(name = "attempt")]
    pub(crate) fn attempt(_: AttemptInput) -> Result<AttemptResult, ActivityError> {
        unimplemented!()
    }

    #[activity(name = "check")]
    pub(crate) fn check(_: CheckInput) -> Result<CheckReport, ActivityError> {
        unimplemented!()
    }

    #[activity(name = "condition")]
    pub(crate) fn condition(_: ConditionInput) -> Result<ConditionReport, ActivityError> {
        unimplemented!()
    }

    #[activity(name = "decide")]
    pub(crate) fn decide(_: StepRequest) -> Result<Decided, ActivityError> {
        unimplemented!()
    }

    #[activity(name = "record")]
    pub(crate) fn record(_: SaveInput) -> Result<(), ActivityError> {
        unimplemented!()
    }

    #[activity(name = "finish")]
    pub(crate) fn finish(_: FinishInput) -> Result<(), ActivityError> {
        unimplemented!()
    }

    #[activity(name = "fork")]
    pub(crate) fn fork(_: ForkInput) -> Result<RunRef, ActivityError> {
        unimplemented!()
    }
}
