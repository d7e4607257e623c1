//! `steadfast loop` from end to end, with real processes and shell scripts as agents.

mod by_hand;
mod control;
mod cut_short;
mod predecessor;
mod rules;
mod safety;
mod starting;
mod views;
