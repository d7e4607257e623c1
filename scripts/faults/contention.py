#!/usr/bin/env python3
"""Many processes use one store at once, and some of them are killed. Afterwards nothing may be lost or wrong.

usage: contention.py --binary PATH [--processes 32] [--seconds 180] [--kill 0.15] [--seed N] [--keep]

Three quarters of the processes are clients, each with a session, a goal, hooks and tool calls; the others are people
with commands and short loops. It asserts that no user saw an error, that the store is whole, that the ledger adds up to
the goals' totals, that versions only grow and that no acknowledged `extend` is lost. Times are printed, not asserted.
"""
import argparse
import collections
import json
import multiprocessing
import os
import random
import re
import select
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

TOKENS = 100
# What a user reads when a call failed. Other messages are news.
TROUBLE = re.compile(r"busy|locked|disk full|failed|degraded|The goal is paused|cannot|hint:", re.I)
HOOKS = {"Stop": 25, "PostToolUse": 35, "PostToolBatch": 10, "UserPromptSubmit": 12, "SessionStart": 6, "mcp": 12}
COMMANDS = {"status": 40, "extend": 35, "history": 15, "loop": 10}


class World:
    """The directories of one measurement."""

    def __init__(self, binary, root):
        self.binary, self.root = os.path.abspath(binary), root
        self.home, self.project = os.path.join(root, "home"), os.path.join(root, "project")
        self.store = os.path.join(self.home, "goals.db")
        self.environment = environment_of(root)
        kind = os.path.join(self.home, "loops", "once")
        for directory in (self.project, os.path.join(root, "user", ".claude"), os.path.join(root, "results"), kind):
            os.makedirs(directory)
        write(os.path.join(self.home, "config.toml"), "[goal]\nno_progress_limit = 0\n[notify]\ndesktop = false\n")
        write(os.path.join(kind, "loop.yaml"), "name: once\ndelay: 0\ncompletion: fixed-n\nruns: 1\n")
        write(os.path.join(kind, "prompt.md"), "${ITERATION}\n")
        self.agent = os.path.join(root, "agent.sh")
        write(self.agent, "#!/bin/sh\necho done\n")
        os.chmod(self.agent, 0o755)

    def transcript(self, session):
        return os.path.join(self.root, f"{session}.jsonl")

    def results(self, name):
        return os.path.join(self.root, "results", name)


def environment_of(root):
    return {"PATH": os.environ["PATH"], "HOME": os.path.join(root, "user"), "STEADFAST_NO_WATCH": "1", "TZ": "UTC",
            "STEADFAST_HOME": os.path.join(root, "home")}


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def three_pipes():
    """Clients open the pipes of a child in a row."""
    while True:
        pipes = [os.pipe() for _ in range(3)]
        first, second, third = (os.fstat(reader).st_ino for reader, _ in pipes)
        if second == first + 1 and third == first + 2 and first % 1024 not in (0, 1023):
            return pipes
        for pipe in pipes:
            for end in pipe:
                os.close(end)


class Call:
    """One process from its start to its end."""

    def __init__(self, world, arguments, given=b"", kill_after=None, keeps_open=False):
        pipes = three_pipes()
        ours, theirs = socket.socketpair()
        began = time.monotonic()
        child = subprocess.Popen(
            [world.binary, *arguments], env=world.environment, cwd=world.project, stdin=theirs.fileno(),
            stdout=pipes[1][1], stderr=pipes[2][1], start_new_session=True,
        )
        theirs.close()
        for end in (pipes[0][0], pipes[0][1], pipes[1][1], pipes[2][1]):
            os.close(end)
        try:
            ours.sendall(given)
            if not keeps_open:
                ours.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        self.killed = False
        out, sources = {pipes[1][0]: b"", pipes[2][0]: b""}, [pipes[1][0], pipes[2][0]]
        while sources:
            rest = None if kill_after is None else max(0, began + kill_after - time.monotonic())
            ready = select.select(sources, [], [], rest)[0]
            if not ready:
                child.send_signal(signal.SIGKILL)
                self.killed, kill_after = True, None
            for source in ready:
                data = os.read(source, 65536)
                out[source] += data
                if not data:
                    sources.remove(source)
                # A tool server ends when its input does.
                if keeps_open and out[pipes[1][0]].count(b"\n") >= keeps_open:
                    keeps_open = 0
                    ours.close()
        self.code = child.wait()
        self.seconds = time.monotonic() - began
        self.killed = self.killed and self.code == -signal.SIGKILL
        ours.close()
        for source in out:
            os.close(source)
        self.stdout, self.stderr = (out[pipe[0]].decode(errors="replace") for pipe in pipes[1:])


