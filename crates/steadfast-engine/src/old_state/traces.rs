//! What a directory of an older tool has beside the state: the definition, events, and the files of iterations.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use steadfast_model::run::name::RunName;
use steadfast_system::bounded;

use super::read::{MOST_ITERATIONS, number};
use super::{OldStage, StateFault, inside, json_inside, named_file, names_in};

/// Enough for the events that begin a session; only these are asked for.
const EVENTS_READ: u64 = 4 << 20;
/// Where events, contexts and plans say which loop type a stage is of.
const TYPE_KEYS: [&str; 6] = ["loop_type", "stage_type", "template", "ref", "stage", "id"];

/// The directory of a run of an older tool.
#[derive(Debug)]
pub(super) struct Traces<'a> {
    project: &'a Path,
    directory: Option<&'a Path>,
    pub(super) plan: Option<Value>,
    /// The first events. A line that was cut off by a crash is left out.
    events: Vec<Value>,
    /// The first failure of the machine to read something. What is missing or wrong is no such failure.
    unreadable: RefCell<Option<io::Error>>,
}

impl<'a> Traces<'a> {
    pub(super) fn of(project: &'a Path, directory: Option<&'a Path>) -> Result<Self, StateFault> {
        let path = directory.map(|directory| inside(project, &directory.join("events.jsonl"))).transpose()?.flatten();
        let path = path.filter(|path| path.is_file());
        let events = path.map(|path| bounded::start_of(&path, EVENTS_READ)).transpose()?;
        let lines = events.map(|part| String::from_utf8_lossy(&part.bytes).into_owned()).unwrap_or_default();
        let events = lines.lines().filter_map(|line| serde_json::from_slice(line.as_bytes()).ok()).collect();
        let mut traces = Self { project, directory, plan: None, events, unreadable: RefCell::new(None) };
        let plan = directory.and_then(|directory| traces.json(&directory.join("plan.json")));
        traces.plan = plan.filter(|plan| plan.get("nodes").is_some());
        Ok(traces)
    }

    pub(super) fn take_unreadable(&self) -> Option<io::Error> {
        self.unreadable.take()
    }

    /// The path without links, if it exists and is in the project.
    fn inside(&self, path: &Path) -> Option<PathBuf> {
        self.noted(inside(self.project, path)).flatten()
    }

    /// A file in the project that a file of the run names.
    pub(super) fn named_file(&self, named: &str) -> Option<PathBuf> {
        self.noted(named_file(self.project, named)).flatten()
    }

    fn json(&self, file: &Path) -> Option<Value> {
        self.noted(json_inside(self.project, file))
    }

    fn names(&self, directory: &Path) -> Vec<String> {
        self.noted(names_in(directory).map_err(StateFault::from)).unwrap_or_default()
    }

