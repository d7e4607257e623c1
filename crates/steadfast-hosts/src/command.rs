//! Our commands as users of the hosts type them, and the files by which hosts know them.

use std::path::Path;

use steadfast_system::bounded;

/// Part of every command file that `setup` wrote, in any version.
const MARK: &str = "its hook did not run";
/// Longer than any command file of ours.
const FILE_MAX: u64 = 64 * 1024;

/// One command, the same in every host. Adapters render it as the host wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlashCommand {
    /// Without the host's prefix: `start` for `/goal-start`.
    pub name: &'static str,
    /// What may follow the name, as help shows it.
    pub arguments: &'static str,
    pub description: &'static str,
    pub answered_by: AnsweredBy,
}

/// What answers a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnsweredBy {
    /// The hook, without a call of the model.
    Hook,
    /// The model, which the hook gives something to do.
    Model,
}

/// Whether a command file is ours; `None` if there is none.
pub(crate) fn is_own_file(path: &Path) -> Option<bool> {
    let file = bounded::start_of(path, FILE_MAX).ok()?;
    Some(String::from_utf8_lossy(&file.bytes).contains(MARK))
}

/// Whether a verb can be part of a file's name.
pub(crate) fn is_plain(verb: &str) -> bool {
    verb.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
