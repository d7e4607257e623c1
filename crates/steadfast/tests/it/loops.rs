//! `steadfast loop` from end to end, with real processes and agents that are shell scripts.

mod by_hand;
mod control;
mod cut_short;
mod predecessor;
mod rules;
mod safety;
mod starting;
mod views;
