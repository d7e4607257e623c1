//! `steadfast doctor --fix`: repairs what no one can mind, before the report says what is left.

use serde_json::json;
use steadfast_store::remove_stray_backups;
use steadfast_system::paths::Paths;

use crate::commands::refuse_agents;
use crate::commands::setup::repair;
use crate::error::CliError;
use crate::output::CommandOutput;

/// What was repaired, and what a person has to do.
#[derive(Debug, Default)]
pub(super) struct Fixed {
    done: Vec<String>,
    left: Vec<String>,
}

pub(super) fn fix(paths: &Paths, has_broken_config: bool) -> Result<Fixed, CliError> {
    refuse_agents(paths, "doctor --fix")?;
    let mut fixed = Fixed::default();
    // `Paths` has closed them already.
    fixed.done.extend(paths.closed.iter().map(|closed| format!("closed to other users: {closed}")));
    let copies = remove_stray_backups(&paths.store);
    fixed.done.extend(copies.iter().map(|path| format!("removed the unfinished copy {}", path.display())));
    if has_broken_config {
        fixed.left.push("config.toml cannot be read, so the clients are left as they are".to_owned());
        return Ok(fixed);
    }
    let repairs = repair::repair(paths)?;
    fixed.done.extend(repairs.done);
    fixed.left.extend(repairs.failed);
    Ok(fixed)
}

impl Fixed {
    /// The report of `doctor` after the repairs, with their list before it.
    pub(super) fn before(self, report: CommandOutput) -> CommandOutput {
        let mut lines: Vec<String> = self.done.iter().map(|done| format!("fixed  {done}")).collect();
        if lines.is_empty() {
            lines.push("fixed  nothing: nothing to repair was found".to_owned());
        }
        lines.extend(self.left.iter().map(|left| format!("left   {left}")));
        let CommandOutput { text, mut json, code } = report;
        json["fixed"] = json!(self.done);
        json["not_fixed"] = json!(self.left);
        CommandOutput { text: format!("{}\n\n{text}", lines.join("\n")), json, code }
    }
}
