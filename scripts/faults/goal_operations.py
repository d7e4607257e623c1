"""Goals: commands of a person, the tool server, and what follows them."""
from operation import Operation, count_events, expect, goal_of, history

THREAD = "01a1de4d-469f-7d62-b479-f9ee8e1e36ee"


def active_goal(world, *limits):
    """A session with an active goal, a turn that runs, and an answer that is not charged yet."""
    world.claude("SessionStart", source="startup")
    world.ok("goal", "start", "all tests pass", "--session", "s1", *(limits or ("--budget", "1M", "--max-turns", "10")))
    world.claude("UserPromptSubmit", prompt="<task-notification>")


class GoalStart(Operation):
    argv = ("goal", "start", "all tests pass", "--session", "s1", "--json")
    # Repeated, it finds the goal that it started.
    repeat_codes = (0, 3)

    def holds(self, world):
        goal = goal_of(world)
        yield from expect("the objective", goal.get("objective"), "all tests pass")
        yield from expect("the status", goal.get("status"), "active")
        yield from expect("the number of live goals", self.live(world), 1)

    def safe(self, world):
        yield from expect("the number of live goals", self.live(world), 0, 1)

    def live(self, world):
        return sum(goal["status"] == "active" for goal in history(world)["goals"])


class GoalStartNew(GoalStart):
    name = "goal start, new store"


class GoalStartExisting(GoalStart):
    name = "goal start, existing store"

    def prepare(self, world):
        active_goal(world)
        world.ok("goal", "edit", "the first goal", "--session", "s1")
        world.ok("goal", "complete", "--session", "s1")

    def safe(self, world):
        yield from super().safe(world)
        first = [goal["status"] for goal in history(world)["goals"] if goal["objective"] == "the first goal"]
        yield from expect("the first goal", first, ["complete"])


class Verb(Operation):
    """A change of a live goal that can be repeated."""

    before, after = "active", ""
    repeat_codes = (0, 3)
    verb, kind = "", ""

    def __init__(self):
        self.name = f"goal {self.verb}"
        self.argv = ("goal", self.verb, "--session", "s1")

    def prepare(self, world):
        active_goal(world)

    def safe(self, world):
        yield from expect("the status", goal_of(world).get("status"), self.before, self.after)

    def holds(self, world):
        yield from expect("the status", goal_of(world).get("status"), self.after)
        yield from expect(f"the number of events {self.kind}", count_events(history(world), self.kind), 1)


class GoalPause(Verb):
    verb, after, kind = "pause", "paused", "goal_paused"


class GoalResume(Verb):
    verb, before, after, kind = "resume", "paused", "active", "goal_resumed"

    def prepare(self, world):
        active_goal(world)
        world.ok("goal", "pause", "--session", "s1")


class GoalComplete(Verb):
    verb, after, kind = "complete", "complete", "goal_completed_by_user"


class GoalAbandon(Verb):
    verb, after, kind = "abandon", "abandoned", "goal_abandoned"


class GoalBlock(Verb):
    verb, after, kind = "block", "blocked", "goal_blocked"

    def __init__(self):
        super().__init__()
        self.argv = (*self.argv, "--reason", "needs a key")


class GoalWait(Verb):
    verb, after, kind = "wait", "paused", "goal_waiting"

    def __init__(self):
        super().__init__()
        self.argv = (*self.argv, "--for", "5h")

    def holds(self, world):
        yield from super().holds(world)
        yield from expect("the reason", goal_of(world).get("paused_reason"), "waiting")


class GoalReconcile(Verb):
    """The goal was paused, because a part of the session file was gone before it was read."""

    verb, before, after, kind = "reconcile", "paused", "active", "goal_reconciled"

    def __init__(self):
        super().__init__()
        self.argv = (*self.argv, "--accept-reset")

    def prepare(self, world):
        active_goal(world)
        world.says("m1", 100)
        world.claude("Stop", stop_hook_active=False, last_assistant_message="work", background_tasks=[])
        world.write("s1.jsonl", '{"type":"user","isCompactSummary":true,"message":{}}\n')
        world.claude("SessionStart", source="compact")
        world.claude("Stop", stop_hook_active=False, last_assistant_message="", background_tasks=[])

    def holds(self, world):
        yield from super().holds(world)
        yield from expect("uncertain accounting", goal_of(world).get("accounting_uncertain"), False)
        yield from expect("charged tokens", goal_of(world).get("total_tokens"), 100)


class GoalVerify(Operation):
    name = "goal verify"
    argv = ("goal", "verify", "--session", "s1")

    def prepare(self, world):
        active_goal(world, "--verify", "echo checked")

    def safe(self, world):
        yield from expect("the status", goal_of(world).get("status"), "active")

    def holds(self, world):
        evidence = goal_of(world).get("last_verification") or {}
        yield from expect("the evidence", evidence.get("exit_code"), 0)


class GoalPauseAll(Operation):
    name = "goal pause --all"
    argv = ("goal", "pause", "--all")

    def prepare(self, world):
        active_goal(world)
        world.ok("goal", "start", "another goal", "--session", "s2")
        world.ok("goal", "start", "a goal that waits", "--session", "s3")
        world.ok("goal", "wait", "--for", "5h", "--session", "s3")

    def reasons(self, world):
        return [goal_of(world, session).get("paused_reason") for session in ("s1", "s2", "s3")]

    def safe(self, world):
        yield from expect("the reasons", self.reasons(world), [None, None, "waiting"], ["user"] * 3)

    def holds(self, world):
        yield from expect("the reasons", self.reasons(world), ["user"] * 3)


