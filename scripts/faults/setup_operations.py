"""Setup and its removal: each file of the user is, byte for byte, the old one or the new one. And what else a user does
on the machine: trust, repairs, messages, files for other programs."""
import json, re, sqlite3

import operation
from goal_operations import GoalReport, active_goal
from operation import Operation, expect, goal_of
from world import CONFIG, REPOSITORY

SETTINGS = ('{\n\t"model": "opus",   "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}\n}')
CODEX_CONFIG = '# mine\nmodel = "gpt-6.1"\n\n[mcp_servers.other]\ncommand = "x" # theirs\n# end'
CODEX_HOOKS = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}}'


def users_files(world):
    world.write("user/.claude/settings.json", SETTINGS)
    world.write("user/.claude/commands/goal-pause.md", "my own command")
    world.write("user/.codex/config.toml", CODEX_CONFIG)
    world.write("user/.codex/hooks.json", CODEX_HOOKS)
    # The service manager of the machine, which `setup watch` asks.
    world.write("bin/systemctl", "#!/bin/sh\nexit 0\n", 0o755)


def contents(world):
    """The user's files. A time that setup writes differs from trial to trial; files left behind are a finding of their own."""
    date = re.compile(rb'("lastUpdated": *)"[^"]*"')
    return {path: date.sub(rb'\1"now"', data) for path, data in world.files("user").items()
            if not operation.is_unfinished(path)}


class Setup(Operation):
    is_removal = False

    def __init__(self, host):
        self.host = host
        self.install = ("setup", host, "--yes")
        self.remove = ("setup", host, "--uninstall")
        self.argv = self.remove if self.is_removal else self.install
        self.name = f"uninstall {host}" if self.is_removal else f"setup {host}"

    def prepare(self, world):
        users_files(world)
        self.without = contents(world)
        world.ok(*self.install)
        self.installed = contents(world)
        if not self.is_removal:
            world.ok(*self.remove)

    def old_and_new(self):
        return (self.installed, self.without) if self.is_removal else (self.without, self.installed)

    def safe(self, world):
        old, new = self.old_and_new()
        for path, data in contents(world).items():
            if path in old or path in new:
                if data not in (old.get(path), new.get(path)):
                    yield f"{path} is neither the old nor the new one: {data[:200]!r}"
        for path in set(old) & set(new) - set(contents(world)):
            yield f"{path} is gone"

    def holds(self, world):
        _, new = self.old_and_new()
        found = contents(world)
        wrong = {path for path in set(found) | set(new) if found.get(path) != new.get(path)}
        if wrong:
            yield f"not as they should be: {sorted(wrong)}"

    def judge(self, world, *rest):
        yield from super().judge(world, *rest)
        if not self.is_removal:
            removed = world.person(*self.remove)
            if removed.code != 0 or contents(world) != self.without:
                changed = set(contents(world).items()) ^ set(self.without.items())
                yield f"removed again, the files differ: {sorted({path for path, _ in changed})}: {removed}"


class Uninstall(Setup):
    is_removal = True


class Doctor(Operation):
    """Files that setup wrote are damaged; it writes them again."""

    name = "doctor --fix"
    argv = ("doctor", "--fix", "--json")
    # The report says, too, what only the user can repair.
    done_codes = repeat_codes = (0, 1, 3, 4)
    hooks, command = "home/claude/plugin/hooks/hooks.json", "user/.claude/commands/goal-status.md"

    def prepare(self, world):
        world.ok("setup", "claude", "--yes")
        self.right = [world.path(part).read_bytes() for part in (self.hooks, self.command)]
        world.write(self.hooks, "{}")
        world.path(self.command).unlink()

    def found(self, world):
        return [world.path(part).read_bytes() if world.path(part).exists() else None for part in (self.hooks, self.command)]

    def said_done(self, output):
        return output.code in self.done_codes and '"not_fixed": []' in output.stdout and "set up Claude" in output.stdout

    def safe(self, world):
        for found, right, wrong in zip(self.found(world), self.right, (b"{}", None)):
            if found not in (right, wrong):
                yield f"a file is half written: {found[:200]!r}"

    def holds(self, world):
        if self.found(world) != self.right:
            yield "the files of setup are not repaired"


