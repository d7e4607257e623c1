//! Test support for one run that is killed many times: a home, a project, the scripted agent, the processes of the run
//! by role, and resuming until the run is over.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use steadfast_engine::crash::HELD;
use tempfile::TempDir;

use super::person::Person;
use super::truth::Truth;
use crate::env::{Output, finish};

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);
/// A run that needs more restarts makes no progress.
const MOST_RESUMES: usize = 30;
pub(super) const NAME: &str = "r";

/// The kind of run under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scenario {
    /// Four iterations.
    Fixed,
    /// Until two iterations agree and a command passes.
    Plateau,
    /// Two parallel agents on their own branches, then two in a row that get their outputs.
    Pipeline,
    /// Two different agents on branches of their own beside a third, which a person allows and which chooses what is
    /// merged, with a conflict; a skipped stage, and one that a person refuses.
    Graph,
    /// A goal whose check passes in the third iteration.
    Goal,
}

impl Scenario {
    fn kind(self) -> &'static str {
        match self {
            Self::Fixed | Self::Plateau | Self::Goal => "loop",
            Self::Pipeline | Self::Graph => "pipeline",
        }
    }

    /// Whether its agents work on branches.
    pub(super) fn has_branches(self) -> bool {
        matches!(self, Self::Pipeline | Self::Graph)
    }

    fn definition(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            Self::Goal => return None,
            Self::Fixed => {
                ("loops/fixed/loop.yaml", "name: fixed\ncompletion: fixed-n\nmax: 4\ndelay: 0\nlimits: {errors: 90}\n")
            }
            Self::Plateau => (
                "loops/plateau/loop.yaml",
                "name: plateau\ncompletion: {all: [plateau, {command: test -s work.txt}]}\nmin_iterations: 2\nmax: 9\n\
                 delay: 0\nlimits: {errors: 90}\n",
            ),
            Self::Pipeline => (
                "pipelines/pipeline.yaml",
                "name: pipeline\nlimits: {errors: 90}\nstages:\n  - name: gather\n    runs: 2\n    parallel: true\n    \
                 delay: 0\n    prompt: \"${OUTPUT}\\nGather ${ITERATION}\\n\"\n  - name: build\n    runs: 2\n    \
                 completion: fixed-n\n    delay: 0\n    prompt: \"${OUTPUT}\\nBuild from ${INPUTS}\\n\"\n",
            ),
            Self::Graph => ("pipelines/graph.yaml", include_str!("graph.yaml")),
        })
    }
}

/// The processes of a run to kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Engine,
    Supervisor,
    Agent,
    /// Git, and the processes started by the agent.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Victims {
    Engine,
    Supervisor,
    Agent,
    All,
}

impl Victims {
    pub(super) const EACH: [Self; 4] = [Self::Engine, Self::Supervisor, Self::Agent, Self::All];

    fn include(self, part: Part) -> bool {
        match self {
            Self::All => true,
            Self::Engine => part == Part::Engine,
            Self::Supervisor => part == Part::Supervisor,
            Self::Agent => part == Part::Agent,
        }
    }
}

pub(super) struct World {
    root: TempDir,
    scenario: Scenario,
    /// Answers what the stages ask, until the world ends.
    person: Option<Person>,
}