class GoalCleanup(Operation):
    name = "goal cleanup --delete"
    argv = ("goal", "cleanup", "--delete", "--older-than", "0")

    def prepare(self, world):
        active_goal(world)
        for session in ("gone1", "gone2"):
            world.ok("goal", "start", f"the goal of {session}", "--session", session)
        world.seen = None

    def orphans(self, world):
        return [goal["session_id"] for goal in history(world)["goals"] if goal["session_id"] != "s1"]

    def safe(self, world):
        yield from expect("the live goal", goal_of(world).get("status"), "active")
        if set(self.orphans(world)) - {"gone1", "gone2"}:
            yield f"unknown goals: {self.orphans(world)}"

    def holds(self, world):
        yield from expect("orphans", self.orphans(world), [])
        yield from expect("their events", count_events(history(world), "goal_created"), 1)


class GoalReport(Operation):
    """A file that a command writes is the whole one or none."""

    file = "report.html"
    argv = ("goal", "report", "--session", "s1", "--html", file)
    name = "goal report --html"

    def prepare(self, world):
        active_goal(world)

    def text(self, world):
        path = world.path(f"project/{self.file}")
        return path.read_text() if path.exists() else None

    def safe(self, world):
        text = self.text(world)
        if text is not None and not (self.first in text and text.rstrip().endswith(self.last)):
            yield f"{self.file} is half written: {len(text)} characters, {text[-100:]!r}"

    def holds(self, world):
        if self.text(world) is None:
            yield f"{self.file} is not there"

    first, last = "all tests pass", "</html>"


class GoalEdit(Operation):
    name = "goal edit"
    argv = ("goal", "edit", "all tests pass twice", "--session", "s1")
    # Repeated, it changes nothing.
    repeat_codes = (0, 3)

    def prepare(self, world):
        active_goal(world)

    def safe(self, world):
        yield from expect("the objective", goal_of(world).get("objective"), "all tests pass", "all tests pass twice")

    def holds(self, world):
        yield from expect("the objective", goal_of(world).get("objective"), "all tests pass twice")


class GoalQueue(Operation):
    """A change of the queue, which is another one when it is repeated."""

    def __init__(self, words, before, change):
        self.argv = ("goal", *words, "--session", "s1")
        self.name = "goal start --queue" if words[0] == "start" else f"goal {words[0]} {words[1]}"
        self.before, self.change = before, change

    def prepare(self, world):
        active_goal(world)
        for objective in self.before:
            world.ok("goal", "start", objective, "--queue", "--session", "s1")

    def queued(self, world):
        output = world.person("goal", "queue", "list", "--session", "s1", "--json")
        return [entry["objective"] for entry in output.json()["queue"]] if output.code == 0 else repr(output)

    def judge(self, world, output, was_killed, out_of_memory):
        self.first = self.queued(world)
        yield from expect("the queue", self.first, self.before, self.change(self.before))
        if output.code == 0 and not was_killed:
            yield from expect("acknowledged and lost: the queue", self.first, self.change(self.before))
        yield from super().judge(world, output, was_killed, out_of_memory)

    def recover(self, world):
        output, wanted = self.run(world), self.change(self.first)
        if output.code == 0 and self.queued(world) != wanted:
            output.code, output.stderr = "wrong", f"the queue is not {wanted}"
        return output


class GoalAdopt(Operation):
    name = "goal adopt"
    repeat_codes = (0, 1, 2, 3)

    def prepare(self, world):
        active_goal(world)
        world.claude("SessionEnd", reason="prompt_input_exit")
        self.goal = goal_of(world)["goal_id"]
        world.seen = None

    def run(self, world, prefix=()):
        return world.person("goal", "adopt", self.goal, "--session", "s2", prefix=prefix)

    def safe(self, world):
        owners = [goal["session_id"] for goal in history(world)["goals"] if goal["goal_id"] == self.goal]
        yield from expect("its sessions", owners, ["s1"], ["s2"])

    def holds(self, world):
        yield from expect("the adopted goal", goal_of(world, "s2").get("goal_id"), self.goal)


class GoalExtend(Operation):
    """Not the same when repeated: each call that was done adds once."""

    name = "goal extend"
    argv = ("goal", "extend", "--add-turns", "5", "--session", "s1")

    def prepare(self, world):
        active_goal(world)

    def judge(self, world, output, was_killed, out_of_memory):
        world.seen = None
        first = goal_of(world).get("continuations_remaining")
        yield from expect("turns", first, 10, 15)
        if output.code == 0 and not was_killed:
            yield from expect("acknowledged and lost: turns", first, 15)
        self.first = first
        yield from super().judge(world, output, was_killed, out_of_memory)

    def holds(self, world):
        turns = goal_of(world).get("continuations_remaining")
        added = count_events(history(world), "goal_extended")
        yield from expect("turns", turns, 10 + 5 * added)

    def recover(self, world):
        output = self.run(world)
        world.seen = None
        if output.code == 0 and goal_of(world).get("continuations_remaining") != self.first + 5:
            output.code, output.stderr = "wrong", "it added something else than 5 turns"
        return output


OPERATIONS = [
    GoalStartNew, GoalStartExisting, GoalPause, GoalResume, GoalComplete, GoalAbandon, GoalBlock, GoalWait, GoalReconcile,
    GoalEdit, GoalAdopt, GoalExtend, GoalVerify, GoalPauseAll, GoalCleanup, GoalReport,
    lambda: GoalQueue(("start", "C", "--queue"), ["A", "B"], lambda queue: [*queue, "C"]),
    lambda: GoalQueue(("queue", "move", "3", "1"), ["A", "B", "C"], lambda queue: [queue[-1], *queue[:-1]]),
    lambda: GoalQueue(("queue", "drop", "1"), ["A", "B", "C"], lambda queue: queue[1:]),
]