class Worker:
    """A process that makes calls until the time is over."""

    def __init__(self, world, name, options, seed):
        self.world, self.name, self.options = world, name, options
        self.random = random.Random(f"{options.seed}-{seed}")
        self.file = open(world.results(name), "w", encoding="utf-8")
        self.calls = 0
        self.typical = collections.defaultdict(lambda: 0.05)

    def call(self, kind, arguments, given=None, keeps_open=0, may_kill=True):
        self.calls += 1
        kills = may_kill and self.random.random() < self.options.kill
        # Anywhere in a call, however long calls take under this load.
        kill_after = self.random.uniform(0, 1.2 * self.typical[kind]) if kills else None
        data = given if isinstance(given, bytes) else json.dumps(given).encode() if given else b""
        done = Call(self.world, arguments, data, kill_after, keeps_open)
        if not done.killed:
            self.typical[kind] += (done.seconds - self.typical[kind]) / 10
        row = {"kind": kind, "seconds": done.seconds, "killed": done.killed}
        shown = done.stderr
        if kind in HOOKS and kind != "mcp" and done.stdout and not done.killed:
            shown += json.loads(done.stdout).get("systemMessage", "")
        if kind == "mcp" and not done.killed and ('"isError":true' in done.stdout or '"error"' in done.stdout):
            shown += done.stdout
        if not done.killed and (done.code != 0 or TROUBLE.search(shown)):
            row["error"] = f"{kind} exit {done.code}: {shown[:400]}"
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()
        return done

    def choose(self, weights):
        return self.random.choices(list(weights), list(weights.values()))[0]


class Client(Worker):
    """A client with one session."""

    def hook(self, event, may_kill=True, **fields):
        given = {"session_id": self.name, "transcript_path": self.world.transcript(self.name),
                 "cwd": self.world.project, "hook_event_name": event, **fields}
        return self.call(event, ["hook", "claude"], given, may_kill=may_kill)

    def start(self):
        self.hook("SessionStart", may_kill=False, source="startup")

    def answer(self):
        """The model answers: a line in the session's file."""
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03}Z"
        name = f"{self.name}-{self.calls}"
        line = {
            "type": "assistant", "uuid": f"uuid-{name}", "timestamp": stamp, "requestId": f"req-{name}",
            "message": {
                "id": name, "role": "assistant", "model": "claude-opus-4-8", "type": "message",
                "content": [{"type": "text", "text": "working"}],
                "usage": {"input_tokens": TOKENS - 3, "output_tokens": 2, "cache_creation_input_tokens": 1,
                          "cache_read_input_tokens": 9},
            },
        }
        with open(self.world.transcript(self.name), "a", encoding="utf-8") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def stop(self, may_kill=True):
        self.hook("Stop", may_kill, stop_hook_active=False, last_assistant_message="working", background_tasks=[])

    def step(self):
        kind = self.choose(HOOKS)
        if kind == "Stop":
            self.answer()
            self.stop()
        elif kind == "PostToolUse":
            path = f"/p/{self.calls}.rs"
            self.hook(kind, tool_name="Edit", tool_use_id=f"t{self.calls}", tool_input={"file_path": path},
                      tool_response={"filePath": path})
        elif kind == "PostToolBatch":
            self.answer()
            self.hook(kind, tool_calls=[])
        elif kind == "UserPromptSubmit":
            self.hook(kind, prompt=f"continue with step {self.calls}")
        elif kind == "SessionStart":
            self.hook(kind, source="compact")
        else:
            self.tool_call()

    def tool_call(self):
        tool = f"toolu_{self.name}_{self.calls}"
        noted = self.hook("PreToolUse", tool_name="mcp__plugin_steadfast_steadfast__get_goal", tool_use_id=tool)
        if noted.killed:
            return
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "claude-code", "version": "2"}}
        ask = {"name": "get_goal", "arguments": {}, "_meta": {"claudecode/toolUseId": tool}}
        messages = [
            {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ask},
        ]
        lines = "".join(json.dumps(message) + "\n" for message in messages)
        self.call("mcp", ["mcp"], lines.encode(), keeps_open=2)


