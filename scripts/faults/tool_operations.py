"""Tools of the agent, over the connection of a client: `steadfast mcp`."""
import json

from goal_operations import active_goal
from operation import Operation, count_events, expect, goal_of, history

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "claude-code", "version": "2.1.197"}}


class Tool(Operation):
    """A call of a tool on the goal of the session. Repeated, it may be refused: the result stays."""

    # It works in threads.
    with_children, cuts_power = True, False
    tool, arguments, agent = "", {}, {}
    before = after = "active"
    limits = ()
    # Whether the tool needs a prompt of the user, and how many turns come before it.
    needs_prompt, turns = False, 0

    def __init__(self):
        self.name = self.name or f"MCP {self.tool}"

    def prepare(self, world):
        active_goal(world, *self.limits)
        for turn in range(self.turns):
            world.claude("Stop", stop_hook_active=turn > 0, last_assistant_message=f"try {turn}", background_tasks=[])
        if self.needs_prompt:
            world.claude("UserPromptSubmit", prompt="change the goal")
        self.note(world)

    def note(self, world):
        """The client's hook before the call, which proves who calls."""
        world.claude("PreToolUse", tool_name=f"mcp__steadfast__{self.tool}", tool_use_id="toolu_1",
                     tool_input=self.arguments, **self.agent)

    def run(self, world, prefix=()):
        call = {"name": self.tool, "arguments": self.arguments, "_meta": {"claudecode/toolUseId": "toolu_1"}}
        lines = [{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO},
                 {"jsonrpc": "2.0", "method": "notifications/initialized"},
                 {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}]
        return world.of_client("mcp", prefix=prefix, keep_open=[json.dumps(line) for line in lines])

    def said_done(self, output):
        return '"isError":false' in output.stdout

    def safe(self, world):
        yield from expect("the status", goal_of(world).get("status"), self.before, self.after)

    def holds(self, world):
        yield from expect("the status", goal_of(world).get("status"), self.after)


class Create(Tool):
    tool, arguments = "create_goal", {"objective": "all tests pass", "max_turns": 10}
    before = None

    def prepare(self, world):
        world.claude("SessionStart", source="startup")
        world.claude("UserPromptSubmit", prompt="start a goal: all tests pass")
        self.note(world)

    def holds(self, world):
        yield from super().holds(world)
        yield from expect("the number of goals", len(history(world)["goals"]), 1)
        yield from expect("turns", goal_of(world).get("continuations_remaining"), 10)


class Complete(Tool):
    """With verification."""

    name = "MCP update_goal complete, verified"
    tool, arguments, after, limits = "update_goal", {"status": "complete"}, "complete", ("--verify", "echo checked")

    def holds(self, world):
        yield from super().holds(world)
        yield from expect("verified", goal_of(world).get("verified"), True)
        completed = [event for event in history(world)["events"] if event["kind"].startswith("goal_completed")]
        yield from expect("the number of completions", len(completed), 1)


class Block(Tool):
    name = "MCP update_goal blocked"
    tool, arguments, after = "update_goal", {"status": "blocked", "blocked_reason": "needs a key"}, "blocked"
    turns = 3

    def holds(self, world):
        yield from super().holds(world)
        yield from expect("the number of blocks", count_events(history(world), "goal_blocked"), 1)


class Items(Tool):
    name = "MCP update_goal items"
    tool, arguments = "update_goal", {"items": [{"item": 1, "proof": "the tests are green"}]}
    limits = ("--item", "tests are green", "--item", "docs are there")

    def holds(self, world):
        yield from super().holds(world)
        proofs = [item.get("proof") for item in goal_of(world).get("items") or ()]
        yield from expect("the proofs", proofs, ["the tests are green", None])


class Verdict(Tool):
    tool, arguments = "record_verdict", {"verdict": "incomplete", "reason": "a test fails", "evidence": ["line 7"]}
    agent = {"agent_id": "a1", "agent_type": "steadfast:goal-evaluator"}

    def holds(self, world):
        yield from super().holds(world)
        verdict = goal_of(world).get("last_verdict") or {}
        yield from expect("the verdict", [verdict.get("verdict"), verdict.get("evidence")], ["incomplete", ["line 7"]])


class Objective(Tool):
    tool, arguments = "update_objective", {"objective": "all tests pass twice"}
    needs_prompt = True

    def safe(self, world):
        yield from super().safe(world)
        yield from expect("the objective", goal_of(world).get("objective"), "all tests pass", "all tests pass twice")

    def holds(self, world):
        yield from expect("the objective", goal_of(world).get("objective"), "all tests pass twice")


class Resume(Tool):
    tool, before = "resume_goal", "blocked"

    def prepare(self, world):
        active_goal(world)
        world.ok("goal", "block", "--reason", "needs a key", "--session", "s1")
        self.note(world)


class Abandon(Tool):
    tool, after, needs_prompt = "abandon_goal", "abandoned", True


class Wait(Tool):
    tool, arguments, after = "wait_goal", {"seconds": 18000}, "paused"

    def holds(self, world):
        yield from super().holds(world)
        yield from expect("the reason", goal_of(world).get("paused_reason"), "waiting")


OPERATIONS = [Create, Complete, Block, Items, Verdict, Objective, Resume, Abandon, Wait]
