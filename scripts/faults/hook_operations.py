"""Hooks of both clients. After any fault the goal is still there, and the tokens charged are those of the session file."""
from goal_operations import THREAD, active_goal
from operation import Operation, expect, goal_of


class Hook(Operation):
    is_hook = True
    event, fields = "", {}
    # What the session's answers cost: charged after the event and again after it was repeated, never twice.
    tokens = 170

    def __init__(self):
        self.name = f"Claude {self.event}"

    def prepare(self, world):
        active_goal(world)
        world.says("m1", 100)
        world.says("m2", 70)

    def run(self, world, prefix=()):
        return world.of_client("hook", "claude", prefix=prefix, stdin=world.claude_event(self.event, **self.fields))

    def said_done(self, output):
        return output.code == 0 and "steadfast: " not in output.stdout and output.stdout != ""

    def goal(self, world):
        return goal_of(world)

    def safe(self, world):
        goal = self.goal(world)
        yield from expect("the status", goal.get("status"), "active", "paused")
        if goal.get("status") == "paused":
            yield from expect("the reason", goal.get("paused_reason"), "degraded")
        yield from expect("charged tokens", goal.get("total_tokens"), 0, self.tokens)

    def holds(self, world):
        goal = self.goal(world)
        yield from expect("charged tokens", goal.get("total_tokens"), self.tokens)
        yield from expect("uncertain accounting", goal.get("accounting_uncertain"), False)

    def recover(self, world):
        """A goal that was paused because of the fault is resumed first, as its message says."""
        if self.goal(world).get("status") == "paused":
            resumed = world.person("goal", "resume", "--session", self.goal(world)["session_id"])
            if resumed.code != 0:
                return resumed
        return self.run(world)


class Stop(Hook):
    event = "Stop"
    fields = {"stop_hook_active": False, "last_assistant_message": "work", "background_tasks": []}


class PostToolUse(Hook):
    event = "PostToolUse"
    fields = {"tool_name": "Bash", "tool_use_id": "toolu_7", "tool_input": {"command": "git commit -m x"},
              "tool_response": {"stdout": "ok", "stderr": "", "interrupted": False}}

    def said_done(self, output):
        return False

    def holds(self, world):
        yield from self.safe(world)


class PostToolBatch(PostToolUse):
    event = "PostToolBatch"
    fields = {"tool_calls": [{"tool_name": "Bash", "tool_use_id": "toolu_7", "tool_input": {"command": "ls"},
                              "tool_response": {"stdout": "ok", "stderr": ""}}]}

    def holds(self, world):
        yield from Hook.holds(self, world)


class PreToolUse(PostToolUse):
    event = "PreToolUse"
    fields = {"tool_name": "Bash", "tool_use_id": "toolu_8", "tool_input": {"command": "ls"}}


class StopFailure(PostToolUse):
    event = "StopFailure"
    fields = {"error": "overloaded", "error_details": "API Error: 529 overloaded"}


class UserPromptSubmit(PostToolUse):
    event, fields = "UserPromptSubmit", {"prompt": "rule: never touch the database"}

    def holds(self, world):
        yield from self.safe(world)
        found = world.person("session", "search", "database", "--json")
        if found.code != 0 or "never touch the database" not in found.stdout:
            yield f"the rule is not remembered: {found}"


class PreCompact(PostToolUse):
    event, fields = "PreCompact", {"trigger": "auto", "custom_instructions": ""}

    def holds(self, world):
        yield from Hook.holds(self, world)


class SessionStartCompact(Hook):
    event, fields = "SessionStart", {"source": "compact"}

    def __init__(self):
        self.name = "Claude SessionStart (compact)"

    def prepare(self, world):
        super().prepare(world)
        world.claude("PreCompact", trigger="auto", custom_instructions="")

    def said_done(self, output):
        # The model gets its goal whatever the store is like; the user is told what was not counted.
        return "all tests pass" in output.stdout and "is not counted yet" not in output.stdout

    def recover(self, world):
        return super().recover(world)


class SessionEnd(PostToolUse):
    event, fields = "SessionEnd", {"reason": "prompt_input_exit"}

    def holds(self, world):
        yield from Hook.holds(self, world)


class CodexHook(Hook):
    sample = ""

    def __init__(self):
        self.name = f"Codex {self.sample.split('.')[0]}"

    def prepare(self, world):
        world.codex("SessionStart.startup", THREAD)
        world.codex_says(THREAD, "resp_0", 5000, "before the goal")
        world.codex("UserPromptSubmit", THREAD, prompt="goal: all tests pass")
        world.codex_says(THREAD, "resp_1", self.tokens)

    def run(self, world, prefix=()):
        event = world.codex_event(self.sample, THREAD, **self.fields)
        # strace leaves a dead child behind, and a hook of Codex must have none: a shell takes it in, then becomes the hook.
        prefix = [*prefix, "sh", "-c", '/bin/true; exec "$@"', "sh"] if prefix else prefix
        return world.of_client("hook", "codex", prefix=prefix, stdin=event, kind="pipe")

    def goal(self, world):
        return goal_of(world, THREAD)


class CodexStop(CodexHook):
    sample = "Stop.first"
    fields = {"last_assistant_message": "work", "stop_hook_active": False}


class CodexPrompt(CodexHook):
    sample = "UserPromptSubmit"
    fields = {"prompt": "please continue"}

    def said_done(self, output):
        return False

    def holds(self, world):
        yield from self.safe(world)


class CodexSessionStart(CodexHook):
    sample = "SessionStart.compact"

    def said_done(self, output):
        # The model gets its goal whatever the store is like; the user is told what was not counted.
        return "all tests pass" in output.stdout and "is not counted yet" not in output.stdout


OPERATIONS = [Stop, PostToolUse, PostToolBatch, PreToolUse, StopFailure, UserPromptSubmit, PreCompact,
              SessionStartCompact, SessionEnd, CodexStop, CodexPrompt, CodexSessionStart]
