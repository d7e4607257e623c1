//! Loops, pipelines and headless goals as a user has them: the command line, the real clients as agents, scripted models
//! behind them, and nothing else.

mod background;
mod crashes;
mod goals;
mod iterations;
mod lab;
mod limits;
mod pipelines;
mod subagents;
