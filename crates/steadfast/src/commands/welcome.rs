//! `steadfast` without arguments: which clients, goals and runs are on this machine, and the one command to type next.
//! Starts no program and changes nothing, so that it answers at once.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use steadfast_app::overview::now::{Now, Subject, UserNeed, WaitCard};
use steadfast_hosts::doctor::HookState;
use steadfast_hosts::{adapter, adapters, installed_version};
use steadfast_model::clock;
use steadfast_model::host::Host;
use steadfast_model::run::name;
use steadfast_model::text;
use steadfast_store::Store;
use steadfast_system::paths::Paths;
use steadfast_system::project;
use steadfast_views::facts;

use super::other_stores;
use crate::output::{self, CommandOutput, CommandResult};
use crate::{plugin, programs};

/// A client, as far as its files show it.
#[derive(Debug, Clone)]
struct ClientFacts {
    host: Host,
    /// On PATH.
    is_installed: bool,
    version: Option<String>,
    hooks: HookState,
}

/// What decides about the next command.
#[derive(Debug, Default)]
struct Situation {
    clients: Vec<ClientFacts>,
    /// Why home, configuration or store cannot be used.
    trouble: Option<String>,
    /// The installed plugin is of another version.
    is_outdated: bool,
    /// What to do about the goal or run that has needed the user for longest.
    need: Option<String>,
    live: usize,
    /// How our commands begin in a client that is ready.
    prefix: &'static str,
}

pub(crate) fn from_terminal(db: Option<&Path>) -> CommandResult {
    Ok(run(db, &std::env::current_dir()?))
}

fn run(db: Option<&Path>, directory: &Path) -> CommandOutput {
    let clients: Vec<ClientFacts> = adapters().map(|adapter| client(adapter.host, (adapter.hook_state)())).collect();
    let mut situation = Situation { clients, ..Situation::default() };
    situation.prefix = situation.ready().map_or("", |ready| (adapter(ready.host).typed_prefix)());
    let mut rows: Vec<Vec<String>> = situation.clients.iter().map(ClientFacts::row).collect();
    let mut json = json!({"version": env!("CARGO_PKG_VERSION")});
    match look(db) {
        Ok((paths, page)) => {
            situation.is_outdated = plugin::is_current(&paths.home) == Some(false);
            if let Some(note) = other_stores::note(&paths) {
                rows.push(vec!["more goals".to_owned(), note.clone()]);
                json["other_store"] = json!(note);
            }
            if let Some(page) = page {
                situation.need = page.needs.first().map(|need| hint_from(need, directory));
                situation.live = page.header.live_goals + page.header.live_runs;
                rows.extend(of_store(&page));
                json["goals"] = json!(page.header.live_goals);
                json["runs"] = json!(page.header.live_runs);
                json["needs"] = json!(page.needs.len());
                json["goals_need_you"] = json!(needing(&page, Kind::Goal).len());
                json["runs_need_you"] = json!(needing(&page, Kind::Run).len());
            }
        }
        Err(problem) => {
            rows.push(vec!["store".to_owned(), problem.clone()]);
            situation.trouble = Some(problem);
        }
    }
    let (next, also) = (situation.next(), situation.also());
    json["clients"] = situation.clients.iter().map(ClientFacts::json).collect();
    json["next"] = json!(next);
    json["also"] = json!(also);
    let also = also.map(|also| format!("\nalso: {also}")).unwrap_or_default();
    let table = output::indented(&output::columns(&rows)).join("\n");
    let text = format!(
        "steadfast {}: keeps coding agents on the job\n\n{table}\n\nnext: {next}{also}\nmore: steadfast demo, steadfast --help",
        env!("CARGO_PKG_VERSION")
    );
    CommandOutput { text, json, code: 0 }
}

/// The hint of a need, with the directory in which it has to be typed if that is another one.
fn hint_from(need: &UserNeed, directory: &Path) -> String {
    match need.project.as_deref().map(Path::new) {
        Some(project) if project::key(project) != project::key(directory) => {
            format!("in {}: {}", project.display(), need.hint)
        }
        _ => need.hint.clone(),
    }
}

