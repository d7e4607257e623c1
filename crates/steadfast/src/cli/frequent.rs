//! A fast path for the calls that agents and engines make most often: building the clap command line takes longer than
//! most of these calls. All other calls go through clap.

use std::ffi::OsString;

use steadfast_model::host::Host;

use super::{Cli, CliCommand, SUPERVISOR, StatuslineArgs};

impl Cli {
    pub(crate) fn of_frequent_call(arguments: &[OsString]) -> Option<Self> {
        let words: Vec<&str> = arguments.iter().skip(1).map(|word| word.to_str()).collect::<Option<_>>()?;
        let command = match words.as_slice() {
            ["hook", host] if host.parse::<Host>().is_ok() => {
                CliCommand::Hook { host: (*host).to_owned(), rewake: false, panicked: Vec::new() }
            }
            ["statusline"] => CliCommand::Statusline(StatuslineArgs::default()),
            [SUPERVISOR, directory] if directory.starts_with('/') => CliCommand::Exec { directory: directory.into() },
            _ => return None,
        };
        Some(Self { db: None, json: false, command: Some(command) })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn the_fast_path_parses_like_clap() {
        let calls: &[&[&str]] =
            &[&["hook", "claude"], &["hook", "codex"], &["statusline"], &["__exec", "/home/you/runs/1-1-1"]];
        for call in calls {
            let arguments: Vec<OsString> =
                std::iter::once("steadfast").chain(call.iter().copied()).map(Into::into).collect();
            let quick = Cli::of_frequent_call(&arguments).unwrap();
            assert_eq!(format!("{quick:?}"), format!("{:?}", Cli::try_parse_from(&arguments).unwrap()));
        }
    }

    #[test]
    fn all_other_calls_go_through_clap() {
        let calls: &[&[&str]] = &[
            &[],
            &["hook"],
            &["hook", "cursor"],
            &["hook", "claude", "--rewake"],
            &["--db", "x", "hook", "claude"],
            &["statusline", "--segment"],
            &["__exec", "--help"],
        ];
        for call in calls {
            let arguments: Vec<OsString> =
                std::iter::once("steadfast").chain(call.iter().copied()).map(Into::into).collect();
            assert!(Cli::of_frequent_call(&arguments).is_none(), "{call:?}");
        }
    }
}
