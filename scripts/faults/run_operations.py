"""Loops and pipelines: a run that was hit is resumed, completes, and its public files tell the same as the store."""
import json, pathlib, signal, subprocess, time

from operation import Operation, expect

COUNTING = "cat > /dev/null; echo x >> tries; echo \"done $STEADFAST_ITERATION\""
HELD = "cat > /dev/null; echo x >> tries; while [ ! -e go ]; do sleep 0.02; done; echo done"


class Run(Operation):
    kind, run_name = "loop", "three"
    is_slow = True
    iterations = 3
    script = COUNTING

    def prepare(self, world):
        world.write("home/loops/three/loop.yaml", "name: three\ndelay: 0\ncompletion: fixed-n\nruns: 3\n")
        world.write("home/loops/three/prompt.md", "${SESSION} ${ITERATION}\n")
        world.write("agent.sh", f"{self.script}\n")
        self.define(world)

    def define(self, world):
        pass

    def start_words(self, world):
        return ("loop", "run", "three", "--agent", f"sh {world.path('agent.sh')}")

    def run(self, world, prefix=()):
        return world.person(*self.start_words(world), prefix=prefix)

    def status(self, world):
        output = world.person(self.kind, "status", self.run_name, "--json")
        return output.json() if output.code == 0 else {"status": "none", "error": repr(output)}

    def safe(self, world):
        for path in world.path("project/.claude").rglob("*.json"):
            try:
                json.loads(path.read_text())
            except ValueError as error:
                yield f"{path.name} is half written: {error}"

    def recover(self, world):
        """Starts the run if there is none, and resumes it until it is complete."""
        output = None
        for _ in range(3):
            self.wait_for_engine(world)
            status = self.status(world)["status"]
            if status == "completed":
                return output or world.person(self.kind, "status", self.run_name)
            words = self.start_words(world) if status == "none" else (self.kind, "resume", self.run_name)
            output = world.person(*words)
            if output.code == 0:
                return output
        return output

    def wait_for_engine(self, world):
        for _ in range(200):
            if not self.status(world).get("live"):
                return
            time.sleep(0.05)

    def holds(self, world):
        status = self.status(world)
        yield from expect("the status", status.get("status"), "completed")
        yield from self.public_files(world)
        done = [(entry["stage"], entry["iteration"]) for entry in status.get("history", [])
                if entry.get("iteration") is not None]
        yield from expect("iterations", len(set(done)), self.iterations)
        yield from expect("iterations that are recorded twice", len(done) - len(set(done)), 0)

    def public_files(self, world):
        registry = json.loads(world.path("project/.claude/loop-sessions.json").read_text())
        entry = registry["sessions"].get(f"{self.kind}-{self.run_name}", {})
        yield from expect("the registry's status", entry.get("status"), "completed")
        ended = json.loads(world.path("project/.claude/loop-completions.json").read_text())
        yield from expect("the last completion", ended[-1]["status"], "completed")


class Loop(Run):
    name = "loop"


class LoopWithChildren(Run):
    name = "loop, with its supervisors and agents"
    with_children = True


class Pipeline(Run):
    name = "pipeline"
    kind, run_name, iterations = "pipeline", "relay", 3

    def define(self, world):
        world.write("home/pipelines/relay.yaml", "name: relay\ndefaults: {delay: 0}\nstages:\n"
                    "  - {name: ideas, runs: 2, prompt: go}\n  - {name: plan, prompt: 'all: ${INPUTS}'}\n")

    def start_words(self, world):
        return ("pipeline", "run", "relay", "relay", "--agent", f"sh {world.path('agent.sh')}")

    def public_files(self, world):
        yield from super().public_files(world)
        folder = world.path("project/.claude/pipeline-runs/relay")
        yield from expect("state.json", json.loads((folder / "state.json").read_text())["status"], "completed")
        for stage in ("stage-1-ideas", "stage-2-plan"):
            if not (folder / stage / "output.md").exists():
                yield f"{stage}/output.md is missing"


class Worktrees(Run):
    name = "pipeline in worktrees"
    kind, run_name, iterations = "pipeline", "apart", 2
    script = "cat > /dev/null; echo $STEADFAST_ITERATION > mine; echo wrote"

    def define(self, world):
        world.write("home/pipelines/apart.yaml", "name: apart\ndefaults: {delay: 0}\nstages:\n"
                    "  - {name: p, runs: 2, parallel: true, prompt: go}\n")
        world.git("init", "-q", "-b", "main")
        world.git("commit", "-q", "--allow-empty", "-m", "first")

    def start_words(self, world):
        return ("pipeline", "run", "apart", "apart", "--agent", f"sh {world.path('agent.sh')}")

    def holds(self, world):
        yield from super().holds(world)
        for entry in self.status(world).get("history", []):
            try:
                kept = world.git("show", f"{entry['branch']}:mine")
            except subprocess.CalledProcessError as error:
                # What git cannot commit stays in its worktree, and the user is told where.
                file = pathlib.Path(entry.get("worktree") or "/nowhere") / "mine"
                kept = file.read_text() if file.exists() else f"{entry['branch']}: {error.stderr}"
            yield from expect("the work of an iteration", kept, f"{entry['iteration']}\n")