fn client(host: Host, hooks: HookState) -> ClientFacts {
    let program = programs::on_path(host.capabilities().program);
    let version = program.as_deref().and_then(installed_version);
    ClientFacts { host, is_installed: program.is_some(), version, hooks }
}

/// The home, and the first page of the store if there is one; otherwise what is wrong with them.
fn look(db: Option<&Path>) -> Result<(Paths, Option<Now>), String> {
    let paths = Paths::find(db).map_err(|error| error.to_string())?;
    let store = Store::open_if_there(&paths.store).map_err(|error| error.to_string())?;
    let page = store.map(|store| facts::now(store.read(), &paths, clock::now())).transpose();
    let page = page.map_err(|error| error.to_string())?;
    Ok((paths, page))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Goal,
    Run,
    /// A run that starts later.
    Later,
}

/// What a card is about, and its id. A run and the goal that it pursues are one run, under the session of the goal.
fn kind_and_id(subject: &Subject) -> (Kind, String) {
    match subject {
        Subject::Goal { session_id, .. } if name::is_of_goal(session_id) => (Kind::Run, session_id.clone()),
        Subject::Goal { goal_id, .. } => (Kind::Goal, goal_id.clone()),
        Subject::Run { run_id, .. } => (Kind::Run, name::of_goal(run_id)),
        Subject::Appointment { name, .. } => (Kind::Later, name.clone()),
    }
}

/// The goals or runs that need the user. One may need two things.
fn needing(page: &Now, kind: Kind) -> BTreeSet<String> {
    let about = page.needs.iter().map(|need| kind_and_id(&need.subject));
    about.filter(|(found, _)| *found == kind).map(|(_, id)| id).collect()
}

fn of_store(page: &Now) -> [Vec<String>; 2] {
    let row = |name: &str, parts: &[(usize, &str)]| {
        let parts = parts.iter().filter(|(number, _)| *number > 0).map(|(number, what)| format!("{number} {what}"));
        let parts: Vec<String> = parts.collect();
        vec![name.to_owned(), if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }]
    };
    let waiting = |kind| page.waiting.iter().filter(|card| kind_and_id(&card.subject).0 == kind).count();
    let need_you = |number| if number == 1 { "needs you" } else { "need you" };
    let (goals, runs) = (needing(page, Kind::Goal).len(), needing(page, Kind::Run));
    let asking =
        page.runs.iter().filter(|card| !card.run.is_orphaned && runs.contains(&name::of_goal(&card.run.run_id)));
    let running = page.header.live_runs.saturating_sub(asking.count());
    let working = page.working.iter().filter(|card| !name::is_of_goal(&card.goal.session_id)).count();
    // A live run that waits is counted as running.
    let is_paused_run =
        |card: &&WaitCard| matches!(&card.subject, Subject::Goal { session_id, .. } if name::is_of_goal(session_id));
    let paused = page.waiting.iter().filter(is_paused_run).count();
    [
        row("goals", &[(working, "working"), (waiting(Kind::Goal), "waiting"), (goals, need_you(goals))]),
        row(
            "runs",
            &[
                (running, "running"),
                (paused, "waiting"),
                (waiting(Kind::Later), "scheduled"),
                (runs.len(), need_you(runs.len())),
            ],
        ),
    ]
}

impl ClientFacts {
    /// The complaint about a version that is too old, and what to type.
    fn old(&self) -> Option<(String, &'static str)> {
        let facts = self.host.capabilities();
        let (check, version) = (facts.version_check.as_ref()?, self.version.as_deref()?);
        check.is_too_old(version).then(|| (check.complaint(facts.product, version), check.update))
    }

    fn state(&self) -> String {
        match &self.hooks {
            _ if !self.is_installed => "not found on PATH".to_owned(),
            HookState::Absent => "found, not set up".to_owned(),
            HookState::Ready => "set up".to_owned(),
            HookState::Silent(check) => text::one_line(&check.detail),
        }
    }

    fn row(&self) -> Vec<String> {
        let product = self.host.capabilities().product;
        let name = self.version.as_deref().map_or_else(|| product.to_owned(), |version| format!("{product} {version}"));
        let old = if self.old().is_some() { "; this version is too old" } else { "" };
        vec![name, format!("{}{old}", self.state())]
    }

