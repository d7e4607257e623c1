//! `fleet doctor`: server, namespace, retention, keys, workers per queue, clocks, git.

use std::process::Command;

use serde_json::{Value, json};
use steadfast_model::host::Host;
use steadfast_model::text;

use super::Here;
use crate::client::Fleet;
use crate::connect;
use crate::output::{CommandResult, Output, code};
use crate::workflow::{DRIVE_QUEUE, agent_queue};

/// A shorter retention is worth a warning.
const FEW_DAYS: i64 = 3;
const MOST_CLOCK_MS: i64 = 5_000;

struct FleetCheck {
    id: String,
    status: &'static str,
    detail: String,
    hint: Option<String>,
}

impl FleetCheck {
    fn ok(id: &str, detail: impl Into<String>) -> Self {
        Self { id: id.to_owned(), status: "ok", detail: detail.into(), hint: None }
    }

    fn warn(id: &str, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { id: id.to_owned(), status: "warn", detail: detail.into(), hint: Some(hint.into()) }
    }

    fn fail(id: &str, detail: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { id: id.to_owned(), status: "fail", detail: detail.into(), hint: Some(hint.into()) }
    }
}

pub(super) async fn doctor(here: &Here, repo: Option<&str>) -> CommandResult {
    let mut checks = Vec::new();
    checks.push(of_key(here));
    let mut address = String::new();
    match here.connect().await {
        Ok(fleet) => {
            address = format!("{} ({})", fleet.address.url, fleet.address.namespace);
            checks.push(FleetCheck::ok("server", address.clone()));
            of_server(&fleet, &mut checks).await;
        }
        Err(error) => checks.push(FleetCheck::fail("server", error.to_string(), error.hint())),
    }
    checks.push(of_git(here, repo));
    let worst = |status: &str| checks.iter().any(|check| check.status == status);
    let overall = if worst("fail") {
        "fail"
    } else if worst("warn") {
        "warn"
    } else {
        "ok"
    };
    let lines = checks.iter().map(|check| {
        let hint = check.hint.as_ref().map(|hint| format!("\n      hint: {hint}")).unwrap_or_default();
        format!("{:<5} {}: {}{hint}", check.status, check.id, text::headline(&check.detail, 300))
    });
    let object = |check: &FleetCheck| json!({"id": check.id, "status": check.status, "detail": check.detail, "hint": check.hint});
    let objects: Value = checks.iter().map(object).collect();
    let json = json!({
        "version": env!("CARGO_PKG_VERSION"), "store": address, "store_from": "fleet", "checks": objects,
        "overall": overall,
    });
    let code = if overall == "fail" { code::ENVIRONMENT } else { 0 };
    Ok(Output { text: lines.collect::<Vec<_>>().join("\n"), json, code })
}

fn of_key(here: &Here) -> FleetCheck {
    match connect::keys(here.fleet()) {
        Ok(Some(keys)) => {
            let ids: Vec<String> = keys.ids().map(ToOwned::to_owned).collect();
            FleetCheck::ok("key", format!("payloads are encrypted with {}", ids.join(", ")))
        }
        Ok(None) => {
            let hint = "`steadfast fleet key > FILE`, then STEADFAST_FLEET_KEY_FILE=FILE on every machine";
            FleetCheck::warn("key", "no key: the server can read states, results and summaries", hint)
        }
        Err(error) => FleetCheck::fail("key", error.to_string(), error.hint()),
    }
}

async fn of_server(fleet: &Fleet, checks: &mut Vec<FleetCheck>) {
    match fleet.facts().await {
        Ok(facts) => {
            checks.push(FleetCheck::ok("version", facts.version));
            let days = facts.retention_days;
            let detail = format!("the server forgets runs {} after their end", text::count(days, "day"));
            checks.push(if days < FEW_DAYS {
                let hint =
                    "nothing is lost, run directories are in git; `temporal operator namespace update --retention 30d`";
                FleetCheck::warn("retention", detail, hint)
            } else {
                FleetCheck::ok("retention", detail)
            });
            checks.push(match facts.clock_difference_ms {
                Some(difference) if difference.abs() > MOST_CLOCK_MS => {
                    let detail = format!("the server's clock differs by {} s", difference / 1_000);
                    FleetCheck::warn("clock", detail, "synchronize the clocks (NTP): limits on time count by them")
                }
                Some(difference) => FleetCheck::ok("clock", format!("differs by {difference} ms")),
                None => FleetCheck::warn("clock", "the server did not tell its time", "compare the clocks yourself"),
            });
        }
        Err(error) => {
            checks.push(FleetCheck::fail("namespace", error.to_string(), error.hint()));
            return;
        }
    }
    of_queues(fleet, checks).await;
}

async fn of_queues(fleet: &Fleet, checks: &mut Vec<FleetCheck>) {
    let drive = std::iter::once((DRIVE_QUEUE.to_owned(), true));
    let agents = Host::ALL.iter().map(|host| host.name()).chain(["command"]);
    let agents = agents.map(|agent| (agent_queue(agent, &[]), false));
    for (queue, workflows) in drive.chain(agents) {
        let id = format!("workers:{queue}");
        checks.push(match fleet.pollers(&queue, workflows).await {
            Ok(pollers) if pollers.is_empty() && workflows => FleetCheck::fail(
                &id,
                "no worker drives runs",
                "`steadfast fleet worker --drive` on a machine that is always on",
            ),
            Ok(pollers) if pollers.is_empty() => {
                FleetCheck::warn(&id, "no worker", "`steadfast fleet worker` where that agent is installed")
            }
            Ok(pollers) => {
                let names: Vec<&str> = pollers.iter().map(|poller| poller.identity.as_str()).collect();
                let count = text::count(names.len(), "worker");
                FleetCheck::ok(&id, format!("{count}: {}", names.join(", ")))
            }
            Err(error) => FleetCheck::fail(&id, error.to_string(), error.hint()),
        });
    }
}

/// Whether this machine may push to the repository of runs.
fn of_git(here: &Here, repo: Option<&str>) -> FleetCheck {
    let Some(repo) = here.repo(repo) else {
        let hint = "run it in a clone with the remote `origin`, or add --repo URL";
        return FleetCheck::warn("git", "no repository to push to", hint);
    };
    let done = Command::new("git")
        .args(["push", "--dry-run", "--quiet", "--", &repo, "HEAD:refs/heads/steadfast-attempts/doctor/check"])
        .current_dir(&here.project)
        .env("GIT_TERMINAL_PROMPT", "0")
        .output();
    match done {
        Ok(done) if done.status.success() => FleetCheck::ok("git", format!("may push to {repo}")),
        Ok(done) => {
            let said = String::from_utf8_lossy(&done.stderr);
            let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message").to_owned();
            FleetCheck::fail("git", format!("cannot push to {repo}: {last}"), "try `git push --dry-run` by hand")
        }
        Err(error) => FleetCheck::fail("git", format!("git does not start: {error}"), "install git 2.38 or newer"),
    }
}