class Person(Worker):
    """A person at a terminal, outside of every client."""

    def goal(self, verb, *arguments, session, may_kill=True):
        return self.call(verb, ["goal", verb, *arguments, "--session", session, "--json"], may_kill=may_kill)

    def step(self):
        session = f"s{self.random.randrange(self.options.clients)}"
        kind = self.choose(COMMANDS)
        if kind == "extend":
            done = self.goal("extend", "--add-turns", "1", session=session)
            outcome = "unknown" if done.killed else "added" if done.code == 0 else "refused"
            self.file.write(json.dumps({"extend": session, "outcome": outcome}) + "\n")
        elif kind == "loop":
            name = f"{self.name}-{self.calls}"
            self.call("loop", ["loop", "run", "once", name, "--agent", self.world.agent])
        else:
            self.goal(kind, session=session)


def work(worker, ready, go, options):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if isinstance(worker, Client):
        worker.start()
    ready.release()
    go.wait()
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        worker.step()
    # The last Stop counts what killed hooks left.
    if isinstance(worker, Client):
        worker.stop(may_kill=False)
    worker.file.close()


def turns_of(world, session):
    shown = subprocess.run([world.binary, "goal", "status", "--session", session, "--json"], env=world.environment,
                           cwd=world.project, check=True, capture_output=True).stdout
    goal = json.loads(shown)["goal"]
    return goal["continuations_used"] + goal["continuations_remaining"]