    fn json(&self) -> Value {
        let hooks = match &self.hooks {
            HookState::Absent => "absent",
            HookState::Ready => "ready",
            HookState::Silent(_) => "silent",
        };
        json!({
            "host": self.host, "installed": self.is_installed, "version": self.version, "hooks": hooks,
            "detail": self.state(), "too_old": self.old().is_some(),
        })
    }
}

impl Situation {
    /// The one thing to do next, the most urgent first.
    fn next(&self) -> String {
        if self.trouble.is_some() {
            return "steadfast doctor".to_owned();
        }
        // A person is waited for now; everything below can wait.
        if let Some(need) = &self.need {
            return need.clone();
        }
        let mut installed = self.clients.iter().filter(|client| client.is_installed).peekable();
        if installed.peek().is_none() {
            let products: Vec<&str> = Host::ALL.iter().map(|host| host.capabilities().product).collect();
            return format!("install {}; then type steadfast setup", products.join(" or "));
        }
        if let Some((complaint, update)) = self.clients.iter().find_map(ClientFacts::old) {
            return format!("{update}   ({complaint})");
        }
        if self.is_outdated || installed.all(|client| client.hooks == HookState::Absent) {
            return "steadfast setup".to_owned();
        }
        match self.ready() {
            Some(_) if self.live > 0 => "steadfast top".to_owned(),
            Some(ready) => {
                let program = ready.host.capabilities().program;
                format!(
                    "start `{program}` in a project and type {}start \"All tests pass\" --verify \"make test\"",
                    self.prefix
                )
            }
            None => self.silent().unwrap_or_else(|| "steadfast setup".to_owned()),
        }
    }

    /// What another client needs, while one is ready.
    fn also(&self) -> Option<String> {
        self.ready().and_then(|_| self.silent())
    }

    /// A client that runs our hooks.
    fn ready(&self) -> Option<&ClientFacts> {
        self.clients.iter().find(|client| client.is_installed && client.hooks == HookState::Ready)
    }

    /// What to do about a client that has our hooks and does not run them.
    fn silent(&self) -> Option<String> {
        self.clients.iter().filter(|client| client.is_installed).find_map(|client| match &client.hooks {
            HookState::Silent(check) => check.hint.clone(),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use steadfast_hosts::doctor::warn;

    use super::*;

    fn client(host: Host, version: Option<&str>, hooks: HookState) -> ClientFacts {
        ClientFacts { host, is_installed: true, version: version.map(str::to_owned), hooks }
    }

    #[test]
    fn the_most_urgent_thing_is_next() {
        let mut situation = Situation { prefix: "/goal-", ..Situation::default() };
        assert!(situation.next().starts_with("install Claude Code or Codex"), "{}", situation.next());
        situation.clients = vec![client(Host::Claude, Some("2.1.197"), HookState::Absent)];
        assert_eq!(situation.next(), "steadfast setup");
        situation.clients[0].hooks = HookState::Ready;
        assert!(situation.next().contains("/goal-start"), "{}", situation.next());
        situation.live = 1;
        assert_eq!(situation.next(), "steadfast top");
        let silent = HookState::Silent(warn("codex_hooks", "not trusted", "start `codex`, type /hooks"));
        situation.clients.push(client(Host::Codex, None, silent));
        assert_eq!(situation.next(), "steadfast top");
        assert_eq!(situation.also().as_deref(), Some("start `codex`, type /hooks"));
        let claude = situation.clients.remove(0);
        assert_eq!((situation.next().as_str(), situation.also()), ("start `codex`, type /hooks", None));
        situation.clients.insert(0, claude);
        situation.is_outdated = true;
        assert_eq!(situation.next(), "steadfast setup");
        situation.clients[0].version = Some("2.0.1".to_owned());
        assert!(situation.next().starts_with("claude update "), "{}", situation.next());
        situation.need = Some("steadfast pipeline approve ship".to_owned());
        assert_eq!(situation.next(), "steadfast pipeline approve ship");
        situation.trouble = Some("the store is damaged".to_owned());
        assert_eq!(situation.next(), "steadfast doctor");
    }
}
