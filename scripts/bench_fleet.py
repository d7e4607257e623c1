#!/usr/bin/env python3
"""Measures the fleet with a Temporal dev server on this machine: start to agent beside the local engine, many runs on
three workers beside one, what an iteration asks of server and git, and one long loop with its memory and history.

Usage: bench_fleet.py STEADFAST STEADFAST_FLEET TEMPORAL [parts]
parts: start, speed, cost, long (default all). BENCH_FLEET_STARTS (20), BENCH_FLEET_RUNS (100) and BENCH_FLEET_ITERATIONS
(10000) change the sizes. Numbers are printed, never asserted.
"""

import collections
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

STEADFAST, FLEET, TEMPORAL = (str(Path(path).resolve()) for path in sys.argv[1:4])
PARTS = sys.argv[4:] or ["start", "speed", "cost", "long"]
STARTS = int(os.environ.get("BENCH_FLEET_STARTS", 20))
RUNS = int(os.environ.get("BENCH_FLEET_RUNS", 100))
ITERATIONS = int(os.environ.get("BENCH_FLEET_ITERATIONS", 10000))


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class World:
    """A server, a repository, a user with a project, and workers."""

    def __init__(self, root):
        self.root, self.children, self.number = Path(root), [], 0
        self.port, self.metrics_port = free_port(), free_port()
        self.home = self.make_home("user")
        self.repo, self.project = self.root / "repo.git", self.root / "project"
        self.git(["init", "--quiet", "--bare", str(self.repo)], self.root)
        self.git(["init", "--quiet", "-b", "main", str(self.project)], self.root)
        (self.project / "README.md").write_text("bench\n")
        self.git(["add", "."], self.project)
        self.git(["commit", "--quiet", "-m", "begin"], self.project)
        self.git(["remote", "add", "origin", str(self.repo)], self.project)
        self.server = self.start([TEMPORAL, "server", "start-dev", "--headless", "--log-level", "error",
                                  "--port", str(self.port), "--http-port", str(free_port()),
                                  "--metrics-port", str(self.metrics_port), "--db-filename", str(self.root / "temporal.db")],
                                 self.home, "server.log")
        self.until(lambda: subprocess.run([TEMPORAL, "operator", "namespace", "describe", "default", "--address",
                                           f"127.0.0.1:{self.port}"], capture_output=True).returncode == 0)

    def git(self, words, directory):
        names = ["-c", "user.name=b", "-c", "user.email=b@example.com"]
        subprocess.run(["git", *names, *words], cwd=directory, check=True, capture_output=True)

    def make_home(self, name):
        home = self.root / name
        (home / "steadfast").mkdir(parents=True, mode=0o700)
        (home / "steadfast/config.toml").write_text("[watch]\nstart = false\n")
        (home / ".gitconfig").write_text("[user]\n\tname = b\n\temail = b@example.com\n")
        return home

    def environment(self, home):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("STEADFAST_", "TEMPORAL_", "CLAUDE", "CODEX", "GIT_"))}
        return clean | {"HOME": str(home), "STEADFAST_HOME": str(home / "steadfast"),
                        "TEMPORAL_ADDRESS": f"127.0.0.1:{self.port}"}

    def start(self, words, home, log):
        child = subprocess.Popen(words, env=self.environment(home), cwd=home, stdin=subprocess.DEVNULL,
                                 stdout=open(self.root / log, "ab"), stderr=subprocess.STDOUT)
        self.children.append(child)
        return child

    def worker(self, name, *flags):
        home = self.root / name
        if not home.exists():
            self.make_home(name)
        child = self.start([FLEET, "worker", "--any-repo", "--agents", "command", *flags], home, f"{name}.log")
        self.until(lambda: b"queues:" in (self.root / f"{name}.log").read_bytes())
        return child

    def stop(self, child):
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(60)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        self.children.remove(child)

    def until(self, holds, patience=36000.0, nap=0.05):
        begin = time.monotonic()
        while not holds():
            if time.monotonic() - begin > patience:
                sys.exit("error: it takes too long")
            time.sleep(nap)

    def loop(self, name, yaml, prompt="go\n"):
        folder = self.home / "steadfast/loops" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "loop.yaml").write_text(f"name: {name}\n{yaml}\n")
        (folder / "prompt.md").write_text(prompt)

    def agent(self, name, script):
        path = self.root / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    def run(self, *words, check=True):
        done = subprocess.run([STEADFAST, *words], env=self.environment(self.home), cwd=self.project,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if check and done.returncode:
            sys.exit(f"error: {' '.join(words)} ended with {done.returncode}: {done.stderr}")
        return done

    def requests(self):
        """What clients and workers have asked of the server, by its own count."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        found = collections.Counter()
        for line in lines:
            matched = re.match(r'service_requests\{.*operation="(\w+)".*service_name="frontend".*\} (\S+)', line)
            if matched:
                found[matched[1]] += float(matched[2])
        return found

    def running(self):
        return [run for run in json.loads(self.run("fleet", "list", "--running", "--json").stdout)["runs"]]

    def close(self):
        for child in self.children:
            child.kill()
            child.wait()


def memory(pid, field="VmRSS"):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load():
    return f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def start_to_agent(world):
    """From the call of the command to the first line of the agent, whole processes included."""
    print(f"\n== start to agent, {STARTS} runs of one iteration each ({load()})", flush=True)
    stamp = world.root / "stamp"
    agent = world.agent("stamper", f"cat >/dev/null; date +%s.%N >{stamp}")
    world.loop("one", "completion: fixed-n\ndelay: 0")

    def measure(more):
        samples = []
        for _ in range(STARTS):
            world.number += 1
            stamp.unlink(missing_ok=True)
            begin = time.time()
            world.run("loop", "run", "one", f"s{world.number}", "--max", "1", "--agent", agent, "--detach", *more)
            world.until(lambda: stamp.exists() and stamp.read_text().strip(), nap=0.005)
            samples.append((float(stamp.read_text()) - begin) * 1000)
            if more:
                world.until(lambda: not world.running())
        return samples

    here = measure([])
    worker = world.worker("w1", "--drive", "--slots", "2")
    fleet = measure(["--fleet"])
    world.stop(worker)
    for name, samples in (("this machine", here), ("fleet", fleet)):
        print(f"{name:14} p50 {statistics.median(samples):7.0f} ms   p90 {percentile(samples, 0.9):7.0f} ms   "
              f"longest {max(samples):7.0f} ms")


def speed_up(world):
    """The same runs on one worker and on three, from the start of the workers to the end of the last run. The agents
    sleep, so that the cores of this machine do not count."""
    iterations, seconds, slots = 2, 10, 4
    print(f"\n== {RUNS} runs of {iterations} iterations, agents of {seconds} s, {slots} slots a worker ({load()})",
          flush=True)
    agent = world.agent("sleeper", f"cat >/dev/null; sleep {seconds}; echo x >>log.txt")
    world.loop("two", "completion: fixed-n\ndelay: 0")
    took = {}
    for count in (1, 3):
        for _ in range(RUNS):
            world.number += 1
            world.run("loop", "run", "two", f"p{world.number}", "--max", str(iterations), "--agent", agent, "--fleet",
                      "--detach")
        begin = time.monotonic()
        workers = [world.worker(f"v{number}", "--slots", str(slots)) for number in range(count)]
        driver = world.worker("driver", "--drive", "--slots", "0")
        world.until(lambda: not world.running(), nap=0.5)
        took[count] = time.monotonic() - begin
        least = -(-RUNS // (count * slots)) * iterations * seconds
        print(f"{count} worker{'s' if count > 1 else ' '}: {took[count]:7.1f} s (the agents alone: {least} s)", flush=True)
        for worker in [*workers, driver]:
            world.stop(worker)
    print(f"speed-up: {took[1] / took[3]:.2f}")


def long_run(world):
    """One loop of many empty iterations: time, memory of worker and server, events in a history."""
    print(f"\n== one loop of {ITERATIONS} iterations ({load()})", flush=True)
    agent = world.agent("empty", "cat >/dev/null; echo x >>log.txt")
    world.loop("long", "completion: fixed-n\ndelay: 0\nlimits: {idle: 1000000}")
    worker = world.worker("l1", "--drive", "--slots", "1")
    begin, busy = time.monotonic(), cpu(worker.pid)
    world.number += 1
    name = f"l{world.number}"
    world.run("loop", "run", "long", name, "--max", str(ITERATIONS), "--agent", agent, "--fleet", "--detach")
    most_worker = most_server = most_events = 0
    next_line, done = ITERATIONS // 10, 0
    while True:
        rows = [row for row in world.running() if row["name"] == name]
        most_worker = max(most_worker, memory(worker.pid))
        most_server = max(most_server, memory(world.server.pid))
        described = subprocess.run([TEMPORAL, "workflow", "describe", "--workflow-id", f"steadfast/{name}", "--address",
                                    f"127.0.0.1:{world.port}", "--output", "json"], capture_output=True, text=True)
        if described.returncode == 0:
            length = json.loads(described.stdout).get("workflowExecutionInfo", {}).get("historyLength", 0)
            most_events = max(most_events, int(length))
        if not rows:
            break
        done = rows[0]["iteration"]
        if done >= next_line > 0:
            took = time.monotonic() - begin
            print(f"  {done:6} iterations, {took:6.0f} s, {took / done * 1000:5.0f} ms each, worker {memory(worker.pid):.0f} MB, "
                  f"server {memory(world.server.pid):.0f} MB", flush=True)
            next_line += max(1, ITERATIONS // 10)
        time.sleep(1)
    took = time.monotonic() - begin
    status = json.loads(world.run("fleet", "status", name, "--json").stdout)
    commits = subprocess.run(["git", "-C", str(world.repo), "rev-list", "--count", "--first-parent",
                              f"refs/heads/steadfast/{name}"], capture_output=True, text=True, check=True)
    print(f"{status['status']}: {len(status['history'])} iterations, {int(commits.stdout) - 1} commits in {took:.0f} s, "
          f"{took / ITERATIONS * 1000:.0f} ms each")
    print(f"worker: most {most_worker:.0f} MB, {(cpu(worker.pid) - busy) / ITERATIONS * 1000:.1f} ms of CPU each "
          f"(without git and agents); server: most {most_server:.0f} MB; longest history {most_events} events")
    size = sum(file.stat().st_size for file in (world.root / "repo.git").rglob("*") if file.is_file())
    print(f"repository: {size / 1e6:.1f} MB; server's database: {(world.root / 'temporal.db').stat().st_size / 1e6:.1f} MB")
    world.stop(worker)


def cost(world):
    """What one iteration asks of the server and of git: the difference between a long and a short run."""
    short, long = 5, 45
    print(f"\n== what an iteration asks for ({load()})", flush=True)
    agent = world.agent("empty", "cat >/dev/null; echo x >>log.txt")
    world.loop("cost", "completion: fixed-n\ndelay: 0\nlimits: {idle: 1000000}")
    # A git that notes what it is called for.
    calls, real, folder = world.root / "git-calls", shutil.which("git"), world.root / "counting"
    folder.mkdir()
    world.agent("counting/git", f'for word; do case $word in fetch|push|clone|commit|checkout|worktree|reset|add|'
                f'write-tree|status|init|gc) echo "$word" >>{calls}; break;; esac; done\nexec {real} "$@"')
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{folder}:{path}"
    worker = world.worker("c1", "--drive", "--slots", "1")
    os.environ["PATH"] = path
    seen = []
    for iterations in (short, long):
        before = world.requests()
        calls.write_text("")
        world.number += 1
        world.run("loop", "run", "cost", f"c{world.number}", "--max", str(iterations), "--agent", agent, "--fleet",
                  "--detach")
        # The server is asked rarely, so that the questions of this script do not count.
        world.until(lambda: not world.running(), nap=3)
        seen.append((world.requests() - before, collections.Counter(calls.read_text().split())))
    world.stop(worker)
    for name, (few, many) in zip(("requests", "git"), zip(*seen)):
        each = {word: (many[word] - few[word]) / (long - short) for word in many}
        parts = ", ".join(f"{word} {count:.1f}" for word, count in sorted(each.items(), key=lambda one: -one[1])
                          if count >= 0.05 and word != "ListWorkflowExecutions")
        total = sum(count for word, count in each.items() if word != "ListWorkflowExecutions")
        print(f"{name} an iteration: {total:.1f} ({parts})")


def main():
    with tempfile.TemporaryDirectory(prefix="bench-fleet-") as root:
        world = World(root)
        try:
            for part in PARTS:
                {"start": start_to_agent, "speed": speed_up, "cost": cost, "long": long_run}[part](world)
        finally:
            world.close()


if __name__ == "__main__":
    main()