class Trust(Operation):
    """What a repository brings is trusted as a whole, or not at all."""

    def __init__(self, is_given):
        self.is_given = is_given
        self.name = "trust" if is_given else "trust --revoke"
        self.argv = ("trust", "--yes" if is_given else "--revoke")

    def prepare(self, world):
        world.write("project/.claude/loops/fix/loop.yaml", "name: fix\ncompletion: {command: 'true'}\n")
        world.write("project/.claude/loops/fix/prompt.md", "go\n")
        if not self.is_given:
            world.ok("trust", "--yes")

    def states(self, world):
        listed = world.person("trust", "--list", "--json")
        return sorted({item["state"] for item in listed.json()["items"]}) if listed.code == 0 else repr(listed)

    def safe(self, world):
        yield from expect("the states of the files", self.states(world), ["new"], ["trusted"])

    def holds(self, world):
        yield from expect("the states of the files", self.states(world), ["trusted" if self.is_given else "new"])


class Statusline(Operation):
    """It never fails; what the client says about the plan is kept."""

    name = "statusline"
    is_hook = True
    said = REPOSITORY / "crates/steadfast-hosts/samples/claude/statusline/stdin-after-turns.json"
    plan = {"five_hour": {"used_percentage": 83.5, "resets_at": 4_000_000_000}}

    def prepare(self, world):
        active_goal(world)

    def run(self, world, prefix=()):
        said = {**json.loads(self.said.read_text()), "session_id": "s1", "rate_limits": self.plan}
        return world.person("statusline", prefix=prefix, stdin=json.dumps(said))

    def said_done(self, output):
        return False

    def safe(self, world):
        yield from expect("the status", goal_of(world).get("status"), "active")

    def holds(self, world):
        yield from expect("the plan", [part.get("used_percent") for part in goal_of(world).get("plan", ())], [83])


class Deliver(Operation):
    """A message reaches the user's own program, at least once, and is over then."""

    name = "__deliver"
    # Another process waits until the message of one that died is free; and the user's program syncs nothing.
    is_slow, cuts_power = True, False

    def prepare(self, world):
        world.write("home/config.toml", CONFIG + f"command = ['sh', '-c', 'cat >> {world.path('messages')}']\nback_off_ms = 5\n")
        active_goal(world)
        with sqlite3.connect(world.path("home/goals.db")) as db:
            db.execute("INSERT INTO outbox (kind, subject_id, title, body, created_at_ms)"
                       " VALUES ('blocked', 'g', 'It needs a key', 'b', 1)")
        db.close()

    def run(self, world, prefix=()):
        return world.person("__deliver", str(world.path("home")), str(world.path("home/goals.db")), prefix=prefix)

    def said_done(self, output):
        return False

    def holds(self, world):
        messages = world.path("messages")
        if not messages.exists() or "It needs a key" not in messages.read_text():
            yield "the message did not arrive"
        with sqlite3.connect(f"file:{world.path('home/goals.db')}?mode=ro", uri=True) as db:
            over = db.execute("SELECT done_at_ms IS NOT NULL, error FROM deliveries").fetchall()
        db.close()
        yield from expect("deliveries", over, [(1, None)])


class Metrics(GoalReport):
    name, file, first, last = "metrics --out", "steadfast.prom", "# HELP", ""
    argv = ("metrics", "--out", file)


class RunReport(GoalReport):
    file, first = "run.html", "three"

    def __init__(self, kind):
        self.name, self.argv = f"{kind} report --html", (kind, "report", "three", "--html", self.file)
        self.kind = "pipeline" if kind == "pipeline" else "loop"

    def prepare(self, world):
        world.write("home/loops/three/loop.yaml", "name: three\ndelay: 0\ncompletion: fixed-n\nruns: 1\n")
        world.write("home/loops/three/prompt.md", "go\n")
        world.write("home/pipelines/three.yaml", "name: three\nstages:\n  - {name: all, prompt: go}\n")
        world.ok(self.kind, "run", "three", "three", "--agent", "sh -c 'cat > /dev/null; echo done'")


OPERATIONS = [
    *(lambda host=host, make=make: make(host) for make in (Setup, Uninstall) for host in ("claude", "codex", "watch")),
    Doctor, lambda: Trust(True), lambda: Trust(False), Statusline, Deliver, Metrics,
    *(lambda kind=kind: RunReport(kind) for kind in ("run", "loop", "pipeline")),
]
