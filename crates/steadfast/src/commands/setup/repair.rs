//! `steadfast doctor --fix`: sets up again what was set up before, with the choices of then. Only what differs is written.

use steadfast_hosts::adapter;
use steadfast_hosts::install::{self, SetupLock, is_set_up};
use steadfast_model::host::Host;
use steadfast_model::text;
use steadfast_system::paths::Paths;

use super::{SetupSummary, of_host, service};
use crate::cli::{SERVICE, SetupArgs};
use crate::error::CliError;

/// What was repaired, and what could not be, in sentences.
#[derive(Debug, Default)]
pub(crate) struct Repairs {
    pub(crate) done: Vec<String>,
    pub(crate) failed: Vec<String>,
}

pub(crate) fn repair(paths: &Paths) -> Result<Repairs, CliError> {
    let mut repairs = Repairs::default();
    let arguments = SetupArgs { keeps_choices: true, ..SetupArgs::default() };
    let lock = SetupLock::take(&paths.home)?;
    let strays = install::remove_strays(&paths.home, Some(&lock));
    repairs.done.extend(strays.iter().map(|path| format!("removed the unfinished file {}", path.display())));
    for host in Host::ALL.iter().copied().filter(|host| is_set_up(&paths.home, host.name())) {
        let mut summary = SetupSummary::default();
        let done = of_host(host, paths, &[], &arguments, &mut summary);
        repairs.note(host.capabilities().product, &summary, done);
        let config_dirs = (adapter(host).config_dirs)();
        let notes = config_dirs.iter().filter_map(|config_dir| (adapter(host).install_note)(config_dir, false));
        repairs.failed.extend(notes);
    }
    if is_set_up(&paths.home, SERVICE) {
        let mut summary = SetupSummary::default();
        let done = service::install(paths, &arguments, &mut summary);
        repairs.note(service::SHOWN_AS, &summary, done);
    }
    Ok(repairs)
}

impl Repairs {
    fn note(&mut self, product: &str, summary: &SetupSummary, done: Result<(), CliError>) {
        let files = summary.files.len();
        if files > 0 {
            let files = text::count(files, "file");
            self.done.push(format!("set up {product} again ({files})"));
        }
        if let Err(error) = done {
            self.failed.push(format!("{product}: {} ({})", error.message, error.hint));
        }
    }
}
