//! Everything that the hosts wrote on this machine, read as far as it is new.

use std::path::{Path, PathBuf};

use super::collect::{self, Progress, UsageError};
use super::summary::Summary;
use steadfast_hosts::adapter;
use steadfast_model::host::Host;
use steadfast_model::price::Table;
use steadfast_store::Store;
use steadfast_system::paths::Paths;

/// What each of the hosts wrote. `home` has the cache.
pub fn summaries(
    hosts: &[Host],
    home: &Path,
    prices: &Table,
    progress: Progress<'_>,
) -> Result<Vec<(Host, Summary)>, UsageError> {
    let cache = home.join("usage-cache");
    let summary = |host: &Host| {
        let roots = (adapter(*host).transcript_roots)();
        Ok((*host, collect::collect(*host, &roots, &cache.join(host.to_string()), prices, progress)?))
    };
    hosts.iter().map(summary).collect()
}

/// Counts an agent that worked in a worktree of a run for the project of that run.
pub fn name_projects(paths: &Paths, summaries: &mut [(Host, Summary)]) {
    let below = paths.home.join("worktrees");
    let mut places: Vec<PathBuf> = fs_err::canonicalize(&below).into_iter().collect();
    places.push(below);
    let run_of = |project: &str| -> Option<String> {
        let rest = places.iter().find_map(|place| Path::new(project).strip_prefix(place).ok())?;
        Some(rest.components().next()?.as_os_str().to_str()?.to_owned())
    };
    let mut store: Option<Option<Store>> = None;
    for session in summaries.iter_mut().flat_map(|(_, summary)| &mut summary.sessions) {
        let Some(run_id) = run_of(&session.project) else { continue };
        // Without a store the usage is still right, only the project is that of the worktree.
        let store = store.get_or_insert_with(|| Store::open_if_there(&paths.store).ok().flatten());
        let project = store.as_ref().and_then(|store| store.read().project_of_run(&run_id).ok().flatten());
        session.project = project.unwrap_or_else(|| std::mem::take(&mut session.project));
    }
}
