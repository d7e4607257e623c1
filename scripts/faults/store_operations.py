"""The store itself: migrations from every version, copies, imports, memory and usage."""
import json, sqlite3, time

from goal_operations import active_goal
from operation import Operation, expect, history
from world import REPOSITORY

MIGRATIONS = REPOSITORY / "crates/steadfast-store/migrations"
# Additions to version 6; a store without the last of them is the newest old one.
ADDITIONS = sorted(MIGRATIONS.glob("0006_*.sql"))
GOALS, EVENTS = 3, 40
# When the goals of old stores ended.
LONG_AGO = 1_790_000_000_000


def old_store(path, version, additions=None):
    """A store as an older release left it, with goals and events."""
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as db:
        for number in range(1, version + 1):
            db.executescript((MIGRATIONS / f"{number:04}.sql").read_text())
        for file in ADDITIONS[:additions or 0]:
            db.executescript(file.read_text())
        if additions:
            db.execute(f"PRAGMA user_version = {additions}")
        for number in range(GOALS):
            db.execute("INSERT INTO goals (session_id, goal_id, objective, status, created_at_ms, updated_at_ms)"
                       " VALUES (?, ?, ?, 'complete', ?, ?)",
                       (f"old{number}", f"goal{number}", f"objective {number}", LONG_AGO + number, LONG_AGO))
        for number in range(EVENTS):
            db.execute("INSERT INTO goal_events (session_id, goal_id, event_type, created_at_ms) VALUES (?, ?, ?, ?)",
                       (f"old{number % GOALS}", f"goal{number % GOALS}", "tokens_accounted", LONG_AGO))
    db.close()


def of_old(seen):
    goals = sorted(goal["objective"] for goal in seen["goals"] if goal["session_id"].startswith("old"))
    return goals, sum(event["kind"] == "tokens_accounted" for event in seen["events"])


class Migration(Operation):
    argv = ("goal", "history", "--all", "--events", "--format=json")

    def __init__(self, version, additions=None):
        self.version, self.additions = version, additions
        more = "" if version < 6 else f", {additions or 0} additions"
        self.name = f"migration from version {version}{more}"

    def prepare(self, world):
        old_store(world.path("home/goals.db"), self.version, self.additions)

    def said_done(self, output):
        return False

    def safe(self, world):
        backups = [path for path in world.path("home").rglob("*") if self.is_backup(path)]
        for path in backups:
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
                found = db.execute("SELECT (SELECT max(version) FROM schema_version), count(*) FROM goals").fetchone()
                whole = db.execute("PRAGMA integrity_check").fetchone()
            db.close()
            if found[1] != GOALS or whole != ("ok",):
                yield f"the backup {path.name} has {found}, {whole}"

    @staticmethod
    def is_backup(path):
        return path.is_file() and path.name.startswith("goals.db.") and path.name.endswith(".bak")

    def holds(self, world):
        yield from expect("what is left", of_old(history(world)), ([f"objective {n}" for n in range(GOALS)], EVENTS))
        backups = [path for path in world.path("home").rglob("*") if self.is_backup(path)]
        if self.version < 6 and not backups:
            yield "there is no backup"


class LargeMigration(Migration):
    """A table of this size is copied in steps before the migration."""
    events = 51_000
    is_slow = True

    def __init__(self):
        super().__init__(5)
        self.name = "migration of a large file"

    def prepare(self, world):
        super().prepare(world)
        with sqlite3.connect(world.path("home/goals.db")) as db:
            # The newest stay the newest: `history` shows only so many.
            db.execute("UPDATE goal_events SET id = id + ?", (self.events,))
            db.executemany("INSERT INTO goal_events (id, session_id, goal_id, event_type, payload_json, created_at_ms)"
                           " VALUES (?, 'large', 'large', 'goal_note', ?, ?)",
                           ((number, f"the note of turn {number}", LONG_AGO) for number in range(1, self.events + 1)))
        db.close()

    def holds(self, world):
        yield from super().holds(world)
        query = "SELECT count(*), count(DISTINCT payload_json), max(id) FROM goal_events WHERE session_id = 'large'"
        with sqlite3.connect(f"file:{world.path('home/goals.db')}?mode=ro", uri=True) as db:
            found = db.execute(query).fetchone()
        db.close()
        yield from expect("large table", found, (self.events, self.events, self.events))


