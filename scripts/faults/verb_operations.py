"""Commands on runs that are there, and on those that start later."""
import json, os, sqlite3, time

from operation import Operation, expect
from run_operations import HELD, Killed, Run, kill_engine


class Say(Killed):
    is_slow = False
    said = "Mind the gap"

    def __init__(self, kind):
        super().__init__(kind)
        self.name = f"{kind} say"

    def run(self, world, prefix=()):
        return world.person(self.kind, "say", "three", self.said, prefix=prefix)

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


class Answer(Run):
    kind, run_name, is_slow = "pipeline", "ship", False

    def __init__(self, verb, is_yes):
        self.verb, self.is_yes = verb, is_yes
        self.name = f"pipeline {verb}"

    def define(self, world):
        world.write("home/pipelines/ship.yaml", "name: ship\ndefaults: {delay: 0}\nstages:\n"
                    "  - {name: build, prompt: B}\n  - {name: deploy, prompt: D, approve: 'Ship it?'}\n")
        kill_engine(world, ("pipeline", "run", "ship", "ship", "--agent", f"sh {world.path('agent.sh')}"),
                    lambda: self.status(world).get("approvals"))

    def run(self, world, prefix=()):
        return world.person("pipeline", self.verb, "ship", prefix=prefix)

    def recover(self, world):
        return self.run(world)

    def answer(self, world):
        return [answer["approved"] for answer in self.status(world).get("approvals", [])]

    def safe(self, world):
        yield from expect("the answer", self.answer(world), [None], [self.is_yes])

    def holds(self, world):
        yield from expect("the answer", self.answer(world), [self.is_yes])


class Kill(Killed):
    """A run whose engine and agent work is stopped with all its processes."""

    cuts_power = False
    # Repeated, it says that nothing runs.
    repeat_codes = (0, 2, 3)

    def __init__(self, kind):
        super().__init__(kind)
        self.name = f"{kind} kill"

    def define(self, world):
        world.write("home/pipelines/three.yaml", "name: three\ndefaults: {delay: 0}\nstages:\n"
                    "  - {name: all, runs: 3, prompt: go}\n")
        world.write("agent.sh", f"echo $$ > agent\n{HELD}\n")

    def run(self, world, prefix=()):
        self.agent = world.path("project/agent")
        if not self.agent.exists():
            world.ok(self.kind, "run", "three", "three", "--detach", "--agent", f"sh {world.path('agent.sh')}")
            for _ in range(500):
                if world.path("project/tries").exists():
                    break
                time.sleep(0.02)
        return world.person(self.kind, "kill", "three", prefix=prefix)

    def recover(self, world):
        return self.run(world)

    def holds(self, world):
        self.wait_for_engine(world)
        yield from expect("the status", self.status(world).get("status"), "killed")
        if os.path.exists(f"/proc/{self.agent.read_text().strip()}"):
            yield "its agent still works"


class Cleanup(Killed):
    """The run of a dead engine is marked; its files tell the same as the store."""

    is_slow = False
    marked = "unknown_termination"

    def __init__(self, kind):
        super().__init__(kind)
        self.name = f"{kind} cleanup"

    def run(self, world, prefix=()):
        return world.person(self.kind, "cleanup", prefix=prefix)

    def recover(self, world):
        return self.run(world)

    def safe(self, world):
        yield from super().safe(world)
        yield from expect("the status", self.status(world).get("status"), "running", "crashed", self.marked)

    def holds(self, world):
        yield from expect("the status", self.status(world).get("status"), self.marked)
        registry = json.loads(world.path("project/.claude/loop-sessions.json").read_text())["sessions"]
        yield from expect("the registry", registry[f"{self.kind}-three"]["status"], self.marked)


class Import(Run):
    """A loop of an older tool, whose files are only read."""

    run_name, is_slow = "old", False
    words = "what we learned\n"

    def __init__(self, kind):
        self.by = kind
        self.name = f"{kind} import"

    def define(self, world):
        history = [{"iteration": number, "timestamp": f"2025-01-10T10:{number}0:00Z", "plateau": "false"}
                   for number in (1, 2)]
        state = {"session": "old", "loop_type": "three", "started_at": "2025-01-10T10:00:00Z", "status": "running",
                 "iteration": 2, "history": history}
        entry = {"type": "loop", "loop_type": "three", "status": "killed", "max_iterations": 3}
        world.write("project/.claude/loop-state-old.json", json.dumps(state))
        world.write("project/.claude/loop-sessions.json", json.dumps({"sessions": {"loop-old": entry}}))
        world.write("project/.claude/progress-old.md", self.words)
        self.state = json.dumps(state)

    def run(self, world, prefix=()):
        return world.person(self.by, "import", prefix=prefix)

    def recover(self, world):
        return self.run(world)

    def safe(self, world):
        yield from super().safe(world)
        if world.path("project/.claude/progress-old.md").read_text() != self.words:
            yield "an original was changed"

    def holds(self, world):
        status = self.status(world)
        yield from expect("the run", [status.get("status"), status.get("iteration")], ["killed", 2])
        copy = world.path("project/.claude/loop-progress/progress-old.txt")
        if not copy.exists() or copy.read_text() != self.words:
            yield "its progress is not there"