def kill_engine(world, words, is_ready):
    """Starts a run, and kills its engine once it is that far."""
    engine = subprocess.Popen([world.binary, *words], env=world.environment, cwd=world.path("project"),
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1000):
        if is_ready():
            break
        time.sleep(0.02)
    engine.send_signal(signal.SIGKILL)
    engine.wait()


class Killed(Run):
    """A loop whose engine was killed in its first iteration; the agent's end was seen by its supervisor only."""

    script = HELD

    def define(self, world):
        kill_engine(world, super().start_words(world), lambda: world.path("project/tries").exists())
        world.write("project/go", "")
        ended = list(world.path("home/runs").rglob("exit.json"))
        for _ in range(250):
            ended = ended or list(world.path("home/runs").rglob("exit.json"))
            if ended:
                break
            time.sleep(0.02)


class Resume(Killed):
    name = "resume of a killed loop"

    def start_words(self, world):
        return ("loop", "resume", "three")


class Say(Killed):
    name = "loop say"
    is_slow = False
    said = "Mind the gap"

    def run(self, world, prefix=()):
        return world.person("loop", "say", "three", self.said, prefix=prefix)

    def notes(self, world):
        return [note["text"] for note in self.status(world).get("notes", [])]

    def safe(self, world):
        self.before = len(self.notes(world))
        yield from expect("messages", self.before, 0, 1)

    def recover(self, world):
        output = self.run(world)
        if output.code == 0 and len(self.notes(world)) != self.before + 1:
            output.code, output.stderr = "wrong", "not one more message"
        return output

    def holds(self, world):
        notes = self.notes(world)
        if not notes or set(notes) != {self.said}:
            yield f"messages: {notes}"


class Approve(Run):
    name = "pipeline approve"
    kind, run_name, is_slow = "pipeline", "ship", False

    def define(self, world):
        world.write("home/pipelines/ship.yaml", "name: ship\ndefaults: {delay: 0}\nstages:\n"
                    "  - {name: build, prompt: B}\n  - {name: deploy, prompt: D, approve: 'Ship it?'}\n")
        kill_engine(world, ("pipeline", "run", "ship", "ship", "--agent", f"sh {world.path('agent.sh')}"),
                    lambda: self.status(world).get("approvals"))

    def run(self, world, prefix=()):
        return world.person("pipeline", "approve", "ship", prefix=prefix)

    def recover(self, world):
        return self.run(world)

    def answer(self, world):
        return [answer["approved"] for answer in self.status(world).get("approvals", [])]

    def safe(self, world):
        yield from expect("the answer", self.answer(world), [None], [True])

    def holds(self, world):
        yield from expect("the answer", self.answer(world), [True])


class Watch(Run):
    """One round: the goal waits for a file that is there."""

    name = "watch --once"
    is_slow = False
    argv = ("watch", "--once")

    def prepare(self, world):
        world.write("bin/codex", "#!/bin/sh\necho x >> \"$HOME/../woken\"\n", 0o755)
        world.write("bin/claude", "#!/bin/sh\necho x >> \"$HOME/../woken\"\n", 0o755)
        world.claude("SessionStart", source="startup")
        world.ok("goal", "start", "all tests pass", "--session", "s1")
        world.claude("SessionEnd", reason="prompt_input_exit")
        world.ok("goal", "wait", "--file", "there", "--session", "s1")
        world.write("project/there", "")

    def run(self, world, prefix=()):
        return world.person(*self.argv, prefix=prefix)

    def recover(self, world):
        return self.run(world)

    def goal(self, world):
        output = world.person("goal", "status", "--session", "s1", "--json")
        return output.json()["goal"] if output.code == 0 else {"error": repr(output)}

    def safe(self, world):
        yield from expect("the status", self.goal(world).get("status"), "active", "paused")

    def holds(self, world):
        waits_for = self.goal(world).get("waits_for")
        if waits_for and "which is met" not in waits_for:
            yield f"it waits for {waits_for}"


OPERATIONS = [Loop, LoopWithChildren, Pipeline, Worktrees, Resume, Say, Approve, Watch]