    fn noted<T>(&self, read: Result<T, StateFault>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(StateFault::Wrong(_)) => None,
            Err(StateFault::Io(error)) => {
                self.unreadable.borrow_mut().get_or_insert(error);
                None
            }
        }
    }

    /// Whether the newest tool wrote the directory.
    pub(super) fn is_newest(&self) -> bool {
        self.plan.is_some() || !self.events.is_empty()
    }

    /// A file of the directory, if there is one in the project.
    pub(super) fn file(&self, name: &str) -> Option<PathBuf> {
        self.inside(&self.directory?.join(name)).filter(|path| path.is_file())
    }

    /// The ids of the stages in the compiled plan.
    pub(super) fn planned_stages(&self) -> Vec<String> {
        let nodes = self.plan.as_ref().and_then(|plan| plan.get("nodes")).and_then(Value::as_array);
        let id = |node: &Value| Some(node.get("id")?.as_str()?.to_owned());
        nodes.into_iter().flatten().take(1_000).map(|node| id(node).unwrap_or_default()).collect()
    }

    /// The folder of a stage. In a lane it is in the directory of its provider.
    pub(super) fn folder_of(&self, stage: &OldStage) -> Option<PathBuf> {
        match &stage.place.lane {
            None => self.stage_folder(stage.place.node, Some(&stage.name)),
            Some(lane) => {
                let name = format!("stage-{:02}-{}", lane.index, lane.stage);
                let folder = self.block_folder(stage.place.node)?.join("providers").join(&lane.provider).join(name);
                self.inside(&folder).filter(|folder| folder.is_dir())
            }
        }
    }

    /// The notes that the agents of a stage left for each other; those of a lane are for all of its stages.
    pub(super) fn progress_of(&self, stage: &OldStage) -> Option<PathBuf> {
        let folder = match &stage.place.lane {
            None => self.folder_of(stage)?,
            Some(lane) => self.block_folder(stage.place.node)?.join("providers").join(&lane.provider),
        };
        self.inside(&folder.join("progress.md")).filter(|path| path.is_file())
    }

    /// The folder of a stage, counted from 1. The newest tool counts from 0 with two digits. A loop has one stage, under
    /// any name.
    pub(super) fn stage_folder(&self, stage: u32, name: Option<&str>) -> Option<PathBuf> {
        let directory = self.directory?;
        let index = stage.saturating_sub(1);
        let found = match name {
            Some(name) => {
                let names = [format!("stage-{index:02}-{name}"), format!("stage-{stage}-{name}")];
                names.into_iter().find(|name| directory.join(name).is_dir())
            }
            None => self.folder_named(&format!("stage-{index:02}-")),
        };
        self.inside(&directory.join(found?)).filter(|folder| folder.is_dir())
    }

    fn folder_named(&self, start: &str) -> Option<String> {
        self.names(self.directory?).into_iter().find(|name| name.starts_with(start))
    }

    /// The folder of a parallel block; its node is counted from 1.
    fn block_folder(&self, node: u32) -> Option<PathBuf> {
        let name = self.folder_named(&format!("parallel-{:02}-", node.saturating_sub(1)))?;
        self.inside(&self.directory?.join(name)).filter(|folder| folder.is_dir())
    }

    /// The folders in one of a block.
    pub(super) fn names_in_block(&self, node: u32, path: &str) -> Vec<String> {
        let Some(folder) = self.block_folder(node).and_then(|block| self.inside(&block.join(path))) else {
            return Vec::new();
        };
        self.names(&folder).into_iter().filter(|name| folder.join(name).is_dir()).collect()
    }

    pub(super) fn json_in_block(&self, node: u32, path: &str) -> Option<Value> {
        self.json(&self.block_folder(node)?.join(path))
    }

    /// The numbers of iterations that left a result.
    pub(super) fn finished_iterations(folder: &Path) -> u32 {
        let has_result = |number: &u32| {
            let own = iteration_folder(folder, *number);
            ["result.json", "status.json"].iter().any(|file| own.join(file).is_file())
        };
        (1..=MOST_ITERATIONS).take_while(has_result).last().unwrap_or(0)
    }

    /// What an iteration reported: its result, or its status in the older form.
    pub(super) fn report(&self, folder: &Path, iteration: u32) -> Value {
        let own = iteration_folder(folder, iteration);
        let read = |file: &str| self.json(&own.join(file));
        read("result.json").or_else(|| read("status.json")).unwrap_or_default()
    }

    /// The output of an iteration; `is_last` says that no later one ended.
    pub(super) fn output(&self, folder: &Path, iteration: u32, is_last: bool) -> Option<PathBuf> {
        let index = iteration.saturating_sub(1);
        let own = [iteration_folder(folder, iteration).join("output.md"), folder.join(format!("run-{index}.md"))];
        let single = is_last.then(|| folder.join("output.md"));
        let files = own.into_iter().chain(single).filter_map(|path| self.inside(&path));
        files.into_iter().find(|path| path.is_file())
    }

    /// How many outputs a stage of the earlier tool left.
    pub(super) fn outputs(folder: &Path) -> u32 {
        let several = (0..MOST_ITERATIONS).take_while(|index| folder.join(format!("run-{index}.md")).is_file()).count();
        let single = u32::from(folder.join("output.md").is_file());
        u32::try_from(several).unwrap_or(u32::MAX).max(single)
    }

    /// The loop type of a session with one stage, and its maximum, from wherever the tool wrote them.
    pub(super) fn loop_facts(&self) -> (Option<String>, Option<u32>) {
        let mut places: Vec<&Value> = Vec::new();
        let node = self.plan.as_ref().and_then(|plan| plan.pointer("/nodes/0"));
        places.extend(node);
        places.extend(node.and_then(|node| node.get("termination")));
        let context =
            self.stage_folder(1, None).and_then(|folder| self.json(&iteration_folder(&folder, 1).join("context.json")));
        let context = context.unwrap_or_default();
        places.extend(["/stage", "/limits"].iter().filter_map(|part| context.pointer(part)));
        let begins = |event: &&Value| matches!(text(event, "type"), Some("session_start" | "node_start"));
        places.extend(self.events.iter().filter(begins).filter_map(|event| event.get("data")));
        let of_type = TYPE_KEYS.iter().find_map(|key| places.iter().find_map(|place| run_name(text(place, key)?)));
        let folder = self
            .stage_folder(1, None)
            .and_then(|folder| run_name(folder.file_name()?.to_str()?.strip_prefix("stage-00-")?));
        let max = ["max_iterations", "max", "iterations"];
        let max = max.iter().find_map(|key| places.iter().find_map(|place| number(place, key)));
        (of_type.or(folder), max.filter(|max| *max > 0))
    }
}

fn iteration_folder(folder: &Path, number: u32) -> PathBuf {
    folder.join("iterations").join(format!("{number:03}"))
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

/// A name that a loop type can have.
fn run_name(text: &str) -> Option<String> {
    text.parse::<RunName>().ok().map(|name| name.to_string())
}