class LargeLedgerMigration(Migration):
    """The same for the ledger of an earlier build of version 6."""
    responses = 51_000
    is_slow = True

    def __init__(self):
        super().__init__(6, 5)
        self.name = "migration of a large ledger"

    def prepare(self, world):
        super().prepare(world)
        with sqlite3.connect(world.path("home/goals.db")) as db:
            db.executemany("INSERT INTO responses (host, response_id, session_id, model, input_tokens, output_tokens,"
                           " cache_creation_tokens, cache_creation_1h_tokens, cache_read_tokens, at_ms)"
                           " VALUES ('claude', ?, 'large', 'model', 1, 1, 0, 0, 0, ?)",
                           ((f"msg{number:030}", LONG_AGO) for number in range(self.responses)))
        db.close()

    def holds(self, world):
        yield from super().holds(world)
        checked = world.person("db", "check")
        if checked.code != 0:
            yield f"the store is damaged: {checked}"
        query = "SELECT count(*), count(DISTINCT response_id) FROM responses WHERE session_id = 'large'"
        with sqlite3.connect(f"file:{world.path('home/goals.db')}?mode=ro", uri=True) as db:
            found = db.execute(query).fetchone()
        db.close()
        yield from expect("large ledger", found, (self.responses, self.responses))


class Backup(Operation):
    name = "db backup"
    argv = ("db", "backup", "../copy.db")
    # A copy that is there is not replaced.
    repeat_codes = (0, 1, 3, 4)

    def prepare(self, world):
        active_goal(world)

    def safe(self, world):
        if world.path("copy.db").exists():
            checked = world.person("--db", str(world.path("copy.db")), "db", "check")
            if checked.code != 0:
                yield f"the copy is damaged: {checked}"

    def holds(self, world):
        output = world.person("--db", str(world.path("copy.db")), "goal", "status", "--session", "s1")
        if "all tests pass" not in output.stdout:
            yield f"the goal is not in the copy: {output}"


class Import(Operation):
    name = "db import"
    argv = ("db", "import", "../other.db")

    def prepare(self, world):
        active_goal(world)
        old_store(world.path("other.db"), 5)
        self.other = world.path("other.db").read_bytes()

    def safe(self, world):
        if world.path("other.db").read_bytes() != self.other:
            yield "the other store was changed"

    def holds(self, world):
        yield from expect("imported", of_old(history(world)), ([f"objective {n}" for n in range(GOALS)], EVENTS))


class Recover(Operation):
    """Runs once the product has the command."""

    name = "db recover"
    argv = ("db", "recover")
    repeat_codes = (0, 3)

    def is_available(self, world):
        return "recover" in world.person("db", "--help").stdout

    def prepare(self, world):
        active_goal(world)
        world.ok("db", "backup")
        path = world.path("home/goals.db")
        data = bytearray(path.read_bytes())
        # The root page of the schema.
        data[100:140] = b"\xff" * 40
        path.write_bytes(data)

    def holds(self, world):
        found = [goal["objective"] for goal in history(world)["goals"]]
        yield from expect("the goals", found, ["all tests pass"])


class Purge(Operation):
    name = "session purge"
    argv = ("session", "purge", "s1", "--json")
    repeat_codes = (0, 2)

    def prepare(self, world):
        active_goal(world)
        world.claude("UserPromptSubmit", prompt="rule: never touch the database")
        world.ok("goal", "complete", "--session", "s1")
        world.claude("SessionEnd", reason="prompt_input_exit")

    def safe(self, world):
        yield from expect("the goals", [goal["status"] for goal in history(world)["goals"]], ["complete"])

    def holds(self, world):
        found = world.person("session", "search", "database", "--json")
        if "never touch" in found.stdout:
            yield f"it is still remembered: {found}"


