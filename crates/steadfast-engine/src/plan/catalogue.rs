//! Where loop types and pipelines come from: the project's `.claude`, the user's home, and what is built in, in that
//! order. Files are read bounded, and a prompt never from outside of its loop type's folder, since it is sent to a model.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use steadfast_model::run::name::RunName;
use steadfast_system::bounded;

use super::builtin;
use super::{PlanError, yaml};

const MOST_PROMPT: u64 = 1 << 20;
/// A folder with more entries is not one of definitions.
const MOST_ENTRIES: usize = 1_000;
const LOOP_FILES: [&str; 2] = ["loop.yaml", "stage.yaml"];
const PIPELINE_ENDS: [&str; 2] = [".yaml", ".yml"];

/// The places that are searched.
#[derive(Debug, Clone)]
pub struct Catalogue {
    /// The project's directory.
    pub project: PathBuf,
    /// `$STEADFAST_HOME`.
    pub home: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Named by its path.
    Path,
    Project,
    User,
    BuiltIn,
}

/// One line of `loop types` or `pipeline types`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    pub description: Option<String>,
    pub origin: Origin,
    /// The file; for built-in ones a name in angle brackets.
    pub file: String,
}

/// A definition before it is read.
#[derive(Debug, Clone)]
pub(super) struct Source {
    /// Its name among definitions, however it was asked for.
    pub(super) name: String,
    pub(super) origin: Origin,
    pub(super) file: String,
    pub(super) bytes: Vec<u8>,
    pub(super) prompts: Prompts,
}

/// Where the prompts of a loop type are.
#[derive(Debug, Clone)]
pub(super) enum Prompts {
    None,
    Folder(PathBuf),
    BuiltIn(&'static [(&'static str, &'static str)]),
}

impl Catalogue {
    fn folders(&self, what: &str) -> [(Origin, PathBuf); 2] {
        [(Origin::Project, self.project.join(".claude").join(what)), (Origin::User, self.home.join(what))]
    }

    /// Finds a loop type by its name, or by the path of its folder.
    pub(super) fn find_loop(&self, name: &str) -> Result<Source, PlanError> {
        if name.contains('/') {
            let path = self.project.join(name);
            let is_there = path.exists();
            return loop_in(&path, Origin::Path)?.ok_or(if is_there {
                PlanError::NoDefinition { path }
            } else {
                PlanError::Missing { path }
            });
        }
        if name.parse::<RunName>().is_ok() {
            for (origin, folder) in self.folders("loops") {
                if let Some(source) = loop_in(&folder.join(name), origin)? {
                    return Ok(source);
                }
            }
            if let Some(found) = builtin::LOOPS.iter().find(|found| found.name == name) {
                return Ok(Source {
                    name: name.to_owned(),
                    origin: Origin::BuiltIn,
                    file: format!("<built in>/loops/{name}/loop.yaml"),
                    bytes: found.yaml.as_bytes().to_vec(),
                    prompts: Prompts::BuiltIn(found.prompts),
                });
            }
        }
        Err(self.no_loop(name))
    }

    fn no_loop(&self, name: &str) -> PlanError {
        PlanError::NoLoopType { name: name.to_owned(), known: names(self.loop_types()), above: self.project_above() }
    }

