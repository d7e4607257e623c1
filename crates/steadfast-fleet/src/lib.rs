//! Runs on many machines. Temporal keeps their state, timers, retries and cancellations; git carries the code; the same
//! machine decides as on one machine.

mod activities;
mod calls;
mod checkout;
mod cli;
pub mod client;
pub mod codec;
pub mod commands;
pub mod connect;
mod git;
pub mod ledger;
mod output;
#[cfg(test)]
mod reference;
mod show;
pub mod wire;
pub mod work;
pub mod worker;
pub mod workflow;
