"""A private home, store, project and client, in a directory whose path never changes, so that a saved state can be put
back before each trial. Commands of a person come from this process; hooks and tool servers come from a client beside it
(`crates/steadfast/tests/it/client.py`), because the product looks at the process that starts them."""
import json, os, pathlib, shutil, signal, socket, struct, subprocess, sys, tempfile, threading, time

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CLIENT = REPOSITORY / "crates/steadfast/tests/it/client.py"
CODEX_SAMPLES = REPOSITORY / "crates/steadfast-hosts/samples/codex/hooks"
CONFIG = "[runs]\nback_off_ms = 10\ngrace_ms = 300\n[notify]\ndesktop = false\n"
# Longer than any wait of the product for a busy or full store.
TIME_LIMIT = 60


class Output:
    def __init__(self, code, stdout, stderr):
        self.code, self.stdout, self.stderr = code, stdout, stderr

    def json(self):
        return json.loads(self.stdout)

    def __repr__(self):
        return f"exit {self.code}\nstdout: {self.stdout[:1500]}\nstderr: {self.stderr[:1500]}"


def scratch():
    """Where trials live: in memory where possible, because they test what is asked of the disk, not the disk."""
    memory = pathlib.Path("/dev/shm")
    return memory if memory.is_dir() and os.access(memory, os.W_OK) else pathlib.Path(tempfile.gettempdir())


def now(seconds_later=0):
    at = time.time() + seconds_later
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at * 1000) % 1000:03d}Z"


