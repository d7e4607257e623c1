//! What people look at: the page (`web`), the terminal view (`top`), metrics and reports. Each is a form of the read models
//! in `steadfast_app::overview` and `steadfast_app::usage`; nothing here decides anything. What a person does from a view
//! becomes a command of the binary (`actions`), so that page and terminal follow the same rules.

pub mod actions;
pub mod chart;
pub mod facts;
mod fleet;
pub mod log;
pub mod metrics;
pub mod report;
pub mod top;
pub mod web;
