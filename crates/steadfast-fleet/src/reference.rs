//! Writes `docs/reference/fleet.md` from the command line, and fails when the page differs. To write it again:
//! `UPDATE_DOCS=1 cargo test -p steadfast-fleet reference`.

use std::path::Path;

use clap::CommandFactory as _;

use steadfast_system::env_vars;

use crate::cli::FleetCli;

const INTRO: &str = "# Commands of the fleet

The help of each command of `steadfast fleet`. How to run on many machines: [the fleet](../fleet.md). `--json`
prints [JSON](#json).

<!-- Written from the code by crates/steadfast-fleet/src/reference.rs; do not edit. -->
";

const JSON: &str = "
## JSON

With `--json`, commands print:

| command | answer |
| --- | --- |
| `list` | as [run-list](json.md#run-list) |
| `status`, `attach`, `resume` | as [run-status](json.md#run-status) |
| `doctor` | as [doctor](json.md#doctor); `store` is the address of the server, `store_from` is `fleet` |
| `logs` | `{stage, iteration, attempt, text}` |
| `kill` | as run-status when the run has ended; else `{name, status, stopping}`, with `--force` `{name, status, forced}` |
| `pull` | `{name, status, branch, run_directory, head, project}` |
| `approve`, `reject` | `{name, stage, stage_name, approved, note}` |
| `say` | `{name, text}` |
| `caps` | `{tokens, cost_usd, caps: {tokens, usd}}`: what today used, and the caps; null: no cap |
| `drain` | `{workers, done}`: process ids of the workers, and whether they have ended |
| `schedules` | `{schedules: [{name, paused, note, next_at}]}`; `delete`: `{name, deleted}` |
| `key` | `{id, line}` |
| `history` | the history as Temporal's JSON, also without `--json` |

A command that fails prints [error](json.md#error).
";

#[test]
fn the_page_of_the_fleet_is_current() {
    let mut cli = FleetCli::command().disable_help_subcommand(true).term_width(100);
    cli.build();
    let mut text = INTRO.to_owned();
    for command in cli.get_subcommands_mut().filter(|command| !command.is_hide_set()) {
        let help = command.render_help().to_string();
        let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
        let name = command.get_name();
        text += &["\n## steadfast fleet ", name, "\n\n```text\n", &lines.join("\n"), "\n```\n"].concat();
    }
    text += JSON;
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/fleet.md");
    if env_vars::text("UPDATE_DOCS").is_some() {
        fs_err::write(&page, &text).unwrap();
    }
    let written = fs_err::read_to_string(&page).unwrap_or_default();
    assert!(
        written == text,
        "docs/reference/fleet.md is not what the code says: UPDATE_DOCS=1 cargo test -p steadfast-fleet reference"
    );
}