class World:
    def __init__(self, binary):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="steadfast-faults-", dir=scratch()))
        self.root = self.base / "world"
        self.saved = self.base / "saved"
        self.binary = str(binary)
        # What the history said, until the next change.
        self.seen = None
        self.environment = {
            "HOME": str(self.root / "user"), "PATH": f"{self.root}/bin:/usr/local/bin:/usr/bin:/bin",
            "STEADFAST_HOME": str(self.root / "home"), "STEADFAST_NO_WATCH": "1", "TZ": "UTC",
        }
        self.clear()
        self.client = subprocess.Popen([sys.executable, CLIENT, "serve", self.base / "client"], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, env={**os.environ, **self.environment})
        self.client.stdout.read(6)

    def close(self):
        self.client.stdin.close()
        self.client.wait()
        self.client.stdout.close()
        shutil.rmtree(self.base, ignore_errors=True)

    # Files.

    def clear(self):
        shutil.rmtree(self.root, ignore_errors=True)
        for part in ("home", "project", "user/.claude", "bin"):
            (self.root / part).mkdir(parents=True)
        (self.root / "home").chmod(0o700)
        self.write("home/config.toml", CONFIG)
        self.seen = None

    def save(self):
        shutil.rmtree(self.saved, ignore_errors=True)
        shutil.copytree(self.root, self.saved, symlinks=True)

    def restore(self, other=None):
        # Late processes of the trial before may still write.
        for _ in range(50):
            shutil.rmtree(self.root, ignore_errors=True)
            if not self.root.exists():
                break
            time.sleep(0.02)
        shutil.copytree(other or self.saved, self.root, symlinks=True)
        self.seen = None

    def path(self, part):
        return self.root / part

    def write(self, part, text, mode=None):
        path = self.root / part
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if mode:
            path.chmod(mode)
        return path

    def append(self, part, line):
        path = self.root / part
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "a") as file:
            file.write(json.dumps(line) + "\n")

    def files(self, part="."):
        """Paths and contents below a directory."""
        top = self.root / part
        found = {}
        for directory, _, names in os.walk(top):
            for name in names:
                path = os.path.join(directory, name)
                with open(path, "rb") if not os.path.islink(path) else open(os.devnull, "rb") as file:
                    found[os.path.relpath(path, top)] = file.read()
        return found

    def git(self, *words):
        author = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
        environment = {**self.environment, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
        done = subprocess.run(["git", *author, *words], cwd=self.root / "project", env=environment,
                              capture_output=True, text=True, check=True)
        return done.stdout

    # Processes.

    def person(self, *words, prefix=(), stdin="", environment=None):
        """A command that a person types."""
        argv = [*prefix, self.binary, *words]
        child = subprocess.Popen(argv, env={**self.environment, **(environment or {})}, cwd=self.root / "project",
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 errors="replace", start_new_session=True)
        try:
            out, err = child.communicate(stdin, timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, err = child.communicate()
            return Output("hung", out, err)
        return Output(child.returncode, out, err)

    def of_client(self, *words, prefix=(), stdin="", kind="socket", keep_open=None, environment=None):
        """A process that the client starts. `keep_open` lines are sent one by one, each after an answer to the last."""
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        request = json.dumps({"argv": [*prefix, self.binary, *words], "env": {**self.environment, **(environment or {})},
                              "cwd": str(self.root / "project"), "stdin": kind, "pid": os.getpid(),
                              "output": [out_write, err_write]}).encode()
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(TIME_LIMIT)
        connection.connect(str(self.base / "client"))
        connection.sendall(struct.pack("<I", len(request)) + request)
        (pid,) = struct.unpack("<i", _exactly(connection, 4))
        for end in (out_write, err_write):
            os.close(end)
        outputs = {}
        errors = threading.Thread(target=lambda: outputs.update(err=_read_all(err_read)))
        errors.start()
        with os.fdopen(out_read, "rb", buffering=0) as stdout:
            outputs["out"] = b""
            for line in keep_open or ():
                _send(connection, line.encode() + b"\n")
                if '"id"' in line:
                    outputs["out"] += _read_line(stdout)
            _send(connection, stdin.encode())
            try:
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            try:
                (code,) = struct.unpack("<i", _exactly(connection, 4))
            except TimeoutError:
                code = "hung"
                os.kill(pid, signal.SIGKILL)
            outputs["out"] += stdout.read() or b""
        errors.join()
        connection.close()
        text = {name: data.decode(errors="replace") for name, data in outputs.items()}
        return Output(code, text["out"], text["err"])

    def ok(self, *words, **more):
        output = self.person(*words, **more)
        if output.code != 0:
            raise RuntimeError(f"preparation: {words}: {output}")
        return output

    # Events of the clients.

    def claude_event(self, name, session="s1", **fields):
        return json.dumps({"session_id": session, "transcript_path": str(self.root / f"{session}.jsonl"),
                           "cwd": str(self.root / "project"), "hook_event_name": name, **fields})

    def claude(self, name, session="s1", **fields):
        return self.hook_ok(self.of_client("hook", "claude", stdin=self.claude_event(name, session, **fields)))

    def codex_event(self, sample, thread, **fields):
        event = json.loads((CODEX_SAMPLES / f"{sample}.json").read_text())
        return json.dumps({**event, "session_id": thread, "cwd": str(self.root / "project"),
                           "transcript_path": str(self.root / rollout(thread)), **fields})

    def codex(self, sample, thread, **fields):
        event = self.codex_event(sample, thread, **fields)
        return self.hook_ok(self.of_client("hook", "codex", stdin=event, kind="pipe"))

    @staticmethod
    def hook_ok(output):
        if output.code != 0 or output.stderr:
            raise RuntimeError(f"preparation: {output}")
        return output

    def says(self, identity, tokens, session="s1", text="work"):
        """An answer of the model in Claude's session file."""
        usage = {"input_tokens": tokens - 3, "output_tokens": 2, "cache_creation_input_tokens": 1,
                 "cache_read_input_tokens": 9}
        message = {"id": identity, "role": "assistant", "model": "claude-opus-4-8", "type": "message",
                   "content": [{"type": "text", "text": text}], "usage": usage}
        self.append(f"{session}.jsonl", {"type": "assistant", "uuid": f"uuid-{identity}", "timestamp": now(),
                                         "requestId": f"req-{identity}", "message": message})

    def codex_says(self, thread, identity, tokens, text="work"):
        """The same in Codex's."""
        file = rollout(thread)
        if not (self.root / file).exists():
            meta = {"id": thread, "session_id": thread, "cwd": str(self.root / "project"), "source": "exec"}
            self.append(file, {"timestamp": now(), "ordinal": 0, "type": "session_meta", "payload": meta})
        said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        self.append(file, {"timestamp": now(), "ordinal": 1, "type": "response_item", "payload": said})
        usage = {"input_tokens": tokens - 10, "cached_input_tokens": 0, "cache_write_input_tokens": 0,
                 "output_tokens": 10, "reasoning_output_tokens": 0, "total_tokens": tokens}
        record = {"thread_id": thread, "turn_id": "t", "session_id": thread, "response_id": identity, "usage": usage}
        self.append(file, {"timestamp": now(), "ordinal": 2, "type": "token_usage_record", "payload": record})


def rollout(thread):
    return f"user/.codex/sessions/2026/11/15/rollout-2026-11-15T08-00-00-{thread}.jsonl"


def _exactly(connection, count):
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError("the client ended")
        data += more
    return data


def _send(connection, data):
    try:
        connection.sendall(data)
    except OSError:
        pass


def _read_line(stream):
    line = b""
    while not line.endswith(b"\n"):
        byte = stream.read(1)
        if not byte:
            break
        line += byte
    return line


def _read_all(number):
    with os.fdopen(number, "rb") as stream:
        return stream.read()
