"""Hooks of both clients. After any fault the goal is still there, and the tokens charged are those of the session file."""
from goal_operations import THREAD, active_goal
from operation import Operation, expect, goal_of


class Hook(Operation):
    is_hook = True
    event, fields = "", {}
    # What the session's answers cost: charged after the event and again after it was repeated, never twice.
    tokens = 170
    # Why it may have paused the goal.
    reasons = ("degraded",)

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
            yield from expect("the reason", goal.get("paused_reason"), *self.reasons)
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


class SlashCommand(PostToolUse):
    """A command that the user types is answered by the hook, without the model."""

    event = "UserPromptExpansion"
    fields = {"expansion_type": "slash_command", "command_name": "steadfast:goal-edit", "command_args": "all tests pass twice",
              "command_source": "plugin", "prompt": "/steadfast:goal-edit all tests pass twice"}

    def safe(self, world):
        yield from super().safe(world)
        yield from expect("the objective", self.goal(world).get("objective"), "all tests pass", "all tests pass twice")

    def holds(self, world):
        yield from self.safe(world)
        yield from expect("the objective", self.goal(world).get("objective"), "all tests pass twice")


class SessionStart(PostToolUse):
    event = "SessionStart"

    def __init__(self, source):
        self.fields = {"source": source}
        self.name = f"Claude SessionStart ({source})"

    def prepare(self, world):
        super().prepare(world)
        if self.fields["source"] != "startup":
            world.claude("SessionEnd", reason="clear" if self.fields["source"] == "clear" else "prompt_input_exit")


class Remembered(PostToolUse):
    """What only the memory learns: after the event, the memory has it."""

    def __init__(self, event, words, **fields):
        self.event, self.words, self.fields = event, words, fields
        super().__init__()

    def holds(self, world):
        yield from self.safe(world)
        known = world.person("session", "events", "s1", "--limit", "1000", "--json")
        if known.code != 0 or self.words not in known.stdout:
            yield f"{self.words!r} is not remembered: {known}"


class SubagentStop(PostToolUse):
    """The tokens of a subagent are charged, too, once."""

    event = "SubagentStop"
    subagents = 40

    def prepare(self, world):
        super().prepare(world)
        world.claude("SubagentStart", agent_id="a1", agent_type="tester")
        world.says("sub1", self.subagents, session="s1/subagents/agent-a1")
        self.fields = {"agent_id": "a1", "agent_type": "tester", "stop_hook_active": False, "background_tasks": [],
                       "agent_transcript_path": str(world.path("s1/subagents/agent-a1.jsonl")),
                       "last_assistant_message": "tested"}

    def safe(self, world):
        goal = self.goal(world)
        yield from expect("the status", goal.get("status"), "active", "paused")
        yield from expect("charged tokens of subagents", goal.get("subagent_tokens"), 0, self.subagents)

    def holds(self, world):
        yield from expect("charged tokens of subagents", self.goal(world).get("subagent_tokens"), self.subagents)


class Permission(PostToolUse):
    """The client asks the user, whom it cannot reach in another way: a message is sent."""

    event = "PermissionRequest"
    fields = {"tool_name": "Write", "tool_input": {"file_path": "/f", "content": "hi"}}


class Waker(Hook):
    """The background hook that wakes the terminal client once."""

    # 2 is how it wakes the client.
    done_codes = repeat_codes = (0, 2)
    terminal = {"CLAUDE_CODE_ENTRYPOINT": "cli"}

    def __init__(self, event="Stop"):
        self.event = event
        self.name = f"Claude {event}, --rewake"
        self.fields = {"stop_hook_active": False, "background_tasks": [], "notification_type": "idle_prompt"}

    def prepare(self, world):
        active_goal(world)
        world.says("m1", 100)
        world.says("m2", 70)
        event = world.claude_event("Stop", stop_hook_active=False, background_tasks=[], last_assistant_message="x")
        world.hook_ok(world.of_client("hook", "claude", stdin=event, environment=self.terminal))

    def run(self, world, prefix=()):
        return world.of_client("hook", "claude", "--rewake", prefix=prefix, environment=self.terminal,
                               stdin=world.claude_event(self.event, **self.fields))

    def said_done(self, output):
        return output.code == 2 and "all tests pass" in output.stderr

    def recover(self, world):
        """The turn that it began ends, and it wakes the client again."""
        world.claude("UserPromptSubmit", prompt="<task-notification>")
        world.claude("Stop", stop_hook_active=False, background_tasks=[], last_assistant_message="y")
        return super().recover(world)


class CodexHook(Hook):
    sample = ""

    def __init__(self, sample="", **fields):
        self.sample, self.fields = sample or self.sample, fields or self.fields
        name, _, more = self.sample.partition(".")
        self.name = f"Codex {name} ({more})" if sample and more else f"Codex {name}"

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


class CodexSessionStart(CodexHook):
    sample = "SessionStart.compact"

    def said_done(self, output):
        # The model gets its goal whatever the store is like; the user is told what was not counted.
        return "all tests pass" in output.stdout and "is not counted yet" not in output.stdout


class CodexOther(CodexHook):
    """An event that acknowledges nothing. Whether it charges or not, nothing is charged twice."""

    def __init__(self, sample, *reasons, **fields):
        super().__init__(sample, **fields)
        self.reasons = reasons or self.reasons

    def said_done(self, output):
        return False

    def holds(self, world):
        yield from self.safe(world)


class CodexCharging(CodexOther):
    def holds(self, world):
        yield from Hook.holds(self, world)


TASK = {"task_id": "1", "task_subject": "Fix the lexer", "task_description": "do A"}
OPERATIONS = [
    Stop, PostToolUse, PostToolBatch, PreToolUse, StopFailure, UserPromptSubmit, PreCompact, SessionStartCompact,
    SessionEnd, SlashCommand, SubagentStop, Permission, Waker, lambda: Waker("Notification"),
    *(lambda source=source: SessionStart(source) for source in ("startup", "resume", "clear")),
    lambda: Remembered("TaskCreated", "Fix the lexer", **TASK), lambda: Remembered("TaskCompleted", "Fix the lexer", **TASK),
    lambda: Remembered("SubagentStart", "tester", agent_id="a1", agent_type="tester"),
    lambda: Remembered("PostToolUseFailure", "cargo test", tool_name="Bash", tool_use_id="toolu_9", is_interrupt=False,
                       tool_input={"command": "cargo test"}, error="Exit code 101"),
    lambda: Remembered("InstructionsLoaded", "CLAUDE.md", file_path="/p/CLAUDE.md", memory_type="Project",
                       load_reason="session_start"),
    CodexStop, CodexSessionStart, lambda: CodexOther("UserPromptSubmit", prompt="please continue"),
    *(lambda sample=sample: CodexOther(sample) for sample in (
        "SessionStart.startup", "SessionStart.resume", "SessionStart.clear", "PreToolUse.Bash", "PermissionRequest",
        "SubagentStart", "SubagentStop.first", "PostModelRequest.completed")),
    lambda: CodexOther("Interrupt", "degraded", "interrupted"),
    lambda: CodexOther("PostModelRequest.failed", "degraded", "usage_limit"),
    *(lambda sample=sample: CodexCharging(sample) for sample in ("PostToolUse.Bash", "PreCompact.auto", "SessionEnd")),
]
