//! Writes one commit by `git fast-import`: files by their content, and trees and blobs that the mirror has.

use std::io::{Seek as _, SeekFrom};
use std::path::Path;

use steadfast_model::clock;

use super::{GitCall, WorkError};

/// A commit to write.
pub(crate) struct NewCommit {
    parent: Option<String>,
    message: String,
    files: Vec<(String, FileContent)>,
}

enum FileContent {
    Bytes(Vec<u8>),
    /// A blob or a tree that exists.
    Blob(String),
    Tree(String),
}

impl NewCommit {
    /// A commit without a parent if there is none.
    pub(crate) fn on(parent: Option<&str>, message: &str) -> Self {
        Self { parent: parent.map(str::to_owned), message: message.to_owned(), files: Vec::new() }
    }

    pub(crate) fn file(&mut self, path: &str, content: impl Into<Vec<u8>>) -> &mut Self {
        self.files.push((path.to_owned(), FileContent::Bytes(content.into())));
        self
    }

    pub(crate) fn blob(&mut self, path: &str, sha: &str) -> &mut Self {
        self.files.push((path.to_owned(), FileContent::Blob(sha.to_owned())));
        self
    }

    pub(crate) fn tree(&mut self, path: &str, sha: &str) -> &mut Self {
        self.files.push((path.to_owned(), FileContent::Tree(sha.to_owned())));
        self
    }

    /// Writes the commit to a repository, and returns its id. No ref leads to it.
    pub(crate) fn write(&self, repository: &Path) -> Result<String, WorkError> {
        let reference = format!("refs/steadfast/new/{}", uuid::Uuid::new_v4().simple());
        let mut stream = tempfile::tempfile()?;
        self.stream(&reference, &mut std::io::BufWriter::new(&mut stream))?;
        stream.seek(SeekFrom::Start(0))?;
        let import = ["fast-import", "--quiet", "--force", "--done"];
        let sha = GitCall::at(repository).stdin(stream).text(&import)?;
        GitCall::at(repository).text(&["update-ref", "-d", &reference])?;
        if sha.len() < 40 || !sha.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(WorkError::Git { what: "fast-import".to_owned(), message: "it printed no commit".to_owned() });
        }
        Ok(sha)
    }

    fn stream(&self, reference: &str, out: &mut impl std::io::Write) -> std::io::Result<()> {
        let seconds = clock::now() / 1_000;
        writeln!(out, "commit {reference}\nmark :1")?;
        writeln!(out, "committer Steadfast <steadfast@localhost> {seconds} +0000")?;
        writeln!(out, "data {}\n{}", self.message.len(), self.message)?;
        if let Some(parent) = &self.parent {
            writeln!(out, "from {parent}")?;
        }
        for (path, content) in &self.files {
            let path = quoted(path);
            match content {
                FileContent::Bytes(bytes) => {
                    writeln!(out, "M 100644 inline {path}\ndata {}", bytes.len())?;
                    out.write_all(bytes)?;
                    writeln!(out)?;
                }
                FileContent::Blob(sha) => writeln!(out, "M 100644 {sha} {path}")?,
                FileContent::Tree(sha) => writeln!(out, "M 040000 {sha} {path}")?,
            }
        }
        writeln!(out, "\nget-mark :1\ndone")?;
        out.flush()
    }
}

/// A path as fast-import reads it.
fn quoted(path: &str) -> String {
    let mut quoted = String::from("\"");
    for character in path.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            other => quoted.push(other),
        }
    }
    quoted + "\""
}