def measure(world, options):
    options.clients = max(1, options.processes * 3 // 4)
    ready, go = multiprocessing.Semaphore(0), multiprocessing.Event()
    workers = [Client(world, f"s{n}", options, n) for n in range(options.clients)]
    workers += [Person(world, f"p{n}", options, n) for n in range(options.clients, options.processes)]
    processes = [multiprocessing.Process(target=work, args=(worker, ready, go, options)) for worker in workers]
    for process in processes:
        process.start()
    for _ in processes:
        ready.acquire()
    for n in range(options.clients):
        subprocess.run([world.binary, "goal", "start", "--session", f"s{n}", "--max-turns", "500000", "--max-hours",
                        "900", f"objective {n}"], env=world.environment, cwd=world.project, check=True,
                       stdout=subprocess.DEVNULL)
    first_turns = {f"s{n}": turns_of(world, f"s{n}") for n in range(options.clients)}
    go.set()
    log = 0
    for process in processes:
        while process.is_alive():
            process.join(0.2)
            log = max(log, size_of(world.store + "-wal"))
    broken = [f"a worker ended with {process.exitcode}" for process in processes if process.exitcode]
    return first_turns, log, broken


def size_of(path):
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return 0


def read_results(world):
    rows = []
    for name in os.listdir(os.path.join(world.root, "results")):
        with open(world.results(name), encoding="utf-8") as file:
            rows += [json.loads(line) for line in file]
    return [row for row in rows if "kind" in row], [row for row in rows if "extend" in row]


def faults_of(world, options, first_turns, extends):
    """What is lost or wrong afterwards."""
    faults = []
    db = sqlite3.connect(world.store)
    faults += [f"integrity: {line}" for (line,) in db.execute("PRAGMA integrity_check") if line != "ok"]
    ledger = "SELECT goal_id, sum(input_tokens + output_tokens + cache_creation_tokens) FROM responses GROUP BY goal_id"
    sums = dict(db.execute(ledger))
    for session, goal, used in db.execute("SELECT session_id, goal_id, tokens_used FROM goals").fetchall():
        with open(world.transcript(session), encoding="utf-8") as file:
            said = TOKENS * sum(1 for _ in file)
        if not used == sums.get(goal, 0) == said:
            faults.append(f"{session}: {used} tokens charged, {sums.get(goal)} in the ledger, {said} in its file")
    events = "SELECT goal_id, version_before, version_after FROM goal_events WHERE version_after IS NOT NULL ORDER BY id"
    seen = collections.defaultdict(int)
    for goal, before, after in db.execute(events):
        if after < seen[goal] or (before is not None and before > after):
            faults.append(f"{goal}: version {after} after {seen[goal]}")
        seen[goal] = after
    for (kind,) in db.execute("SELECT event_type FROM goal_events WHERE event_type = 'paused_degraded'"):
        faults.append(f"a goal was paused: {kind}")
    outcomes = collections.Counter((row["extend"], row["outcome"]) for row in extends)
    for session, first in first_turns.items():
        added, unknown = outcomes[session, "added"], outcomes[session, "unknown"]
        grown = turns_of(world, session) - first
        if not added <= grown <= added + unknown:
            faults.append(f"{session}: {added} extensions acknowledged, {unknown} unknown, {grown} kept")
    db.close()
    left = [name for name in os.listdir(world.home) if name.startswith("goals.db-line")]
    return faults + [f"left behind: {name}" for name in left if options.kill == 0]


def log_lines(world):
    """What the log says of trouble."""
    lines = []
    for name in ("hooks.log.old", "hooks.log.1", "hooks.log"):
        path = os.path.join(world.home, "log", name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                lines += [line.strip() for line in file if TROUBLE.search(line)]
    return lines


def percentile(values, share):
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--processes", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--kill", type=float, default=0.15, help="share of the calls that are killed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the directory of the measurement")
    parser.add_argument("--root", help=argparse.SUPPRESS)
    options = parser.parse_args()
    multiprocessing.set_start_method("fork")
    if options.root is None:
        # Hooks believe only variables that their client itself was started with.
        root = tempfile.mkdtemp(prefix="steadfast-contention-")
        os.execve(sys.executable, [sys.executable, *sys.argv, "--root", root], environment_of(root))
    root = options.root
    world = World(options.binary, root)
    load = os.getloadavg()[0]
    try:
        first_turns, log_size, faults = measure(world, options)
        rows, extends = read_results(world)
        faults += faults_of(world, options, first_turns, extends)
        logged, store_size = log_lines(world), size_of(world.store)
    finally:
        if options.keep:
            print(f"kept: {root}", file=sys.stderr)
        else:
            shutil.rmtree(root, ignore_errors=True)
    errors = [row["error"] for row in rows if "error" in row]
    times = collections.defaultdict(list)
    for row in rows:
        if not row["killed"]:
            times[row["kind"]].append(row["seconds"] * 1000)
    hooks = sorted(value for kind, values in times.items() if kind not in COMMANDS for value in values)
    table = {"hooks": hooks} | {kind: sorted(values) for kind, values in sorted(times.items())}
    milliseconds = {
        kind: {"calls": len(v), "p50": round(percentile(v, 0.5)), "p99": round(percentile(v, 0.99)), "max": round(v[-1])}
        for kind, v in table.items() if v
    }
    print(json.dumps({
        "processes": options.processes, "seconds": options.seconds, "seed": options.seed, "load_before": load,
        "calls": len(rows), "kills": sum(row["killed"] for row in rows), "errors": len(errors), "logged": len(logged),
        "faults": len(faults), "store_mb": round(store_size / 1e6, 1), "log_mb": round(log_size / 1e6, 1),
        "ms": milliseconds,
    }))
    print(f"{'call':18} {'calls':>7} {'p50 ms':>7} {'p99 ms':>7} {'max ms':>7}")
    for kind, row in milliseconds.items():
        print(f"{kind:18} {row['calls']:7} {row['p50']:7} {row['p99']:7} {row['max']:7}")
    for what, lines in (("fault", faults), ("error", errors), ("log", logged)):
        for line in lines[:10]:
            print(f"{what}: {line}")
    sys.exit(1 if faults or errors or logged else 0)


if __name__ == "__main__":
    main()
