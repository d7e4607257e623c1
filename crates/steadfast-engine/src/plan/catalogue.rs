//! Where loop types and pipelines come from: the project's `.claude`, the user's home, and built in, in that order. Reads
//! are bounded, and a prompt is never read from outside of its loop type's folder, because it is sent to a model.

use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use steadfast_model::run::RunKind;
use steadfast_model::run::name::RunName;
use steadfast_model::text;
use steadfast_system::bounded;
use steadfast_system::folder::{self, is_file};

use super::PlanError;
use super::builtin::BUILT_IN;
use super::yaml::{self, Yaml};

const MAX_PROMPT: u64 = 1 << 20;
/// A folder with more entries does not hold definitions.
const MAX_ENTRIES: usize = 1_000;
const PIPELINE_ENDS: [&str; 2] = [".yaml", ".yml"];

/// The places that are searched.
#[derive(Debug, Clone)]
pub struct Catalogue {
    pub project: PathBuf,
    /// `$STEADFAST_HOME`.
    pub home: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionOrigin {
    /// Named by its path.
    Path,
    Project,
    User,
    BuiltIn,
}

/// One line of `loop types` or `pipeline types`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedDefinition {
    pub name: String,
    pub description: Option<String>,
    pub origin: DefinitionOrigin,
    /// The file; for built-in ones a name in angle brackets.
    pub file: String,
}

/// A definition before it is read.
#[derive(Debug, Clone)]
pub(super) struct DefinitionSource {
    /// The name of the folder or file, without its extension.
    pub(super) name: String,
    pub(super) origin: DefinitionOrigin,
    pub(super) file: String,
    pub(super) bytes: Vec<u8>,
    pub(super) prompts: Prompts,
}

/// Where the prompts of a loop type are.
#[derive(Debug, Clone)]
pub(super) enum Prompts {
    Folder(PathBuf),
    BuiltIn(&'static [(&'static str, &'static str)]),
}

impl Catalogue {
    /// Finds a loop type by its name, or by the path of its folder.
    pub(super) fn find_loop(&self, name: &str) -> Result<DefinitionSource, PlanError> {
        if name.contains('/') {
            let path: PathBuf = self.project.join(name).components().collect();
            return match loop_file(&path)? {
                Some(file) => read(RunKind::Loop, &file, DefinitionOrigin::Path),
                None if path.exists() => Err(PlanError::NoDefinition { path }),
                None => Err(PlanError::Missing { path }),
            };
        }
        match self.find(RunKind::Loop, name)? {
            Some(source) => Ok(source),
            None => Err(self.unknown(RunKind::Loop, name)?),
        }
    }

    /// Finds a pipeline by its path or name. A bare word is never a path: a repository could put a file of that name
    /// where a built-in pipeline is expected.
    pub(super) fn find_pipeline(&self, file: &str) -> Result<DefinitionSource, PlanError> {
        // Without a `.` in the middle.
        let path: PathBuf = self.project.join(file).components().collect();
        if is_path(file) && is_file(&path)? {
            return read(RunKind::Pipeline, &path, DefinitionOrigin::Path);
        }
        match self.find(RunKind::Pipeline, file)? {
            Some(source) => Ok(source),
            None if !file.is_empty() && path.is_dir() => Err(PlanError::IsDirectory { path }),
            None if !file.is_empty() && path.is_file() => Err(PlanError::NeedsSlash { name: file.to_owned() }),
            None if file.contains('/') => Err(PlanError::Missing { path }),
            None => Err(self.unknown(RunKind::Pipeline, file)?),
        }
    }

    /// The folders of definitions, with those of the project first.
    fn folders(&self, kind: RunKind) -> Vec<(DefinitionOrigin, PathBuf)> {
        let of_project = folders_of_project(kind).map(|folder| (DefinitionOrigin::Project, self.project.join(folder)));
        of_project.into_iter().chain([(DefinitionOrigin::User, self.home.join(format!("{kind}s")))]).collect()
    }

    /// The definitions in the project's own folders, as paths in the project: folders of loop types, files of pipelines.
    pub(super) fn files_of_project(&self, kind: RunKind) -> io::Result<Vec<String>> {
        let mut files = Vec::new();
        for place in folders_of_project(kind) {
            files.extend(self.files_in(kind, &place)?);
        }
        Ok(files)
    }

