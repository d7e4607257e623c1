//! The flags of what a person says to a run: `say`, `approve`, `reject`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct SayArgs {
    /// Name of the run
    pub(crate) name: String,
    /// What to say; `-` reads stdin
    #[arg(value_name = "TEXT")]
    pub(crate) text: Vec<String>,
    /// Remove messages that no iteration has read
    #[arg(long, conflicts_with = "text")]
    pub(crate) drop: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// Name of the run
    pub(crate) name: String,
    /// Stage, by name or number [default: the one that waits]
    pub(crate) stage: Option<String>,
    /// What to remember about the answer
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Option<String>,
}
