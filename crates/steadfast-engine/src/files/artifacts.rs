//! Copies of artifacts, beside the other files of their run.

use std::path::PathBuf;

use steadfast_model::run::RunKind;

use super::document::{CLAUDE, replace};
use super::{FilesError, PIPELINES, PublicFiles};

impl PublicFiles {
    /// The path of a copy; `iteration` is its number in a parallel stage.
    pub(crate) fn artifact_file(&self, name: &str, iteration: Option<u32>) -> Result<PathBuf, FilesError> {
        self.place.file(&self.artifact_parts(name, iteration))
    }

    pub(crate) fn save_artifact(
        &self,
        name: &str,
        iteration: Option<u32>,
        content: &[u8],
    ) -> Result<PathBuf, FilesError> {
        let path = self.place.file_to_write(&self.artifact_parts(name, iteration))?;
        replace(&path, content)?;
        Ok(path)
    }

    fn artifact_parts(&self, name: &str, iteration: Option<u32>) -> Vec<String> {
        let file = iteration.map_or_else(|| name.to_owned(), |iteration| format!("{name}-{iteration}"));
        self.artifact_folder().into_iter().chain([file]).collect()
    }

    pub(super) fn artifact_folder(&self) -> Vec<String> {
        match self.kind {
            RunKind::Loop => vec![CLAUDE.to_owned(), "loop-progress".to_owned(), format!("artifacts-{}", self.name)],
            RunKind::Pipeline => {
                vec![CLAUDE.to_owned(), PIPELINES.to_owned(), self.name.clone(), "artifacts".to_owned()]
            }
        }
    }
}
