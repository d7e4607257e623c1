//! A live goal moves, in the real Claude Code: after every disturbance the next request reaches the model within seconds
//! and without a key pressed; a goal that cannot move shows why; only the time of turns is active time.

mod background;
mod closing;
mod commands;
mod endings;
mod headless;
mod hints;
mod interrupting;
mod lab;
mod plan_limit;
mod quiet;
mod resuming;
mod runaways;
mod time;
mod typed_ahead;
