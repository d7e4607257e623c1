"""One operation of the product: how it is prepared, called, and judged after a fault."""
import json, os, re, time

# Every exit code that the product documents.
CODES = (0, 1, 2, 3, 4, 5, 6, 130)
CRASH_WORDS = ("panicked", "RUST_BACKTRACE", "stack backtrace", "unwrap()")
IDENTITY = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9A-HJKMNP-TV-Z]{26}|\brun-[0-9a-f]{8}\b")
# SQLite's files beside a store come and go with its connections; logs and locks stay; git's objects are git's, and so is
# the record of its last merge, which a power cut may bring back and the next merge replaces; a worktree with work
# that git cannot commit stays; an attempt that never began is marked; an unfinished file of a run goes with it.
COMES_AND_GOES = re.compile(r"(-wal|-shm|\.log(\.\d+)?|/lock|\.lock|/abandoned)$|/\.git/(objects|worktrees)/|/\.git/AUTO_MERGE$|^home/runs/.*\.tmp$"
                            r"|^home/worktrees/")


def is_unfinished(path):
    """Whether a file was to replace another one, or to become a copy."""
    return path.rsplit("/", 1)[-1].startswith(".steadfast-")


class Operation:
    """Subclasses set what differs."""

    name = ""
    # A person's command; hooks override `run`.
    argv = ()
    # How it ends without a fault.
    done_codes = (0,)
    # How the operation may end when it is repeated after the fault.
    repeat_codes = (0,)
    # Processes that the product starts are faulted too.
    with_children = False
    # A hook ends with 0 whatever happens.
    is_hook = False
    # Images of the disk are built after it.
    cuts_power = True
    # Takes several seconds a trial: sampled more thinly.
    is_slow = False

    def prepare(self, world):
        pass

    def run(self, world, prefix=()):
        return world.person(*self.argv, prefix=prefix)

    def is_available(self, _world):
        return True

    def said_done(self, output):
        return output.code == 0

    def safe(self, world):
        """What must be true at any moment after a fault; yields problems."""
        return ()

    def holds(self, world):
        """What must be true once the operation said that it is done; yields problems."""
        return ()

    def recover(self, world):
        """The operation again, without a fault."""
        return self.run(world)

    def judge(self, world, output, was_killed, out_of_memory):
        """Everything that is wrong after one trial."""
        yield from self.judge_output(output, was_killed, out_of_memory)
        let_time_pass(world)
        world.seen = None
        yield from self.safe(world)
        if not was_killed and self.said_done(output):
            for problem in self.holds(world):
                yield f"acknowledged and lost: {problem}"
        again = self.recover(world)
        world.seen = None
        if again.code not in self.repeat_codes:
            yield f"repeated, it fails: {again}"
        yield from self.judge_output(again, False, False)
        for problem in self.holds(world):
            yield f"after it was repeated: {problem}"
        yield from check_store(world)
        yield from check_history(world)

    def judge_output(self, output, was_killed, out_of_memory):
        text = output.stdout + output.stderr
        for word in CRASH_WORDS:
            if word in text:
                yield f"it speaks of its inside ({word}): {output}"
        if output.code == "hung":
            yield f"it does not end: {output}"
        elif was_killed or (out_of_memory and output.code == -6):
            pass
        elif self.is_hook and output.code not in self.done_codes:
            yield f"a hook fails: {output}"
        elif output.code not in CODES:
            yield f"not a documented exit code: {output}"
        elif output.stderr.startswith("error: ") and "hint: " not in output.stderr:
            yield f"an error without a hint: {output}"


def let_time_pass(world):
    """Files that no process writes any more are old when the operation is repeated."""
    for path in world.files():
        if is_unfinished(path):
            os.utime(world.path(path), (time.time() - 120,) * 2)


def store_exists(world):
    return world.path("home/goals.db").exists()


def check_store(world):
    """The product opens its store, and finds no fault in it."""
    if store_exists(world):
        checked = world.person("db", "check", "--json")
        if checked.code != 0 or not checked.json()["ok"]:
            yield f"the store is damaged: {checked}"


def history(world):
    """All goals and events; asked once until the next change."""
    if world.seen is None:
        world.seen = {"goals": [], "events": []}
        if store_exists(world):
            output = world.person("goal", "history", "--all", "--events", "--format=json")
            world.seen = output.json() if output.code == 0 else {**world.seen, "error": repr(output)}
    return world.seen


def check_history(world):
    """Versions only grow, and what was charged is the sum of what the events say."""
    seen = history(world)
    if "error" in seen:
        yield f"the history cannot be read: {seen['error']}"
    for goal in seen["goals"]:
        events = [event for event in seen["events"] if event["goal_id"] == goal["goal_id"]]
        last = -1
        for event in sorted(events, key=lambda event: event["id"]):
            before, after = event.get("version_before"), event.get("version_after")
            if after is not None and (after < last or (before is not None and before > after)):
                yield f"a version goes back: {event}"
            last = max(last, after if after is not None else -1)
        if last > goal["version"]:
            yield f"an event of version {last}, and the goal has version {goal['version']}"


def goal_of(world, session="s1"):
    """The newest goal of a session, or nothing."""
    goals = [goal for goal in history(world)["goals"] if goal["session_id"] == session]
    return max(goals, key=lambda goal: goal["created_at_ms"], default={})


def count_events(seen, kind):
    return sum(event["kind"] == kind for event in seen["events"])


def expect(what, found, *wanted):
    if found not in wanted:
        yield f"{what} is {json.dumps(found)}, not {' or '.join(json.dumps(one) for one in wanted)}"


def shape(path):
    """A path without ids, numbers and what differs from trial to trial."""
    return re.sub(r"\d+", "N", IDENTITY.sub("ID", str(path)))


def shapes(world):
    return {shape(path) for path in world.files() if not COMES_AND_GOES.search(path)}


def left_behind(world, known):
    """Files that an untouched run does not leave. A file of the home that was to replace another one is removed by
    `doctor --fix`."""
    stray = sorted(shapes(world) - known)
    if any(path.startswith("home/") and is_unfinished(path) for path in stray):
        world.person("doctor", "--fix")
        stray = sorted(path for path in stray if path in shapes(world))
    if stray:
        yield f"files left behind: {stray}"