class SessionImport(Operation):
    """The file has a session that takes several transactions, and one that is here already and got longer."""

    name = "session import"
    argv = ("session", "import", "../memory.jsonl", "--json")
    events = 160

    def prepare(self, world):
        active_goal(world)
        world.claude("UserPromptSubmit", prompt="rule: never touch the database")
        at = int(time.time() * 1000) - 1_000_000
        event = {"type": "event", "category": "prompt", "kind": "typed", "importance": "high", "text": ""}
        session = {"type": "session", "session_id": "", "host": "claude", "started_at_ms": at, "last_seen_ms": at}
        lines = [{"format": "steadfast-session-memory", "version": 1}, {**session, "session_id": "away"}]
        lines += [{**event, "text": f"away {n} {'word ' * 500}", "created_at_ms": at + n} for n in range(self.events)]
        lines += [{**session, "session_id": "s1"}, {**event, "text": "old", "created_at_ms": at}]
        lines += [{"type": "end", "sessions": 2, "stated_goals": 0, "tasks": 0, "events": self.events + 1}]
        world.path("memory.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.file = world.path("memory.jsonl").read_bytes()

    def remembered(self, world, session):
        shown = world.person("session", "events", session, "--json", "--limit", "1000")
        return [event["text"] for event in json.loads(shown.stdout)["events"]] if shown.code == 0 else []

    def safe(self, world):
        if world.path("memory.jsonl").read_bytes() != self.file:
            yield "the file was changed"
        yield from expect("the goals", [goal["status"] for goal in history(world)["goals"]], ["active"])
        if "rule: never touch the database" not in self.remembered(world, "s1"):
            yield "the newer memory of here is gone"
        if "old" in self.remembered(world, "s1"):
            yield "older memory was added behind newer memory"

    def holds(self, world):
        yield from self.safe(world)
        found = [text.split(" word")[0] for text in self.remembered(world, "away")]
        yield from expect("imported", found, [f"away {n}" for n in range(self.events)])
        listed = json.loads(world.ok("session", "list", "--all", "--json").stdout)["sessions"]
        yield from expect("the sessions", sorted(session["session_id"] for session in listed), ["away", "s1"])


class Compact(Operation):
    """A file of an earlier version is rewritten once."""

    name = "db compact"
    argv = ("db", "compact", "--json")
    rows = 4_000

    def prepare(self, world):
        old_store(world.path("home/goals.db"), 5)
        world.ok("goal", "history", "--all")
        with sqlite3.connect(world.path("home/goals.db")) as db:
            db.executemany("INSERT INTO goal_events (session_id, goal_id, event_type, created_at_ms, payload_json)"
                           " VALUES ('old0', 'goal0', 'goal_note', 0, ?)", (("x" * 200,) for _ in range(self.rows)))
            db.execute("DELETE FROM goal_events WHERE event_type = 'goal_note'")
        db.close()

    def safe(self, world):
        yield from expect("what is left", of_old(history(world)), ([f"objective {n}" for n in range(GOALS)], EVENTS))

    def holds(self, world):
        yield from self.safe(world)
        with sqlite3.connect(f"file:{world.path('home/goals.db')}?mode=ro", uri=True) as db:
            free = db.execute("PRAGMA freelist_count").fetchone()[0]
        db.close()
        yield from expect("free pages", free, 0)


class WeeklyBackup(Operation):
    """What a hook starts in the background."""

    name = "__backup"

    def prepare(self, world):
        active_goal(world)

    def run(self, world, prefix=()):
        return world.person("__backup", str(world.path("home")), str(world.path("home/goals.db")), prefix=prefix)

    def backups(self, world):
        return [path for path in world.path("home").rglob("*.bak") if not path.name.startswith(".")]

    def said_done(self, output):
        return False

    def safe(self, world):
        for path in self.backups(world):
            with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as db:
                found = db.execute("SELECT objective FROM goals").fetchall()
            db.close()
            yield from expect("the goals of the backup", found, [("all tests pass",)])

    def holds(self, world):
        yield from self.safe(world)
        if not self.backups(world):
            yield "there is no backup"


class Usage(Operation):
    argv = ("usage", "daily", "--json")
    cuts_power = False

    def __init__(self, is_warm):
        self.is_warm, self.output = is_warm, None
        self.name = f"usage, {'warm' if is_warm else 'cold'}"

    def prepare(self, world):
        for session in range(4):
            for number in range(20):
                usage = {"input_tokens": 90, "output_tokens": 5, "cache_creation_input_tokens": 5,
                         "cache_read_input_tokens": 0}
                message = {"id": f"m{session}-{number}", "role": "assistant", "model": "claude-opus-4-8",
                           "type": "message", "content": [], "usage": usage}
                line = {"type": "assistant", "uuid": f"u{session}-{number}", "timestamp": "2026-11-15T10:00:00.000Z",
                        "requestId": f"r{session}-{number}", "cwd": "/src", "sessionId": f"x{session}",
                        "message": message}
                world.append(f"user/.claude/projects/p/x{session}.jsonl", line)
        if self.is_warm:
            world.ok(*self.argv)

    def said_done(self, output):
        self.output = output
        return output.code == 0

    def holds(self, world):
        # What it said, and what it says now.
        said, self.output = self.output, None
        for output in (world.person(*self.argv), *([said] if said and said.code == 0 and said.stdout else [])):
            totals = output.json()["totals"]
            yield from expect("the totals", [totals["responses"], totals["total_tokens"]], [80, 8000])


OPERATIONS = [
    *(lambda version=version: Migration(version) for version in range(1, 6)),
    LargeMigration, LargeLedgerMigration,
    *(lambda count=count: Migration(6, count) for count in sorted({0, 2, 4, 6, 7, len(ADDITIONS) - 1})),
    Backup, Import, Recover, Compact, WeeklyBackup, Purge, SessionImport, lambda: Usage(False), lambda: Usage(True),
]
