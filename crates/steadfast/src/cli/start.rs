//! The flags of `goal start`, and the items that they name.

use std::path::{Path, PathBuf};

use clap::Args;
use steadfast_model::goal::item;
use steadfast_system::bounded;

use super::GoalLimitArgs;
use crate::error::{CliError, code};

/// Longest file of items.
const ITEMS_BYTES: u64 = 64 << 10;

#[derive(Debug, Default, Args)]
#[command(after_help = "Budgets (tokens / turns / hours):
  quick 2M/50/2, standard 10M/200/8, deep 100M/1000/24, overnight 1B/5000/72;
  auto chooses one of them by the words of the objective
Example: steadfast goal start \"Port the parser\" --budget 10M --max-hours 4 --verify \"make test\"")]
pub(crate) struct StartArgs {
    /// What must be true at the end (1 to 4000 characters)
    #[arg(required = true, value_name = "OBJECTIVE")]
    pub(crate) objective: Vec<String>,
    #[command(flatten)]
    pub(crate) limits: GoalLimitArgs,
    /// Command that must exit 0 before the goal is complete (repeatable)
    #[arg(long, value_name = "CMD")]
    pub(crate) verify: Vec<String>,
    #[command(flatten)]
    pub(crate) done: DoneArgs,
    /// Start it when the live goal and those queued before it are over
    #[arg(long)]
    pub(crate) queue: bool,
}

/// What counts as done, beside `--verify`.
#[derive(Debug, Default, Args)]
pub(crate) struct DoneArgs {
    /// What must be true at the end; the agent has to prove it (repeatable)
    #[arg(long, value_name = "TEXT")]
    item: Vec<String>,
    /// Read the items from the lists of a Markdown file
    #[arg(long, value_name = "FILE", conflicts_with = "item")]
    items: Option<PathBuf>,
    /// Require the evaluator's agreement
    #[arg(long)]
    pub(crate) judge: bool,
    /// Wait for your `goal complete` at the end
    #[arg(long)]
    pub(crate) sign_off: bool,
}

impl DoneArgs {
    pub(crate) fn has_items(&self) -> bool {
        !self.item.is_empty() || self.items.is_some()
    }

    /// The items, checked. A relative path is relative to `directory`.
    pub(crate) fn items(&self, directory: &Path) -> Result<Vec<String>, CliError> {
        let given = match &self.items {
            Some(file) => read(&directory.join(file))?,
            None => self.item.clone(),
        };
        item::texts(&given).map_err(|error| CliError::new(code::USAGE, error.to_string(), error.hint()))
    }
}

fn read(file: &Path) -> Result<Vec<String>, CliError> {
    let hint = "give a Markdown file of at most 64 KiB with an item per line: `- TEXT`";
    let usage = |message: String| CliError::new(code::USAGE, message, hint);
    let bytes = bounded::whole(file, ITEMS_BYTES).map_err(|error| usage(format!("cannot read the items: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| usage(format!("`{}` is not UTF-8 text", file.display())))?;
    let items = item::of_markdown(&text);
    if items.is_empty() {
        return Err(usage(format!("`{}` has no list items", file.display())));
    }
    Ok(items)
}
