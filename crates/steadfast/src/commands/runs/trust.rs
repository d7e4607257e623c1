//! Whose commands a run executes. Loop types and pipelines of a repository may name commands. Who asks for one by a name
//! that only the repository has means the repository's, and is told what it runs. One that takes the place of a built-in
//! or of the user's own may be a surprise: it runs only after the user said so once, and only as long as it stays the same.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use steadfast_core::host::process;
use steadfast_core::run::{AgentKind, AgentPlan, Plan, Rule, RunKind, StagePlan};
use steadfast_core::text;
use steadfast_engine::plan::{Catalogue, Located, Origin, Overrides, plan_loop, plan_pipeline};

use super::Here;
use crate::failure::{Failure, code};
use crate::output;

/// What is about to run.
#[derive(Debug, Clone, Copy)]
pub(in crate::commands) enum Definition<'a> {
    Loop(&'a str),
    Pipeline(&'a str),
}

/// The most commands that a note names, and the most characters of each.
const MOST_NAMED: usize = 10;
const LONGEST_NAMED: usize = 200;

/// A definition of the repository that runs commands.
struct Suspect {
    kind: RunKind,
    /// It stands in the place of one that the user may have meant.
    shadows: bool,
    path: PathBuf,
    sha256: String,
    commands: Vec<String>,
}

/// Tells which commands of the repository run. Where its definition takes the place of another, they are refused until
/// the user has allowed them; `is_given` allows them from now on.
pub(in crate::commands) fn require_trust(
    here: &Here,
    catalogue: &Catalogue,
    definition: Definition<'_>,
    is_given: bool,
) -> Result<(), Failure> {
    let suspects = match definition {
        Definition::Loop(name) => suspect_loop(here, catalogue, name)?.into_iter().collect(),
        Definition::Pipeline(file) => suspects_of_pipeline(here, catalogue, file)?,
    };
    let (suspects, told): (Vec<Suspect>, Vec<Suspect>) = suspects.into_iter().partition(|suspect| suspect.shadows);
    allow(here, &suspects, is_given)?;
    for suspect in told.iter().chain(&suspects) {
        output::note(&format!("note: this project's own {} runs: {}", suspect.kind, named(&suspect.commands)));
    }
    Ok(())
}

/// The commands on one line.
fn named(commands: &[String]) -> String {
    let words = |command: &String| command.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = |command: &String| format!("`{}`", text::headline(&words(command), LONGEST_NAMED));
    let mut shown: Vec<String> = commands.iter().take(MOST_NAMED).map(shown).collect();
    if commands.len() > MOST_NAMED {
        shown.push(format!("and {} more", commands.len() - MOST_NAMED));
    }
    shown.join(", ")
}

fn allow(here: &Here, suspects: &[Suspect], is_given: bool) -> Result<(), Failure> {
    if suspects.is_empty() {
        return Ok(());
    }
    let ledger = here.paths.home.join("trust.json");
    let mut trusted = read(&ledger)?;
    let is_trusted = |suspect: &Suspect| trusted.get(&key(&suspect.path)) == Some(&suspect.sha256);
    if let Some(suspect) = suspects.iter().find(|suspect| !is_trusted(suspect) && !is_given) {
        let known = trusted.contains_key(&key(&suspect.path));
        let changed = if known { " and has changed since you trusted it" } else { "" };
        let first = suspect.commands.first().map(|command| text::headline(command, 80)).unwrap_or_default();
        return Err(Failure::new(
            code::WRONG_STATE,
            format!(
                "{} takes the place of another {} of that name and runs commands (`{first}`){changed}",
                suspect.path.display(),
                suspect.kind
            ),
            "read it, then say `--trust` once; it holds until the file changes",
        ));
    }
    if is_given {
        if process::is_inside_agent() {
            let hint = "run it in a terminal of your own";
            return Err(Failure::new(code::WRONG_STATE, "an agent may not trust commands", hint));
        }
        trusted.extend(suspects.iter().map(|suspect| (key(&suspect.path), suspect.sha256.clone())));
        write(&ledger, &trusted)?;
    }
    Ok(())
}

fn suspect_loop(here: &Here, catalogue: &Catalogue, name: &str) -> Result<Option<Suspect>, Failure> {
    let located = catalogue.locate_loop(name)?;
    if !is_of_repository(here, &located) {
        return Ok(None);
    }
    // The name only has to be one.
    let plan = plan_loop(catalogue, name, Some("name"), &Overrides::default())?.plan;
    let commands = plan.stages.iter().flat_map(commands_of).collect();
    Ok(suspect(RunKind::Loop, &located, catalogue.shadows_loop(&located.name), commands))
}

fn suspects_of_pipeline(here: &Here, catalogue: &Catalogue, file: &str) -> Result<Vec<Suspect>, Failure> {
    let located = catalogue.locate_pipeline(file)?;
    let plan: Plan = plan_pipeline(catalogue, file, Some("name"), &Overrides::default(), here.now)?.plan;
    let mut suspects: Vec<Suspect> = Vec::new();
    let mut own = Vec::new();
    for stage in &plan.stages {
        let mut of_loop = Vec::new();
        if let Some(name) = &stage.loop_type {
            of_loop = plan_loop(catalogue, name, Some("name"), &Overrides::default())
                .map(|planned| planned.plan.stages.iter().flat_map(commands_of).collect())
                .unwrap_or_default();
            let suspect = suspect_loop(here, catalogue, name)?;
            suspects.extend(suspect.filter(|found| suspects.iter().all(|known| known.path != found.path)));
        }
        own.extend(commands_of(stage).into_iter().filter(|command| !of_loop.contains(command)));
    }
    if is_of_repository(here, &located) {
        let shadows = catalogue.shadows_pipeline(&located.name);
        suspects.extend(suspect(RunKind::Pipeline, &located, shadows, own));
    }
    Ok(suspects)
}

fn suspect(kind: RunKind, located: &Located, shadows: bool, commands: Vec<String>) -> Option<Suspect> {
    (!commands.is_empty()).then(|| Suspect {
        kind,
        shadows,
        path: PathBuf::from(&located.file),
        sha256: located.sha256.clone(),
        commands,
    })
}

/// What is in `.claude` came with the repository. A file that somebody named by its path was chosen, like a script.
fn is_of_repository(here: &Here, located: &Located) -> bool {
    let is_below = |path: &Path| path.starts_with(here.project.join(".claude"));
    let path = Path::new(&located.file);
    match located.origin {
        Origin::Project => true,
        Origin::Path => is_below(&fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned())) || is_below(path),
        Origin::User | Origin::BuiltIn => false,
    }
}