class Definition(Operation):
    """A new loop type or pipeline is whole. Repeated, it is refused, because it is there."""

    repeat_codes = (0, 1)

    def __init__(self, kind):
        self.kind, self.name, self.argv = kind, f"{kind} new", (kind, "new", "mine")

    def holds(self, world):
        checked = world.person(self.kind, "validate", "mine")
        if checked.code != 0:
            yield f"it is not valid: {checked}"


class Appointment(Run):
    """A run that starts later: there is one appointment, or none."""

    is_slow = False
    repeat_codes = (0, 3)

    def __init__(self, kind, *when):
        self.kind, self.when = kind, when
        self.name = f"{kind} run {when[0]}"

    def define(self, world):
        world.write("home/pipelines/three.yaml", "name: three\ndefaults: {delay: 0}\nstages:\n"
                    "  - {name: all, runs: 3, prompt: go}\n")

    def make(self, world, prefix=()):
        words = (self.kind, "run", "three", "three", "--agent", f"sh {world.path('agent.sh')}", *self.when)
        return world.person(*words, prefix=prefix)

    def run(self, world, prefix=()):
        return self.make(world, prefix)

    def recover(self, world):
        return self.run(world)

    def appointments(self, world):
        listed = world.person(self.kind, "list", "--json")
        return [one["name"] for one in listed.json()["appointments"]] if listed.code == 0 else repr(listed)

    def safe(self, world):
        yield from expect("the appointments", self.appointments(world), [], ["three"])

    def holds(self, world):
        yield from expect("the appointments", self.appointments(world), ["three"])


class Cancel(Appointment):
    repeat_codes = (0, 2)

    def __init__(self, kind):
        super().__init__(kind, "--every", "1d")
        self.name = f"{kind} cancel"

    def define(self, world):
        super().define(world)
        made = self.make(world)
        if made.code != 0:
            raise RuntimeError(f"preparation: {made}")

    def run(self, world, prefix=()):
        return world.person(self.kind, "cancel", "three", prefix=prefix)

    def holds(self, world):
        yield from expect("the appointments", self.appointments(world), [])


class Watch(Run):
    """One round: the goal waits for a file that is there."""

    name, argv = "watch --once", ("watch", "--once")
    is_slow = cuts_power = False

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


class Look(Watch):
    name, argv = "__look", ("__look", "s1")


class Due(Appointment):
    """The time of an appointment has come: its run is started, once."""

    is_slow, cuts_power = True, False
    repeat_codes = (0,)

    def __init__(self):
        super().__init__("loop", "--at", "in 2h")
        self.name = "watch --once, an appointment"

    def define(self, world):
        self.make(world)
        with sqlite3.connect(world.path("home/goals.db")) as db:
            db.execute("UPDATE appointments SET next_at_ms = next_at_ms - 9000000, first_at_ms = first_at_ms - 9000000")
        db.close()

    def run(self, world, prefix=()):
        return world.person("watch", "--once", prefix=prefix)

    def said_done(self, output):
        return False

    def safe(self, world):
        return Run.safe(self, world)

    def recover(self, world):
        output = self.run(world)
        for _ in range(100):
            if self.status(world)["status"] not in ("none", "running"):
                break
            time.sleep(0.05)
        return output

    def holds(self, world):
        yield from Run.holds(self, world)
        yield from expect("the appointments", self.appointments(world), [])


KINDS = ("loop", "pipeline")
OPERATIONS = [
    *(lambda kind=kind, make=make: make(kind) for make in (Say, Kill, Cleanup, Import, Definition, Cancel) for kind in KINDS),
    *(lambda kind=kind: Appointment(kind, "--every", "1d") for kind in KINDS),
    lambda: Appointment("loop", "--at", "in 2h"),
    lambda: Answer("approve", True), lambda: Answer("reject", False), Watch, Look, Due,
]