impl World {
    pub(super) fn new(scenario: Scenario) -> Self {
        let root = tempfile::Builder::new().prefix("steadfast-crash-").tempdir().unwrap();
        let person = (scenario == Scenario::Graph).then(|| Person::of(&root.path().join("home/goals.db")));
        let world = Self { root, scenario, person };
        for directory in ["home", "project", "user", "book"] {
            std::fs::create_dir_all(world.path(directory)).unwrap();
        }
        if let Some((file, definition)) = scenario.definition() {
            let file = world.path("home").join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, definition.replace("AGENT", &world.path("agent.sh").display().to_string())).unwrap();
            if scenario.kind() == "loop" {
                let prompt = "${OUTPUT}\nIteration ${ITERATION} of ${SESSION}\n";
                std::fs::write(file.with_file_name("prompt.md"), prompt).unwrap();
            }
        }
        std::fs::write(
            world.path("home/config.toml"),
            "[runs]\nback_off_ms = 4\ngrace_ms = 300\n[watch]\nstart = false\n",
        )
        .unwrap();
        std::fs::write(world.path("agent.sh"), include_str!("agent.sh")).unwrap();
        let mut permissions = std::fs::metadata(world.path("agent.sh")).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
        std::fs::set_permissions(world.path("agent.sh"), permissions).unwrap();
        if scenario.has_branches() {
            std::fs::write(world.path("project/work.txt"), "before\n").unwrap();
            if scenario == Scenario::Graph {
                std::fs::write(world.path("project/.gitignore"), "out\n").unwrap();
            }
            for arguments in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-q", "-m", "first"]] {
                world.git(arguments);
            }
            for (name, value) in [("user.name", "T"), ("user.email", "t@example.org")] {
                world.git(&["config", name, value]);
            }
        }
        world
    }

    pub(super) fn path(&self, part: &str) -> PathBuf {
        self.root.path().join(part)
    }

    pub(super) fn scenario(&self) -> Scenario {
        self.scenario
    }

    pub(super) fn git(&self, arguments: &[&str]) -> String {
        let identity = ["-c", "user.name=T", "-c", "user.email=t@example.org"];
        let mut command = Command::new("git");
        command.env("HOME", self.path("user")).current_dir(self.path("project")).args(identity).args(arguments);
        let output = command.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) fn command(&self, arguments: &[&str], crash_at: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command
            .env_clear()
            .env("HOME", self.path("user"))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("STEADFAST_HOME", self.path("home"))
            .env("STEADFAST_CRASH_AT", crash_at)
            .current_dir(self.path("project"))
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    fn spawn(&self, arguments: &[&str], crash_at: &str) -> Child {
        self.command(arguments, crash_at).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Starts the run; the engine crashes at the given point, if any.
    pub(super) fn start(&self, crash_at: &str) -> Child {
        let agent = self.path("agent.sh").display().to_string();
        let what = match self.scenario {
            Scenario::Fixed => "fixed",
            Scenario::Plateau => "plateau",
            Scenario::Pipeline => "pipeline",
            Scenario::Graph => return self.spawn(&["pipeline", "run", "graph", NAME], crash_at),
            Scenario::Goal => {
                let check = "grep -q goal-3 work.txt";
                return self.spawn(&["run", "Three lines", "--agent", &agent, "--verify", check], crash_at);
            }
        };
        self.spawn(&[self.scenario.kind(), "run", what, NAME, "--agent", &agent], crash_at)
    }

    /// Starts an engine that resumes the run and crashes at the given point, if any.
    pub(super) fn spawn_resume(&self, crash_at: &str) -> Child {
        self.spawn(&[self.scenario.kind(), "resume", &self.name()], crash_at)
    }

    pub(super) fn resume(&self) -> Output {
        finish(&mut self.command(&[self.scenario.kind(), "resume", &self.name()], ""), b"")
    }

    /// The name of the run; that of a goal is chosen when it is created.
    pub(super) fn name(&self) -> String {
        let is_named = self.scenario != Scenario::Goal;
        let stored = || self.sql("SELECT name FROM runs ORDER BY started_at_ms DESC").into_iter().next();
        if is_named { None } else { stored() }.unwrap_or_else(|| NAME.to_owned())
    }

    /// The first column of a query.
    pub(super) fn sql(&self, sql: &str) -> Vec<String> {
        let db = rusqlite::Connection::open(self.path("home/goals.db")).unwrap();
        let Ok(mut statement) = db.prepare(sql) else { return Vec::new() };
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// Whether the run is over according to the store.
    fn is_over(&self) -> bool {
        self.sql("SELECT status FROM runs").iter().all(|status| status != "running")
    }

    /// Resumes the run, as a user would, until it is over.
    pub(super) fn to_its_end(&self) -> Truth {
        for _ in 0..MOST_RESUMES {
            let output = self.resume();
            match output.code {
                2 => {
                    assert!(self.start("").wait().unwrap().success(), "a run that never came to be starts afresh");
                }
                // The run was already over: the command reports it and leaves everything in order.
                0 | 3 => {}
                _ => panic!("{output:?}\n{}", self.story()),
            }
            if self.is_over() {
                return Truth::of(self);
            }
            assert_eq!(output.code, 0, "{output:?}\n{}", self.story());
        }
        panic!("no end in sight\n{}", self.story());
    }

    /// Waits until a process is held at its crash point, or the engine is gone.
    pub(super) fn is_held(&self, engine: &mut Child) -> bool {
        let patience = Instant::now() + PATIENCE;
        while Instant::now() < patience {
            if engine.try_wait().unwrap().is_some() {
                return false;
            }
            let held = std::fs::read_to_string(self.path("home").join(HELD)).unwrap_or_default();
            if held.parse().is_ok_and(|pid| state(pid) == Some('T')) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("the engine hangs\n{}", self.story());
    }

    /// Kills these processes and continues the others; returns how many were killed.
    pub(super) fn kill(&self, engine: &mut Child, victims: impl Fn(Part) -> bool) -> usize {
        let all = self.processes(engine);
        let hit: Vec<i32> = all.iter().filter(|(_, part)| victims(*part)).map(|(pid, _)| *pid).collect();
        for pid in &hit {
            signal(*pid, Signal::KILL);
        }
        for (pid, _) in all.iter().filter(|(pid, _)| !hit.contains(pid) && state(*pid) == Some('T')) {
            signal(*pid, Signal::CONT);
        }
        hit.len()
    }

    pub(super) fn kill_victims(&self, engine: &mut Child, victims: Victims) -> usize {
        let mut hit = self.kill(engine, |part| victims.include(part));
        if victims == Victims::All {
            // A process that was just starting is found in the next round.
            while self.kill(engine, |_| true) > 0 {
                hit += 1;
            }
        }
        hit
    }

    /// The live processes of this test: all processes of a run have its home in their environment.
    pub(super) fn processes(&self, engine: &Child) -> Vec<(i32, Part)> {
        let mark = format!("STEADFAST_HOME={}", self.path("home").display());
        let agent = self.path("agent.sh").display().to_string();
        let own = i32::try_from(engine.id()).unwrap();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
            let read = |name: &str| std::fs::read(entry.path().join(name)).unwrap_or_default();
            if !read("environ").split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()) {
                continue;
            }
            let words = read("cmdline");
            let has = |word: &str| words.split(|byte| *byte == 0).any(|part| part == word.as_bytes());
            let part = match () {
                () if pid == own => Part::Engine,
                () if has("__exec") => Part::Supervisor,
                () if has(&agent) && !has("run") => Part::Agent,
                () => Part::Other,
            };
            found.push((pid, part));
        }
        found
    }

    /// The records of the agents and the log of the engine.
    pub(super) fn story(&self) -> String {
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        let mut logs = vec![read(self.path("book/log"))];
        for run in std::fs::read_dir(self.path("home/runs")).into_iter().flatten().flatten() {
            logs.push(read(run.path().join("engine.log")));
            let mut attempts: Vec<_> = std::fs::read_dir(run.path()).unwrap().flatten().map(|it| it.path()).collect();
            attempts.sort();
            for attempt in attempts.iter().filter(|path| path.is_dir()) {
                let names: Vec<_> = std::fs::read_dir(attempt).unwrap().flatten().map(|it| it.file_name()).collect();
                let exit = read(attempt.join("exit.json")).replace('\n', "");
                logs.push(format!("{}: {names:?} {exit}", attempt.display()));
            }
        }
        logs.join("\n")
    }
}

fn signal(pid: i32, signal: Signal) {
    // It may have ended meanwhile.
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

fn state(pid: i32) -> Option<char> {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

impl Drop for World {
    fn drop(&mut self) {
        drop(self.person.take());
        // A failed test leaves no process running.
        let mut placeholder = Command::new("true").spawn().unwrap();
        let _ = placeholder.wait();
        for _ in 0..20 {
            if self.kill(&mut placeholder, |_| true) == 0 {
                break;
            }
        }
    }
}