    /// Finds a pipeline: a path, then its name in the project, the home, and what is built in.
    pub(super) fn find_pipeline(&self, file: &str) -> Result<Source, PlanError> {
        let ends = || std::iter::once("").chain(PIPELINE_ENDS);
        let as_given = self.project.join(file);
        if !file.is_empty() && as_given.is_file() {
            return pipeline_at(&as_given, Origin::Path);
        }
        if file.parse::<RunName>().is_ok() {
            for (origin, folder) in self.folders("pipelines") {
                for end in ends() {
                    let path = folder.join(format!("{file}{end}"));
                    if path.is_file() {
                        return pipeline_at(&path, origin);
                    }
                }
            }
            let stem = PIPELINE_ENDS.iter().find_map(|end| file.strip_suffix(end)).unwrap_or(file);
            if let Some((name, yaml)) = builtin::PIPELINES.iter().find(|(name, _)| *name == stem) {
                return Ok(Source {
                    name: (*name).to_owned(),
                    origin: Origin::BuiltIn,
                    file: format!("<built in>/pipelines/{name}.yaml"),
                    bytes: yaml.as_bytes().to_vec(),
                    prompts: Prompts::None,
                });
            }
        }
        if !file.is_empty() && as_given.is_dir() {
            return Err(PlanError::IsDirectory { path: as_given });
        }
        if file.contains('/') {
            return Err(PlanError::Missing { path: as_given });
        }
        let (known, above) = (names(self.pipelines()), self.project_above());
        Err(PlanError::NoPipeline { name: file.to_owned(), known, above })
    }

    /// The nearest directory above this one with runs or definitions, if this one has none: somebody went down into it.
    pub fn project_above(&self) -> Option<PathBuf> {
        let is_project = |directory: &&Path| {
            let own = directory.join(".claude");
            ["loops", "pipelines", "loop-sessions.json"].iter().any(|part| own.join(part).exists())
        };
        let mut places = self.project.ancestors();
        if places.next().as_ref().is_some_and(is_project) {
            return None;
        }
        places.find(is_project).map(Path::to_owned)
    }

    /// Whether a loop type of the project would take the place of the user's or of a built-in one.
    pub(super) fn shadows_loop(&self, name: &str) -> bool {
        let own = self.home.join("loops").join(name);
        LOOP_FILES.iter().any(|file| own.join(file).is_file()) || builtin::LOOPS.iter().any(|found| found.name == name)
    }

    /// Whether a pipeline of the project would take the place of the user's or of a built-in one.
    pub(super) fn shadows_pipeline(&self, name: &str) -> bool {
        let own = self.home.join("pipelines");
        let ends = || std::iter::once("").chain(PIPELINE_ENDS);
        ends().any(|end| own.join(format!("{name}{end}")).is_file())
            || builtin::PIPELINES.iter().any(|(found, _)| *found == name)
    }

    /// All loop types; of several with one name, the one that is used.
    pub fn loop_types(&self) -> Vec<Listed> {
        let mut listed = Vec::new();
        for (origin, folder) in self.folders("loops") {
            for name in entries(&folder) {
                let Ok(Some(source)) = loop_in(&folder.join(&name), origin) else { continue };
                add(&mut listed, name, &source);
            }
        }
        for found in builtin::LOOPS {
            let Ok(source) = self.find_loop(found.name) else { continue };
            add(&mut listed, found.name.to_owned(), &source);
        }
        listed
    }

    /// All pipelines; of several with one name, the one that is used.
    pub fn pipelines(&self) -> Vec<Listed> {
        let mut listed = Vec::new();
        for (origin, folder) in self.folders("pipelines") {
            for file in entries(&folder) {
                let Some(name) = PIPELINE_ENDS.iter().find_map(|end| file.strip_suffix(end)) else { continue };
                let Ok(source) = pipeline_at(&folder.join(&file), origin) else { continue };
                add(&mut listed, name.to_owned(), &source);
            }
        }
        for (name, _) in builtin::PIPELINES {
            let Ok(source) = self.find_pipeline(name) else { continue };
            add(&mut listed, (*name).to_owned(), &source);
        }
        listed
    }
}

fn names(listed: Vec<Listed>) -> Vec<String> {
    listed.into_iter().map(|listed| listed.name).collect()
}

fn add(listed: &mut Vec<Listed>, name: String, source: &Source) {
    if listed.iter().all(|other| other.name != name) {
        let description = yaml::parse(&source.bytes).ok().and_then(|node| describe(&node));
        listed.push(Listed { name, description, origin: source.origin, file: source.file.clone() });
    }
}

fn describe(node: &yaml::Node) -> Option<String> {
    let yaml::Yaml::Map(entries) = &node.value else { return None };
    let entry = entries.iter().find(|entry| entry.key == "description")?;
    match &entry.node.value {
        yaml::Yaml::Text(text) => Some(steadfast_model::text::headline(text.trim(), 200)),
        _ => None,
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let names = entries.take(MOST_ENTRIES).flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.parse::<RunName>().is_ok()).collect();
    names.sort();
    names
}

fn loop_in(folder: &Path, origin: Origin) -> Result<Option<Source>, PlanError> {
    let Some(path) = LOOP_FILES.iter().map(|file| folder.join(file)).find(|path| path.is_file()) else {
        return Ok(None);
    };
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let bytes = read_bounded(&path, yaml::MOST_BYTES as u64)?;
    let prompts = Prompts::Folder(folder.to_owned());
    Ok(Some(Source { name, origin, file: path.display().to_string(), bytes, prompts }))
}

fn pipeline_at(path: &Path, origin: Origin) -> Result<Source, PlanError> {
    let bytes = read_bounded(path, yaml::MOST_BYTES as u64)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Source { name, origin, file: path.display().to_string(), bytes, prompts: Prompts::None })
}

