//! Session memory: [`extract`] turns observations into findings, and [`snapshot`] renders what a model needs after its context is gone.

pub mod extract;
pub mod snapshot;
