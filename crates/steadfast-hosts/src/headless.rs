//! Starting a host's agent without a terminal.

use std::path::Path;

use steadfast_model::host::Host;

/// Files of [`HeadlessCommand::files`] that hold credentials; they are removed when the agent has ended.
pub const PRIVATE_FILES: [&str; 1] = ["settings.json"];

/// What an agent is started with.
#[derive(Debug, Clone, Copy)]
pub struct HeadlessRequest<'a> {
    pub program: &'a str,
    pub model: Option<&'a str>,
    pub effort: Option<&'a str>,
    /// Let the user's own hooks and plugins run inside the agent.
    pub user_hooks: bool,
    /// Use the client's own sandbox instead of `permission_flags`.
    pub sandbox: bool,
    /// Flags that grant permissions; `None` grants all of them.
    pub permission_flags: Option<&'a [String]>,
    /// Further flags.
    pub flags: &'a [String],
    /// The attempt's directory, where the agent writes its result.
    pub directory: &'a Path,
}

/// The words of a command, and the files that it expects in the attempt's directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeadlessCommand {
    pub argv: Vec<String>,
    pub files: Vec<(&'static str, String)>,
}

impl HeadlessCommand {
    pub(crate) fn new(program: &str) -> Self {
        Self { argv: vec![program.to_owned()], files: Vec::new() }
    }

    pub(crate) fn add<S: AsRef<str>>(&mut self, words: &[S]) {
        self.argv.extend(words.iter().map(|word| word.as_ref().to_owned()));
    }

    /// Adds the flags that grant permissions.
    pub(crate) fn add_permissions(&mut self, request: &HeadlessRequest<'_>, host: Host) {
        match request.permission_flags {
            _ if request.sandbox => self.add(host.capabilities().sandbox_flags),
            Some(flags) => self.add(flags),
            None => self.add(&[host.capabilities().all_permissions_flag]),
        }
    }

    /// Lets the agent write its result also if it does not have all permissions.
    pub(crate) fn add_directory(&mut self, request: &HeadlessRequest<'_>) {
        self.add(&["--add-dir".to_owned(), request.directory.display().to_string()]);
    }
}

/// One more turn of a closed session.
#[derive(Debug, Clone, Copy)]
pub struct ResumeRequest<'a> {
    pub session_id: &'a str,
    pub prompt: &'a str,
    pub directory: &'a Path,
    /// The `steadfast` executable, for hooks.
    pub steadfast: &'a Path,
    /// Flags from the configuration. Without any, the agent may do what the user's own settings allow.
    pub flags: &'a [String],
}
