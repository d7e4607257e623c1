"""Goals: commands of a person, the tool server, and what follows them."""
import json

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
    """Not the same when repeated: each call that was done adds one."""

    name = "goal start --queue"
    argv = ("goal", "start", "the next goal", "--queue", "--session", "s1")

    def prepare(self, world):
        active_goal(world)

    def queued(self, world):
        output = world.person("goal", "queue", "list", "--session", "s1", "--json")
        return len(output.json()["queue"]) if output.code == 0 else -1

    def judge(self, world, output, was_killed, out_of_memory):
        self.first = self.queued(world)
        yield from expect("queued goals", self.first, 0, 1)
        if output.code == 0 and not was_killed:
            yield from expect("acknowledged and lost: queued goals", self.first, 1)
        yield from super().judge(world, output, was_killed, out_of_memory)

    def recover(self, world):
        output = self.run(world)
        if output.code == 0 and self.queued(world) != self.first + 1:
            output.code, output.stderr = "wrong", "it did not add one goal"
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


class McpComplete(Operation):
    """The tool `update_goal` with verification, over the connection of a client."""

    name = "MCP update_goal complete, verified"
    # It works in threads.
    with_children = True

    def prepare(self, world):
        active_goal(world, "--verify", "echo checked")
        world.claude("PreToolUse", tool_name="mcp__steadfast__update_goal", tool_use_id="toolu_1",
                     tool_input={"status": "complete"})

    def run(self, world, prefix=()):
        hello = {"protocolVersion": "2025-11-25", "capabilities": {},
                 "clientInfo": {"name": "claude-code", "version": "2.1.197"}}
        call = {"name": "update_goal", "arguments": {"status": "complete"},
                "_meta": {"claudecode/toolUseId": "toolu_1"}}
        lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
                 {"jsonrpc": "2.0", "method": "notifications/initialized"},
                 {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}]
        return world.of_client("mcp", prefix=prefix, keep_open=[json.dumps(line) for line in lines])

    def said_done(self, output):
        return '"isError":false' in output.stdout and '"status":"complete"' in output.stdout.replace("\\", "")

    def safe(self, world):
        yield from expect("the status", goal_of(world).get("status"), "active", "complete")

    def holds(self, world):
        goal = goal_of(world)
        yield from expect("the status", goal.get("status"), "complete")
        yield from expect("verified", goal.get("verified"), True)
        completed = [event for event in history(world)["events"] if event["kind"].startswith("goal_completed")]
        yield from expect("the number of completions", len(completed), 1)


OPERATIONS = [GoalStartNew, GoalStartExisting, GoalPause, GoalResume, GoalComplete, GoalAbandon, GoalBlock, GoalWait,
              GoalEdit, GoalQueue, GoalAdopt, GoalExtend, McpComplete]
