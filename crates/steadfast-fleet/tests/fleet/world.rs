//! What the tests share: a server, workers, a repository, and the commands of a user.

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// A server, a repository, and the home of a user with a project.
pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) server: Server,
    temporal: PathBuf,
    /// Variables of every process of the fleet, besides the address.
    pub(crate) variables: Vec<(String, String)>,
}

pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
}

/// The program of Temporal, or a skip that is loud, and a failure in CI.
fn temporal() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(root.join("scripts/temporal")).output().unwrap();
    if output.status.success() {
        return Some(PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()));
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    assert!(std::env::var("CI").as_deref() != Ok("true"), "no Temporal server: {why}");
    skipped(&why);
    None
}

/// Records that a test did nothing; `scripts/fleet_tests` prints the file in the end.
#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
pub(crate) fn skipped(why: &str) {
    let thread = std::thread::current();
    let line = format!("SKIPPED {}: {}\n", thread.name().unwrap_or("a test"), why.replace('\n', " "));
    eprint!("{line}");
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("skipped.txt");
    let mut file = std::fs::File::options().create(true).append(true).open(file).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The main program, which the script builds beside this one.
pub(crate) fn steadfast() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_steadfast-fleet")).with_file_name("steadfast");
    assert!(path.is_file(), "{} is missing: run scripts/fleet_tests", path.display());
    path
}

impl Server {
    fn start(temporal: &Path, data: &Path, port: u16) -> Self {
        let log = std::fs::File::options().create(true).append(true).open(data.join("server.log")).unwrap();
        let child = Command::new(temporal)
            .args(["server", "start-dev", "--headless", "--ip", "0.0.0.0", "--log-level", "error"])
            .args(["--port", &port.to_string(), "--http-port", &free_port().to_string()])
            .args(["--metrics-port", &free_port().to_string()])
            .arg("--db-filename")
            .arg(data.join("temporal.db"))
            .env("HOME", data)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .process_group(0)
            .spawn()
            .unwrap();
        let server = Self { child, port };
        server.wait(temporal);
        server
    }

    /// Until the server answers.
    fn wait(&self, temporal: &Path) {
        let address = format!("127.0.0.1:{}", self.port);
        let answers = || {
            let mut health = Command::new(temporal);
            health.args(["operator", "namespace", "describe", "default", "--address", &address]);
            health.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        until("the server answers", || answers().then_some(()));
    }

    pub(crate) fn signal(&self, signal: &str) {
        send(signal, self.child.id());
    }
}

/// Sends a signal to a process.
pub(crate) fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status().unwrap();
    assert!(sent.success(), "kill -{signal} {pid}");
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something, as long as a busy machine needs.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "{what}: not within {} s", PATIENCE.as_secs());
        std::thread::sleep(Duration::from_millis(100));
    }
}

pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Tester", "-c", "user.email=tester@example.com", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(directory)
        .env("HOME", directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

impl World {
    /// `None` if the test has to be skipped.
    pub(crate) fn new() -> Option<Self> {
        Self::with_config("")
    }

    /// A world whose user has more lines below `[fleet]`.
    pub(crate) fn with_config(fleet: &str) -> Option<Self> {
        let temporal = temporal()?;
        let dir = tempfile::tempdir().unwrap();
        let server = Server::start(&temporal, dir.path(), free_port());
        let world = Self { dir, server, temporal, variables: Vec::new() };
        world.make_home("user", fleet);
        let (repo, project) = (world.repo(), world.project());
        std::fs::create_dir_all(&repo).unwrap();
        std::fs::create_dir_all(&project).unwrap();
        git(&repo, &["init", "--quiet", "--bare"]);
        git(&project, &["init", "--quiet"]);
        std::fs::write(project.join("README.md"), "a project\n").unwrap();
        git(&project, &["add", "."]);
        git(&project, &["commit", "--quiet", "-m", "begin"]);
        git(&project, &["remote", "add", "origin", &repo.display().to_string()]);
        Some(world)
    }

    /// A home with short waits. Returns its path.
    pub(crate) fn make_home(&self, name: &str, fleet: &str) -> PathBuf {
        let home = self.dir.path().join(name);
        std::fs::create_dir_all(home.join("steadfast")).unwrap();
        std::fs::set_permissions(home.join("steadfast"), std::fs::Permissions::from_mode(0o700)).unwrap();
        let text = format!("[runs]\nback_off_ms = 100\ngrace_ms = 500\n[watch]\nstart = false\n[fleet]\n{fleet}\n");
        std::fs::write(home.join("steadfast/config.toml"), text).unwrap();
        let gitconfig = "[user]\n\tname = Worker\n\temail = worker@example.com\n[safe]\n\tdirectory = *\n";
        std::fs::write(home.join(".gitconfig"), gitconfig).unwrap();
        home
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.dir.path().join("repo.git")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("user")
    }

    /// A loop type of the user: no trust is needed.
    pub(crate) fn add_loop(&self, name: &str, yaml: &str, prompt: &str) {
        let folder = self.home().join("steadfast/loops").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("loop.yaml"), format!("name: {name}\n{yaml}\n")).unwrap();
        std::fs::write(folder.join("prompt.md"), prompt).unwrap();
    }

    pub(crate) fn add_pipeline(&self, name: &str, yaml: &str) {
        let folder = self.home().join("steadfast/pipelines");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.yaml")), yaml).unwrap();
    }

    /// An agent as a shell script. `$STEADFAST_RESULT` is where it writes its result.
    pub(crate) fn agent(&self, name: &str, script: &str) -> String {
        let path = self.dir.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\nset -eu\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path.display().to_string()
    }

    /// The agent of most tests: notes that it ran, works for `seconds`, adds a line to `log.txt`, reports 15 tokens.
    pub(crate) fn writer(&self, seconds: &str) -> String {
        let ran = self.ran_file().display().to_string();
        let script = format!(
            "cat >/dev/null\necho \"$STEADFAST_RUN $STEADFAST_ITERATION $$\" >>{ran}\n\
             printf '{{\"summary\":\"begun\",\"usage\":{{\"input_tokens\":10,\"output_tokens\":5,\"cost_usd\":0.01}}}}' \
             >\"$STEADFAST_RESULT\"\nsleep {seconds}\necho \"$STEADFAST_ITERATION\" >>log.txt\n\
             printf '{{\"summary\":\"wrote %s\",\"usage\":{{\"input_tokens\":10,\"output_tokens\":5,\"cost_usd\":0.01}}}}' \
             \"$STEADFAST_ITERATION\" >\"$STEADFAST_RESULT\""
        );
        self.agent(&format!("writer-{seconds}"), &script)
    }

    /// One line for each agent that began: run, iteration, process.
    pub(crate) fn ran_file(&self) -> PathBuf {
        self.dir.path().join("ran.txt")
    }

    pub(crate) fn ran(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.ran_file()).unwrap_or_default();
        text.lines().map(ToOwned::to_owned).collect()
    }

    fn clean(&self, command: &mut Command, home: &Path) {
        for (name, _) in std::env::vars().filter(|(name, _)| {
            ["STEADFAST_", "TEMPORAL_", "CLAUDE", "CODEX", "GIT_"].iter().any(|prefix| name.starts_with(prefix))
        }) {
            command.env_remove(name);
        }
        command
            .env("HOME", home)
            .env("STEADFAST_HOME", home.join("steadfast"))
            .env("TEMPORAL_ADDRESS", format!("127.0.0.1:{}", self.server.port))
            .env("TEMPORAL_CONFIG_FILE", home.join("no-temporal.toml"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
    }

    /// A command of the user in the project.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(steadfast());
        self.clean(&mut command, &self.home());
        command.args(arguments).current_dir(self.project());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// A command that has to succeed.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {:?}\n{said}", output.status.code());
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let text = self.ok(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    pub(crate) fn status(&self, name: &str) -> Value {
        self.json(&["fleet", "status", name])
    }

    /// Waits until a run is over, and returns its status.
    pub(crate) fn wait_end(&self, name: &str) -> Value {
        let begin = Instant::now();
        loop {
            let output = self.run(&["fleet", "status", name, "--json"]);
            let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            if status["status"] != "running" && status["live"] == false {
                return status;
            }
            if begin.elapsed() > PATIENCE {
                let page = self.run(&["fleet", "status", name]);
                let said = [page.stdout, page.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
                panic!("{name} does not end: {said:?}");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Starts a worker in a home of its own.
    pub(crate) fn worker(&self, name: &str, arguments: &[&str]) -> Worker {
        self.worker_at(name, arguments, None)
    }

    /// The same, in a network namespace that reaches the server at another address.
    pub(crate) fn worker_at(&self, name: &str, arguments: &[&str], net: Option<&crate::net::Net>) -> Worker {
        let home = self.dir.path().join(name);
        if !home.is_dir() {
            self.make_home(name, "");
        }
        let mut command = match net {
            Some(net) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", &net.name]).arg(env!("CARGO_BIN_EXE_steadfast-fleet"));
                command
            }
            None => Command::new(env!("CARGO_BIN_EXE_steadfast-fleet")),
        };
        self.clean(&mut command, &home);
        if let Some(net) = net {
            command.env("TEMPORAL_ADDRESS", format!("{}:{}", net.server, self.server.port));
        }
        let log = std::fs::File::options().create(true).append(true).open(home.join("worker.log")).unwrap();
        let child = command
            .arg("worker")
            .args(more_of(arguments))
            .current_dir(&home)
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .process_group(0)
            .spawn()
            .unwrap();
        Worker { child, log: home.join("worker.log") }
    }

    /// A worker that drives and has slots, once it polls.
    pub(crate) fn driver(&self, name: &str, slots: &str) -> Worker {
        let worker = self.worker(name, &["--drive", "--slots", slots]);
        worker.wait_ready();
        worker
    }

    pub(crate) fn stop_server(&self) {
        self.server.signal("KILL");
    }

    /// Starts the server again, with the same data at the same port.
    pub(crate) fn restart_server(&mut self) {
        let _ = self.server.child.kill();
        let _ = self.server.child.wait();
        self.server = Server::start(&self.temporal, self.dir.path(), self.server.port);
    }

    /// Temporal's own program against this server.
    pub(crate) fn temporal(&self, arguments: &[&str]) -> Output {
        let address = format!("127.0.0.1:{}", self.server.port);
        Command::new(&self.temporal).args(arguments).args(["--address", &address]).output().unwrap()
    }

    /// Starts a loop with an agent on the fleet, in the background.
    pub(crate) fn start_loop(&self, kind: &str, name: &str, agent: &str, more: &[&str]) {
        self.ok(&[&["loop", "run", kind, name, "--agent", agent, "--fleet", "--detach"], more].concat());
    }

    /// What is in a file of a branch of the repository.
    pub(crate) fn file_of(&self, branch: &str, path: &str) -> String {
        git(&self.repo(), &["show", &format!("{branch}:{path}")])
    }

    /// The subjects of the commits that a run added, oldest first.
    pub(crate) fn commits_of(&self, name: &str) -> Vec<String> {
        let base = git(&self.project(), &["rev-parse", "HEAD"]);
        let range = format!("{base}..refs/heads/steadfast/{name}");
        let text = git(&self.repo(), &["log", "--reverse", "--first-parent", "--format=%s", &range]);
        text.lines().map(ToOwned::to_owned).collect()
    }
}

pub(crate) struct Worker {
    child: Child,
    log: PathBuf,
}

impl Worker {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: &str) {
        send(signal, self.pid());
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn wait_ready(&self) {
        until("the worker is ready", || self.log().contains("queues:").then_some(()));
    }

    /// Kills it as a crash does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its own end.
    pub(crate) fn wait(mut self) -> i32 {
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(begin.elapsed() < PATIENCE, "the worker does not end: {}", self.log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Stopped processes do not end otherwise.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Workers of tests run commands of any repository, unless the test says otherwise.
fn more_of<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut all = arguments.to_vec();
    for (flag, more) in [("--agents", &["--agents", "command"][..]), ("--repo", &["--any-repo"])] {
        if !all.contains(&flag) {
            all.extend(more);
        }
    }
    all
}

/// Live processes whose environment or command line names the directory.
pub(crate) fn processes_of(directory: &Path) -> Vec<String> {
    let needle = directory.display().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(&needle) && !line.contains("temporal") {
            found.push(format!("{pid} {line}"));
        }
    }
    found
}
