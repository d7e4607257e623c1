//! The client of the tests: one process beside the test (`client.py`) that starts hooks, tool servers and the agent's
//! shell as the real clients do. Commands of a person come from the test itself.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io::{PipeReader, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, LazyLock, Mutex};

use serde_json::{Value, json};

use crate::env::Output;

pub(crate) const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/client.py");

/// What the clients have in their own environment if their user set it.
const OURS: [&str; 6] =
    ["STEADFAST_HOME", "STEADFAST_DB", "STEADFAST_NO_WATCH", "STEADFAST_CRASH_AT", "HOME", "XDG_DATA_HOME"];

/// How a process gets its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdin {
    /// As in Claude Code.
    Socket,
    /// As in Codex.
    Pipe,
    /// As in the shells of both.
    Null,
}

/// A client, one for each home and store: like the real ones, it has them in its own environment.
pub(crate) struct Server {
    /// Ends with the test, because its stdin closes.
    process: Child,
    directory: tempfile::TempDir,
}

/// Names and values.
type Variables = Vec<(OsString, OsString)>;

static SERVERS: LazyLock<Mutex<HashMap<Variables, Arc<Server>>>> = LazyLock::new(Mutex::default);

/// The client with the home and store of a command.
pub(crate) fn client_of(command: &Command) -> Arc<Server> {
    let is_ours = |name: &OsStr| OURS.iter().any(|ours| name == *ours);
    let ours = command.get_envs().filter(|(name, _)| is_ours(name));
    let key: Variables = ours.filter_map(|(name, value)| Some((name.into(), value?.into()))).collect();
    let mut servers = SERVERS.lock().unwrap();
    Arc::clone(servers.entry(key.clone()).or_insert_with(|| Arc::new(Server::start(key))))
}

impl Server {
    fn start(environment: Variables) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut process = Command::new("python3")
            .args([Path::new(SCRIPT), Path::new("serve"), &directory.path().join("client")])
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 6];
        process.stdout.take().unwrap().read_exact(&mut ready).unwrap();
        Self { process, directory }
    }
}

/// The process of the client that runs a command.
pub(crate) fn pid_of(command: &Command) -> u32 {
    client_of(command).process.id()
}

/// A process that the client started.
pub(crate) struct ClientChild {
    pub(crate) pid: i32,
    /// Carries the input; the exit code comes back on it.
    connection: UnixStream,
    stdout: Option<PipeReader>,
    stderr: Option<PipeReader>,
    code: Option<i32>,
}

/// Whether the client and not a person runs this command.
pub(crate) fn is_of_client(command: &Command) -> bool {
    command.get_args().next().is_some_and(|first| first == "hook" || first == "mcp")
}

/// How the client of a command gives it its input.
fn stdin_of(command: &Command) -> Stdin {
    let arguments: Vec<_> = command.get_args().collect();
    if arguments == ["hook", "codex"] { Stdin::Pipe } else { Stdin::Socket }
}

/// Starts a command as the client does. Its whole environment must be set.
pub(crate) fn spawn(command: &Command) -> ClientChild {
    spawn_with(command, stdin_of(command))
}

pub(crate) fn spawn_with(command: &Command, stdin: Stdin) -> ClientChild {
    spawn_in(&client_of(command), command, stdin)
}

