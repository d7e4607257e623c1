//! Session memory: [`extract`] turns observations into findings, and [`snapshot`] renders what a model needs after
//! its context is gone. [`transfer`] brings memory from one machine to another.

pub mod extract;
pub mod snapshot;
pub mod transfer;