    fn files_in(&self, kind: RunKind, place: &str) -> io::Result<Vec<String>> {
        let folder = self.project.join(place);
        let mut files = Vec::new();
        for name in folder::names(&folder, MAX_ENTRIES)? {
            let is_definition = match kind {
                RunKind::Loop => loop_file(&folder.join(&name))?.is_some(),
                RunKind::Pipeline => is_pipeline(&name) && is_file(&folder.join(&name))?,
            };
            files.extend(is_definition.then(|| format!("{place}/{name}")));
        }
        Ok(files)
    }

    fn find(&self, kind: RunKind, name: &str) -> Result<Option<DefinitionSource>, PlanError> {
        if name.parse::<RunName>().is_err() {
            return Ok(None);
        }
        for (origin, folder) in self.folders(kind) {
            if let Some(file) = file_in(kind, &folder, name)? {
                return read(kind, &file, origin).map(Some);
            }
        }
        Ok(built_in(kind, name))
    }

    /// The error for a name that is not found. The names that exist may not be readable, which is another error.
    fn unknown(&self, kind: RunKind, name: &str) -> Result<PlanError, PlanError> {
        let known = self.list(kind)?.into_iter().map(|listed| listed.name).collect();
        Ok(PlanError::NoDefinitionNamed { kind, name: name.to_owned(), known, above: self.project_above() })
    }

    /// The nearest directory above this one with runs or definitions, if this one has none.
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

    /// Whether a definition of the project would replace the user's or a built-in one.
    pub(super) fn shadows(&self, kind: RunKind, name: &str) -> io::Result<bool> {
        let home = self.home.join(format!("{kind}s"));
        Ok(file_in(kind, &home, name)?.is_some() || built_in(kind, name).is_some())
    }