fn spawn_in(server: &Server, command: &Command, stdin: Stdin) -> ClientChild {
    let text = |part: &OsStr| part.to_str().unwrap().to_owned();
    let argv: Vec<String> = std::iter::once(command.get_program()).chain(command.get_args()).map(text).collect();
    let env: serde_json::Map<String, Value> =
        command.get_envs().filter_map(|(name, value)| Some((text(name), json!(text(value?))))).collect();
    let ((stdout, out), (stderr, err)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    let stdin = match stdin {
        Stdin::Socket => "socket",
        Stdin::Pipe => "pipe",
        Stdin::Null => "null",
    };
    let request = json!({
        "argv": argv, "env": env, "cwd": command.get_current_dir(), "stdin": stdin,
        "pid": std::process::id(), "output": [out.as_raw_fd(), err.as_raw_fd()],
    });
    let request = request.to_string().into_bytes();
    let mut connection = UnixStream::connect(server.directory.path().join("client")).unwrap();
    connection.write_all(&u32::try_from(request.len()).unwrap().to_le_bytes()).unwrap();
    connection.write_all(&request).unwrap();
    let pid = read_number(&mut connection).unwrap_or_else(|| panic!("the client did not start {argv:?}"));
    ClientChild { pid, connection, stdout: Some(stdout), stderr: Some(stderr), code: None }
}

/// Runs a script in the agent's shell: bash below the client, without input.
pub(crate) fn shell(environment: &Command, script: &str) -> Output {
    let mut command = Command::new("bash");
    command.args(["-c", script]).env_clear();
    command.envs(environment.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(environment.get_current_dir().unwrap());
    let mut child = spawn_with(&command, Stdin::Null);
    child.close_stdin();
    child.finish()
}

/// The command that runs one program as a client of its own, for scripts.
pub(crate) fn one_shot() -> String {
    format!("python3 {SCRIPT} one")
}

/// The same command as the client of an agent that a run started: below a process that looks like its supervisor.
pub(crate) fn below_supervisor(command: &Command) -> Command {
    let server = client_of(command);
    std::fs::write(server.directory.path().join("__exec"), "\"$@\"\nexit $?\n").unwrap();
    let mut outer = Command::new("sh");
    outer.args(["__exec", "python3", SCRIPT, "one"]).arg(command.get_program()).args(command.get_args());
    outer.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    outer.env("STEADFAST_ATTEMPT", "/somewhere/1-1-1").current_dir(server.directory.path());
    outer
}

fn read_number(connection: &mut UnixStream) -> Option<i32> {
    let mut bytes = [0; 4];
    connection.read_exact(&mut bytes).ok()?;
    Some(i32::from_le_bytes(bytes))
}

impl ClientChild {
    /// A process may end without reading its input.
    pub(crate) fn write(&mut self, input: &[u8]) {
        let _ = self.connection.write_all(input);
    }

    pub(crate) fn close_stdin(&mut self) {
        let _ = self.connection.shutdown(std::net::Shutdown::Write);
    }

    pub(crate) fn take_stdout(&mut self) -> PipeReader {
        self.stdout.take().unwrap()
    }

    pub(crate) fn take_stderr(&mut self) -> PipeReader {
        self.stderr.take().unwrap()
    }

    /// Waits for its end and returns its exit code.
    pub(crate) fn wait(&mut self) -> i32 {
        *self.code.get_or_insert_with(|| read_number(&mut self.connection).unwrap_or(-1))
    }

    /// Its exit code, if it has ended.
    pub(crate) fn try_wait(&mut self) -> Option<i32> {
        if self.code.is_none() {
            self.connection.set_nonblocking(true).unwrap();
            let mut bytes = [0; 4];
            let read = self.connection.read(&mut bytes);
            self.connection.set_nonblocking(false).unwrap();
            // Four bytes are sent in one piece; the end of the connection is an end, too.
            match read {
                Ok(4) => self.code = Some(i32::from_le_bytes(bytes)),
                Ok(_) => self.code = Some(-1),
                Err(_) => {}
            }
        }
        self.code
    }

    pub(crate) fn kill(&mut self) {
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid).filter(|_| self.code.is_none()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }

    /// Reads its output and waits for its end.
    pub(crate) fn finish(mut self) -> Output {
        let mut stderr = self.take_stderr();
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).map(|_| text)
        });
        let mut stdout = String::new();
        self.take_stdout().read_to_string(&mut stdout).unwrap();
        let stderr = errors.join().unwrap().unwrap();
        Output { code: self.wait(), stdout, stderr }
    }
}

/// Runs a command of the client to its end.
pub(crate) fn finish(command: &Command, stdin: &[u8]) -> Output {
    finish_in(&client_of(command), command, stdin)
}

/// The same by a client that has not the variables of the command.
pub(crate) fn finish_in(client: &Server, command: &Command, stdin: &[u8]) -> Output {
    let child = spawn_in(client, command, stdin_of(command));
    let mut input = child.connection.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ = input.write_all(stdin);
            let _ = input.shutdown(std::net::Shutdown::Write);
        });
        child.finish()
    })
}
