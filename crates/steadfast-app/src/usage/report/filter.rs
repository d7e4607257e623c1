//! Which sums a report includes.

use std::path::{Component, Path, PathBuf};

use jiff::civil::Date;

use crate::usage::summary::UsageSession;

/// Which sums to include.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// The first and the last day.
    pub since: Option<Date>,
    pub until: Option<Date>,
    pub project: Option<ProjectFilter>,
    /// A session's id, or the beginning of it.
    pub session: Option<String>,
    /// Whether rows have their parts by model.
    pub breakdown: bool,
}

impl Filter {
    pub(super) fn matches(&self, session: &UsageSession) -> bool {
        self.project.as_ref().is_none_or(|project| project.matches(&session.project))
            && self.session.as_ref().is_none_or(|id| session.id.starts_with(id.as_str()))
    }

    /// Whether a day is included. What has no day is included only if no day is asked for.
    pub fn has_day(&self, day: Option<Date>) -> bool {
        let Some(day) = day else { return self.since.is_none() && self.until.is_none() };
        self.since.is_none_or(|since| day >= since) && self.until.is_none_or(|until| day <= until)
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
