//! Which sums a report includes.

use std::path::{Component, Path, PathBuf};

use jiff::civil::Date;

use crate::usage::summary::UsageSession;

/// Which sums to include.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    pub since: Option<Date>,
    pub project: Option<ProjectFilter>,
}

impl Filter {
    pub(super) fn matches(&self, session: &UsageSession) -> bool {
        self.project.as_ref().is_none_or(|project| project.matches(&session.project))
    }
}

/// The value of `--project`: a directory with everything below it, or the name of a directory anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectFilter {
    Below(PathBuf),
    Named(String),
}

impl ProjectFilter {
    /// Text with a slash, `.` and `..` are paths relative to `here`; any other text is a name.
    pub fn new(text: &str, here: &Path) -> Self {
        if text.contains('/') || matches!(text, "." | "..") {
            Self::Below(plain_path(&here.join(text)))
        } else {
            Self::Named(text.to_owned())
        }
    }

    pub fn matches(&self, project: &str) -> bool {
        match self {
            Self::Below(directory) => Path::new(project).starts_with(directory),
            Self::Named(name) => {
                project == name || Path::new(project).file_name().is_some_and(|last| last == name.as_str())
            }
        }
    }
}

/// A path without `.` and `..`. The project may not exist any more, so the path is not resolved on disk.
fn plain_path(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}
