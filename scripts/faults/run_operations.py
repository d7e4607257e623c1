"""Loops and pipelines: a run that was hit is resumed, completes, and its public files tell the same as the store."""
import json, pathlib, signal, sqlite3, subprocess, time

from goal_operations import active_goal
from operation import Operation, expect, goal_of
from world import CONFIG

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
                # What a killed engine left beside the public files of a completed run goes with the next command that
                # writes there.
                return output or world.person(self.kind, "cleanup")
            words = self.start_words(world) if status == "none" else (self.kind, "resume", self.run_name)
            output = self.command(world, words)
            if output.code == 0:
                return output
        return output

    def command(self, world, words):
        return world.person(*words)

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
    with_children, cuts_power = True, False


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

    def __init__(self, kind="loop"):
        self.kind = kind

    def define(self, world):
        world.write("home/pipelines/three.yaml", "name: three\ndefaults: {delay: 0}\nstages:\n"
                    "  - {name: all, runs: 3, prompt: go}\n")
        words = (self.kind, "run", "three", "three", "--agent", f"sh {world.path('agent.sh')}")
        kill_engine(world, words, lambda: world.path("project/tries").exists())
        world.write("project/go", "")
        ended = list(world.path("home/runs").rglob("exit.json"))
        for _ in range(250):
            ended = ended or list(world.path("home/runs").rglob("exit.json"))
            if ended:
                break
            time.sleep(0.02)


class Resume(Killed):
    def __init__(self, kind="loop"):
        super().__init__(kind)
        self.name = f"{kind} resume"

    def start_words(self, world):
        return (self.kind, "resume", "three")


class Detached(Run):
    """The engine works in the background: what is hit is the command that starts it."""

    name = "loop run --detach"
    cuts_power = False

    def start_words(self, world):
        return (*super().start_words(world), "--detach")

    def safe(self, world):
        self.wait_for_engine(world)
        yield from super().safe(world)

    def holds(self, world):
        self.wait_for_engine(world)
        yield from super().holds(world)


class Objective(Run):
    """`steadfast run`: a goal of its own, whose check passes in the first iteration."""

    name, iterations = "run", 1

    def start_words(self, world):
        return ("run", "all tests pass", "--agent", f"sh {world.path('agent.sh')}", "--verify", "true", "--max", "3")

    def status(self, world):
        runs = world.person("loop", "list", "--all", "--json")
        names = [run["name"] for run in runs.json()["runs"]] if runs.code == 0 else []
        if len(names) != 1:
            return {"status": "none" if not names else f"{len(names)} runs"}
        self.run_name = names[0]
        return super().status(world)

    def holds(self, world):
        yield from super().holds(world)
        goal = goal_of(world, self.run_name)
        yield from expect("the goal", [goal.get("status"), goal.get("verified")], ["complete", True])


class Merge(Run):
    """Two agents work in parallel; a stage merges their branches into the checkout of the user."""

    name = "pipeline with a merge"
    kind, run_name, iterations = "pipeline", "merged", 3
    script = "cat > /dev/null; echo $STEADFAST_ITERATION > mine-$STEADFAST_ITERATION; echo wrote"

    def define(self, world):
        world.write("home/pipelines/merged.yaml", "name: merged\ndefaults: {delay: 0}\nstages:\n"
                    "  - {name: build, runs: 2, parallel: true, prompt: go}\n  - {name: join, merge: build}\n")
        world.git("init", "-q", "-b", "main")
        world.git("commit", "-q", "--allow-empty", "-m", "first")
        for name, value in (("user.name", "A"), ("user.email", "a@example.com")):
            world.git("config", name, value)

    def start_words(self, world):
        return ("pipeline", "run", "merged", "merged", "--agent", f"sh {world.path('agent.sh')}")

    def holds(self, world):
        yield from super().holds(world)
        merged = [path.name for path in sorted(world.path("project").glob("mine-*"))]
        yield from expect("the merged files", merged, ["mine-1", "mine-2"])


USAGE = '{"type":"result","subtype":"success","is_error":false,"result":"did it","total_cost_usd":0.1,' \
        '"usage":{"input_tokens":300,"output_tokens":100}}'


class Nested(Run):
    """A run that an agent starts: what it spends is charged to the goal of its session, once."""

    name = "nested loop"
    in_agent = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": "s1"}

    def define(self, world):
        world.write("bin/claude", f"#!/bin/sh\ncat > /dev/null; echo '{USAGE}'\n", 0o755)
        world.write("home/config.toml", f"{CONFIG}[agents.claude]\nprogram = '{world.path('bin/claude')}'\n")
        active_goal(world)

    def run(self, world, prefix=()):
        return world.person("loop", "run", "three", prefix=prefix, environment=self.in_agent)

    def start_words(self, world):
        return ("loop", "run", "three")

    def command(self, world, words):
        return world.person(*words, environment=self.in_agent)

    def holds(self, world):
        yield from super().holds(world)
        with sqlite3.connect(f"file:{world.path('home/goals.db')}?mode=ro", uri=True) as db:
            spent = db.execute("SELECT sum(input_tokens + output_tokens) FROM run_attempts").fetchone()[0]
        db.close()
        yield from expect("charged tokens", goal_of(world).get("total_tokens"), spent)


OPERATIONS = [Loop, LoopWithChildren, Pipeline, Worktrees, Merge, Objective, Nested, Detached, Resume,
              lambda: Resume("pipeline")]