    /// All definitions; of several with one name, the one that is used.
    pub fn list(&self, kind: RunKind) -> Result<Vec<ListedDefinition>, PlanError> {
        let mut sources = Vec::new();
        for (origin, folder) in self.folders(kind) {
            let names = folder::names(&folder, MAX_ENTRIES)?.into_iter().filter(|name| name.parse::<RunName>().is_ok());
            for name in names.filter(|name| kind == RunKind::Loop || is_pipeline(name)) {
                if let Some(file) = file_in(kind, &folder, &name)? {
                    sources.push(read(kind, &file, origin)?);
                }
            }
        }
        for built_in in BUILT_IN.iter().filter(|built_in| built_in.kind == kind) {
            sources.extend(self.find(kind, built_in.name)?);
        }
        let mut listed: Vec<ListedDefinition> = Vec::new();
        for DefinitionSource { name, origin, file, bytes, .. } in sources {
            if listed.iter().all(|other| other.name != name) {
                let description = yaml::parse(&bytes).ok().and_then(|node| describe(&node));
                listed.push(ListedDefinition { name, description, origin, file });
            }
        }
        Ok(listed)
    }
}

/// The folders of a project that hold definitions. The second is where an older tool keeps them.
fn folders_of_project(kind: RunKind) -> [String; 2] {
    let of_other_tool = match kind {
        RunKind::Loop => "scripts/stages",
        RunKind::Pipeline => "scripts/pipelines",
    };
    [format!(".claude/{kind}s"), of_other_tool.to_owned()]
}

fn is_path(word: &str) -> bool {
    word.contains('/') || is_pipeline(&word.to_ascii_lowercase())
}

fn is_pipeline(name: &str) -> bool {
    PIPELINE_ENDS.iter().any(|end| name.ends_with(end))
}

fn describe(node: &yaml::Node) -> Option<String> {
    let Yaml::Map(entries) = &node.value else { return None };
    match &entries.iter().find(|entry| entry.key == "description")?.node.value {
        Yaml::Text(description) => Some(text::headline(description.trim(), 200)),
        _ => None,
    }
}

/// A built-in definition by its name, or by that of its file.
fn built_in(kind: RunKind, name: &str) -> Option<DefinitionSource> {
    let found = BUILT_IN.iter().find(|found| found.kind == kind && (found.name == name || found.path == name))?;
    Some(DefinitionSource {
        name: found.name.to_owned(),
        origin: DefinitionOrigin::BuiltIn,
        file: format!("<built in>/{kind}s/{}", found.path),
        bytes: found.yaml.into(),
        prompts: Prompts::BuiltIn(found.prompts),
    })
}

/// The file of a definition in a folder of them.
fn file_in(kind: RunKind, folder: &Path, name: &str) -> io::Result<Option<PathBuf>> {
    match kind {
        RunKind::Loop => loop_file(&folder.join(name)),
        RunKind::Pipeline => first_file(["", ".yaml", ".yml"].map(|end| folder.join(format!("{name}{end}")))),
    }
}

fn loop_file(folder: &Path) -> io::Result<Option<PathBuf>> {
    first_file(["loop.yaml", "stage.yaml"].map(|file| folder.join(file)))
}

fn first_file<const N: usize>(files: [PathBuf; N]) -> io::Result<Option<PathBuf>> {
    for file in files {
        if is_file(&file)? {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

fn read(kind: RunKind, file: &Path, origin: DefinitionOrigin) -> Result<DefinitionSource, PlanError> {
    let (name, prompts) = match (kind, file.parent()) {
        (RunKind::Loop, Some(folder)) => (folder.file_name(), Prompts::Folder(folder.to_owned())),
        _ => (file.file_stem(), Prompts::BuiltIn(&[])),
    };
    let name = name.unwrap_or_default().to_string_lossy().into_owned();
    // One byte more than allowed, so that the parser sees that it is too large.
    let bytes = match bounded::start_of(file, yaml::MAX_BYTES as u64 + 1) {
        Ok(part) => part.bytes,
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            return Err(PlanError::NotAFile { path: file.to_owned() });
        }
        Err(error) => return Err(error.into()),
    };
    Ok(DefinitionSource { name, origin, file: file.display().to_string(), bytes, prompts })
}

/// Why there is no prompt.
#[derive(Debug)]
pub(super) enum PromptFault {
    /// The definition is wrong.
    Wrong { what: String, fix: String },
    /// It cannot be read, right or wrong.
    Io(io::Error),
}

impl From<io::Error> for PromptFault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl PromptFault {
    fn fault(what: String, fix: impl Into<String>) -> Self {
        Self::Wrong { what, fix: fix.into() }
    }
}

impl Prompts {
    /// The text of a prompt and its file. `name` is the value of `prompt:`.
    pub(super) fn read(&self, name: Option<&str>) -> Result<(String, String), PromptFault> {
        let wanted = name.unwrap_or("prompt");
        let is_plain = Path::new(wanted).components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || wanted.is_empty() {
            let what = format!("the prompt `{wanted}` is not in the loop type's folder");
            return Err(PromptFault::fault(what, "name a file in it"));
        }
        let stem = wanted.strip_suffix(".md").unwrap_or(wanted);
        let stem = stem.strip_prefix("prompts/").unwrap_or(stem);
        let files = [format!("prompts/{stem}.md"), format!("{stem}.md")];
        match self {
            Self::BuiltIn(prompts) => {
                for file in &files {
                    if let Some((_, text)) = prompts.iter().find(|(name, _)| name == file) {
                        return Ok(((*text).to_owned(), format!("<built in>/{file}")));
                    }
                }
            }
            Self::Folder(folder) => {
                for path in files.iter().map(|file| folder.join(file)) {
                    if folder::entry(&path)?.is_some() {
                        return read_prompt(folder, &path).map(|text| (text, path.display().to_string()));
                    }
                }
            }
        }
        let fix = format!("create `{}` or `{}`", files[1], files[0]);
        Err(PromptFault::fault(format!("there is no prompt `{wanted}`"), fix))
    }
}

fn read_prompt(folder: &Path, path: &Path) -> Result<String, PromptFault> {
    let shown = path.display();
    if !fs_err::canonicalize(path)?.starts_with(fs_err::canonicalize(folder)?) {
        let what = format!("`{shown}` is a link that leaves its folder");
        return Err(PromptFault::fault(what, "put the prompt into the folder"));
    }
    let bytes = match bounded::start_of(path, MAX_PROMPT + 1) {
        Ok(part) => part.bytes,
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            return Err(PromptFault::fault(error.to_string(), "put the text into a plain file"));
        }
        Err(error) => return Err(error.into()),
    };
    if bytes.len() as u64 > MAX_PROMPT {
        return Err(PromptFault::fault(format!("`{shown}` is larger than {MAX_PROMPT} bytes"), "shorten it"));
    }
    String::from_utf8(bytes).map_err(|_| PromptFault::fault(format!("`{shown}` is not UTF-8 text"), "save it as UTF-8"))
}