fn commands_of(stage: &StagePlan) -> Vec<String> {
    let mut commands = Vec::new();
    add_rule(&stage.completion, &mut commands);
    add_agent(&stage.agent, &mut commands);
    if let Some(judge) = &stage.judge {
        add_agent(judge, &mut commands);
    }
    commands
}

fn add_rule(rule: &Rule, commands: &mut Vec<String>) {
    match rule {
        Rule::Command(command) => commands.push(command.clone()),
        Rule::Verify(more) => commands.extend(more.iter().cloned()),
        Rule::Any(rules) | Rule::All(rules) => rules.iter().for_each(|rule| add_rule(rule, commands)),
        Rule::FixedN
        | Rule::AllItems
        | Rule::Plateau(_)
        | Rule::BeadsEmpty(_)
        | Rule::Promise(_)
        | Rule::Checklist(_) => {}
    }
}

fn add_agent(agent: &AgentPlan, commands: &mut Vec<String>) {
    if let AgentKind::Command(words) = &agent.kind {
        commands.push(words.join(" "));
    }
}

fn key(path: &Path) -> String {
    fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}

fn read(ledger: &Path) -> Result<BTreeMap<String, String>, Failure> {
    match fs_err::read(ledger) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("{} cannot be read: {error}", ledger.display());
            Failure::new(code::ENVIRONMENT, message, "remove it; what you trusted has to be trusted again")
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(error.into()),
    }
}

fn write(ledger: &Path, trusted: &BTreeMap<String, String>) -> Result<(), Failure> {
    use std::io::Write as _;
    let directory = ledger.parent().unwrap_or(Path::new("."));
    steadfast_core::paths::create_private_dir(directory)?;
    // Such files are only their owner's to read.
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    serde_json::to_writer_pretty(&mut file, trusted).map_err(std::io::Error::from)?;
    file.write_all(b"\n")?;
    file.as_file().sync_all()?;
    file.persist(ledger).map_err(|error| error.error)?;
    Ok(())
}
