//! Loops, pipelines and headless goals from the command line, with the real clients as agents and scripted models
//! behind them.

mod background;
mod crashes;
mod fleet;
mod goals;
mod iterations;
mod lab;
mod limits;
mod pipelines;
mod subagents;