/// Reads at most one byte more than allowed, so that the reader can tell; only regular files.
fn read_bounded(path: &Path, most: u64) -> Result<Vec<u8>, PlanError> {
    match bounded::start_of(path, most + 1) {
        Ok(part) => Ok(part.bytes),
        Err(error) if error.kind() == ErrorKind::InvalidInput => Err(PlanError::NotAFile { path: path.to_owned() }),
        Err(error) => Err(error.into()),
    }
}

impl Prompts {
    /// The text of a prompt and its file; an error is what is wrong and how to mend it. `name` is what `prompt:` says.
    pub(super) fn read(&self, name: Option<&str>) -> Result<(String, String), (String, String)> {
        let wanted = name.unwrap_or("prompt");
        let plain = Path::new(wanted).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        if !plain || wanted.is_empty() {
            return Err((
                format!("the prompt `{wanted}` is not in the loop type's folder"),
                "name a file in it".into(),
            ));
        }
        let stem = wanted.strip_suffix(".md").unwrap_or(wanted);
        let stem = stem.strip_prefix("prompts/").unwrap_or(stem);
        let files = [format!("prompts/{stem}.md"), format!("{stem}.md")];
        let fix = format!("create `{}` or `{}`", files[1], files[0]);
        match self {
            Self::None => Err(("there are no prompt files here".into(), "write the prompt itself".into())),
            Self::BuiltIn(prompts) => {
                let found = files.iter().find_map(|file| prompts.iter().find(|(name, _)| name == file));
                let found = found.ok_or_else(|| (format!("there is no prompt `{wanted}`"), fix))?;
                Ok((found.1.to_owned(), format!("<built in>/{}", found.0)))
            }
            Self::Folder(folder) => {
                let path = files.iter().map(|file| folder.join(file)).find(|path| path.exists());
                let path = path.ok_or_else(|| (format!("there is no prompt `{wanted}`"), fix))?;
                read_prompt(folder, &path).map(|text| (text, path.display().to_string()))
            }
        }
    }
}

fn read_prompt(folder: &Path, path: &Path) -> Result<String, (String, String)> {
    let shown = path.display();
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    let inside = real(folder).zip(real(path)).is_some_and(|(folder, path)| path.starts_with(folder));
    if !inside {
        return Err((format!("`{shown}` is a link that leaves its folder"), "put the prompt into the folder".into()));
    }
    let bytes = read_bounded(path, MOST_PROMPT).map_err(|error| (error.to_string(), "make it readable".to_owned()))?;
    if bytes.len() as u64 > MOST_PROMPT {
        return Err((format!("`{shown}` is larger than {MOST_PROMPT} bytes"), "shorten it".into()));
    }
    String::from_utf8(bytes).map_err(|_| (format!("`{shown}` is not UTF-8 text"), "save it as UTF-8".into()))
}
