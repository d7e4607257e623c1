//! The folder of an earlier pipeline that was moved aside because a later run has its name. What could not be written
//! into it is written there later.

use serde_json::Value;
use steadfast_model::run::RunKind;

use super::document::{CLAUDE, Document, Edit, FoundDocument, Lock};
use super::place::ProjectPlace;
use super::publishing::{COMPLETIONS, Shown, set_owed};
use super::{FileView, FilesError, PIPELINES, PublicFiles, registry};

/// Between the name of a run and a number, in the name of a folder that was moved aside.
pub(super) const PREVIOUS: &str = "previous";

/// Where the files of an earlier run are.
#[derive(Debug)]
pub(crate) enum Aside {
    /// In a folder of this name.
    Moved(Box<PublicFiles>, String),
    /// Where they always were.
    InPlace,
    /// Nowhere: they were removed.
    Gone,
}

impl PublicFiles {
    /// Finds the folder of an earlier run of a pipeline's name.
    pub(crate) fn aside(self, run_id: &str) -> Result<Aside, FilesError> {
        let mut files = self;
        if files.kind != RunKind::Pipeline {
            return Ok(Aside::Gone);
        }
        if files.shows(run_id)? {
            return Ok(Aside::InPlace);
        }
        for folder in asides_of(&files.place, &files.name)? {
            files.state = Document::new(&[CLAUDE, PIPELINES, &folder, "state.json"], Value::is_object);
            if files.shows(run_id)? {
                files.name.clone_from(&folder);
                return Ok(Aside::Moved(Box::new(files), folder));
            }
        }
        Ok(Aside::Gone)
    }

    /// Lists in the state of a folder that was moved aside what is still owed, and writes the end of its run if that is.
    /// The entry in the registry is that of the later run.
    pub(crate) fn settle_aside(&mut self, view: &FileView<'_>) -> Result<(), FilesError> {
        let lock = Lock::take(&self.place)?;
        let shown = self.state.peek(&self.place)?.map(Shown::of).unwrap_or_default();
        let (mut owed, mut failed) = (self.owed_outputs.clone(), None);
        if shown.owes(COMPLETIONS)
            && let Err(error) = self.publish_end(view, &lock, &mut Vec::new())
        {
            owed.push(COMPLETIONS.to_owned());
            failed = Some(error);
        }
        self.state.update(&self.place, &lock, |found| {
            let FoundDocument::Value(mut state) = found else { return Ok((Edit::Keep(None), ())) };
            let changed = set_owed(&mut state, &owed);
            Ok((Edit::write_if(changed, state), ()))
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// Whether the state lists something that can still be written.
    pub(crate) fn owes_aside(&mut self) -> Result<bool, FilesError> {
        let shown = self.state.peek(&self.place)?.map(Shown::of).unwrap_or_default();
        Ok(shown.owed.iter().any(|file| file != registry::FILE))
    }
}

fn asides_of(place: &ProjectPlace, name: &str) -> Result<Vec<String>, FilesError> {
    let start = format!("{name}.{PREVIOUS}-");
    let Ok(entries) = std::fs::read_dir(place.directory(&[CLAUDE, PIPELINES])?) else { return Ok(Vec::new()) };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|folder| folder.starts_with(&start)).collect();
    names.sort();
    Ok(names)
}
