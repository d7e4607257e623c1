#!/usr/bin/env python3
"""How long a command holds the write lock of a large store at a time, so how long a hook may have to wait for it.

The lock is looked at from outside, some ten thousand times a second (`F_GETLK` on the bytes that SQLite locks), and no
lock is taken. A hold counts from the first look that finds it to the first that does not, so a busy machine makes it
look longer, never shorter.
"""
import argparse, contextlib, fcntl, json, os, pathlib, shutil, sqlite3, struct, subprocess, sys, tempfile, threading, time

from world import REPOSITORY, scratch

BIG_STORE = REPOSITORY / "scripts/faults/big_store.py"
MIGRATIONS = REPOSITORY / "crates/steadfast-store/migrations"
# The write lock of a WAL database is byte 120 of its index; those of the file itself begin at 1 GiB.
WRITE_LOCK, FILE_LOCKS = (120, 1), (1 << 30, 512)
FLOCK = "hhqqi"
# The tasks of upkeep that delete rows of a large store, and a table of each.
UPKEEP = {"memory": "session_events", "ledger": "responses", "goals": "goal_events"}
OTHER_TASKS = ("cursors", "sessions", "notes", "replaced", "secrets", "pages")
HOOKS_OF_A_TASK = 40
DAY = 86_400_000
# Runs a hook as a client does: a hook believes only input that its client wrote, as a socket shows after it was closed,
# and only variables that its client has.
CLIENT = (sys.executable, "-c", """
import socket, subprocess, sys
ours, theirs = socket.socketpair()
hook = subprocess.Popen(sys.argv[1:], stdin=theirs, start_new_session=True)
theirs.close()
ours.sendall(sys.stdin.buffer.read())
ours.close()
sys.exit(hook.wait())
""")


def is_held(file, place):
    """Whether a process has a write lock there."""
    start, length = place
    found = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack(FLOCK, fcntl.F_RDLCK, os.SEEK_SET, start, length, 0))
    return struct.unpack(FLOCK, found)[0] != fcntl.F_UNLCK


class Watcher(threading.Thread):
    """Looks at the locks of a store until it is stopped. Files may come and go meanwhile."""

    def __init__(self, store):
        super().__init__()
        self.places = [[f"{store}-shm", WRITE_LOCK, None, None], [str(store), FILE_LOCKS, None, None]]
        self.stopped, self.looks, self.longest, self.longest_at, self.holds = threading.Event(), 0, 0.0, 0.0, 0
        self.began = time.monotonic()

    def run(self):
        # A watcher that waits for a core misses the moments in which the lock is free.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -15)
        while not self.stopped.is_set():
            for place in self.places:
                self.look(place)
            self.looks += 1

    def look(self, place):
        path, area, file, since = place
        # A store that is closed removes its index, and the next one to open it makes another.
        if self.looks % 64 == 0 or file is None:
            if file is not None:
                os.close(file)
            try:
                file = os.open(path, os.O_RDWR)
            except OSError:
                file = None
            place[2] = file
        now = time.monotonic()
        held = file is not None and is_held(file, area)
        if held and since is None:
            place[3] = now
        elif not held and since is not None:
            self.holds, place[3] = self.holds + 1, None
            self.note(now - since, since)

    def note(self, took, since):
        if took > self.longest:
            self.longest, self.longest_at = took, since - self.began

    def stop(self):
        self.stopped.set()
        self.join()
        for _, _, file, since in self.places:
            if since is not None:
                self.note(time.monotonic() - since, since)
            if file is not None:
                os.close(file)


class Bench:
    def __init__(self, binary, root, options):
        self.binary, self.root, self.options = binary, root, options
        self.home, self.project = root / "home", root / "project"
        self.store = self.home / "goals.db"
        self.home.mkdir(mode=0o700)
        self.project.mkdir()
        self.saved = root / "saved.db"
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(root), "STEADFAST_HOME": str(self.home),
                            "STEADFAST_NO_WATCH": "1", "TZ": "UTC"}
        (self.home / "config.toml").write_text("[notify]\ndesktop = false\n")

    def fill(self):
        amount = str(self.options.rows)
        subprocess.run([sys.executable, BIG_STORE, self.binary, self.store, "--goals", str(self.options.goals), "--events",
                        amount, "--session-events", amount, "--responses", amount, "--live", "2000", "--age-days", "400"],
                       check=True, env={**os.environ, **self.environment})
        shutil.move(self.store, self.saved)

    def restore(self):
        for path in self.home.iterdir():
            if path.name != "config.toml":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copy(self.saved, self.store)
        self.store.chmod(0o600)

    def call(self, *words, stdin="", through=()):
        done = subprocess.run([*through, self.binary, *words], cwd=self.project, env=self.environment, input=stdin,
                              capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"error: {' '.join(words)} ended with {done.returncode}: {done.stderr[-500:]}")

    def session_start(self, number):
        event = {"session_id": f"new{number}", "transcript_path": str(self.root / "t.jsonl"), "cwd": str(self.project),
                 "hook_event_name": "SessionStart", "source": "startup"}
        self.call("hook", "claude", stdin=json.dumps(event), through=CLIENT)

    def sql(self, *statements):
        """Runs statements; returns the first column of the last one's rows."""
        db = sqlite3.connect(self.store, isolation_level=None, timeout=30)
        for statement in statements:
            found = [row[0] for row in db.execute(statement)]
        db.close()
        return found

    def age_sessions(self):
        """Every session ended long ago, so that all that is remembered of it may go."""
        self.sql(f"UPDATE session_events SET created_at_ms = created_at_ms - {60 * DAY}",
                 "UPDATE goals SET status = 'complete', paused_reason = NULL WHERE status = 'paused'",
                 "DELETE FROM upkeep")

    def upkeep(self):
        """Hooks delete old rows a step at a time; each task has its turn in some of them."""
        count = lambda table: self.sql(f"SELECT count(*) FROM {table}")[0]
        for task in (*UPKEEP, *OTHER_TASKS):
            before = count(UPKEEP[task]) if task in UPKEEP else 0
            later = int(time.time() * 1000) + DAY // 2
            others = ", ".join(f"('{other}', '', {later})" for other in (*UPKEEP, *OTHER_TASKS) if other != task)
            self.sql(f"INSERT OR REPLACE INTO upkeep (task, position, due_at_ms) VALUES {others}")
            for number in range(HOOKS_OF_A_TASK):
                self.sql(f"UPDATE upkeep SET due_at_ms = 0 WHERE task = '{task}'")
                self.session_start(f"{task}{number}")
            if task in UPKEEP and count(UPKEEP[task]) > before - 1_000:
                raise SystemExit(f"error: upkeep deleted almost nothing of {UPKEEP[task]}")
        self.call("watch", "--once")

    def activate(self):
        self.sql("UPDATE goals SET status = 'active', paused_reason = NULL WHERE status = 'paused'")

    def pause_all(self):
        self.call("goal", "pause", "--all")
        if active := self.sql("SELECT count(*) FROM goals WHERE status = 'active'")[0]:
            raise SystemExit(f"error: {active} goals are still active")

    def give_events_to_one_goal(self):
        self.sql("UPDATE goal_events SET goal_id = 'goal-00000000', session_id = '00000000-0000-4000-8000-000000000000'"
                 " WHERE id % 5 = 0")

    def damage_search_index(self):
        self.sql("UPDATE session_events_fts_data SET block = zeroblob(length(block))"
                 " WHERE id = (SELECT max(id) FROM session_events_fts_data)")

    def free_pages(self):
        """Deletes half of the rows as an old version would have: without giving the pages back."""
        db = sqlite3.connect(self.store, isolation_level=None)
        db.execute("DELETE FROM responses WHERE at_ms % 2")
        db.execute("DELETE FROM goal_events WHERE id % 2")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()

    def old_store(self, path, version, additions):
        """A large store as an earlier release left it."""
        path.unlink(missing_ok=True)
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA journal_mode = wal")
        db.execute("PRAGMA synchronous = off")
        for number in range(1, version + 1):
            db.executescript((MIGRATIONS / f"{number:04}.sql").read_text())
        for file in sorted(MIGRATIONS.glob("0006_*.sql"))[:additions]:
            db.executescript(file.read_text())
        db.execute(f"PRAGMA user_version = {additions}")
        db.execute("BEGIN")
        now, rows = int(time.time() * 1000), self.options.rows
        db.executemany("INSERT INTO goals (session_id, goal_id, objective, status, created_at_ms, updated_at_ms)"
                       " VALUES (?, ?, 'objective', 'complete', ?, ?)",
                       ((f"old{n}", f"goal{n}", now, now) for n in range(self.options.goals)))
        db.executemany("INSERT INTO goal_events (session_id, goal_id, event_type, payload_json, created_at_ms)"
                       " VALUES (?, ?, 'tokens_accounted', '{\"tokens\": 12}', ?)",
                       ((f"old{n % self.options.goals}", f"goal{n % self.options.goals}", now) for n in range(rows)))
        if version == 6:
            db.executemany("INSERT INTO responses (host, response_id, session_id, agent_id, goal_id, model, input_tokens,"
                           " output_tokens, cache_creation_tokens, cache_creation_1h_tokens, cache_read_tokens, cost_micros,"
                           " at_ms) VALUES ('claude', ?, ?, '', ?, 'claude-opus-4-5', 4, 8, 0, 0, 100, 250, ?)",
                           ((f"msg{n}", f"old{n % self.options.goals}", f"goal{n % self.options.goals}", now)
                            for n in range(rows)))
        db.execute("COMMIT")
        db.close()

    def export_and_forget(self, path):
        """The memory of all sessions as a file, and a store without it."""
        self.call("session", "export", "--all", "--output", str(path))
        self.call("session", "purge", "--all")

    def operations(self):
        purge = lambda: self.call("session", "purge", "--all")
        yield "session purge --all", None, purge
        yield "goal cleanup --delete", None, lambda: self.call("goal", "cleanup", "--delete", "--older-than", "24")
        yield ("goal cleanup --delete of one large goal", self.give_events_to_one_goal,
               lambda: self.call("goal", "cleanup", "--delete", "--older-than", "24"))
        yield "goal pause --all", self.activate, self.pause_all
        yield "upkeep by hooks and watch", self.age_sessions, self.upkeep
        yield "db recover of the search index", self.damage_search_index, lambda: self.call("db", "recover")
        yield "db backup", None, lambda: self.call("db", "backup")
        yield "db compact", self.free_pages, lambda: self.call("db", "compact")
        other = self.root / "other.db"
        yield "db import", lambda: self.old_store(other, 5, 0), lambda: self.call("db", "import", str(other))
        newest = len(list(MIGRATIONS.glob("0006_*.sql"))) - 1
        memory = self.root / "memory.jsonl"
        yield ("session import", lambda: self.export_and_forget(memory),
               lambda: self.call("session", "import", str(memory)))
        for version, additions in ((5, 0), *((6, count) for count in sorted({0, 5, 7, newest}))):
            more = f", {additions} additions" if version == 6 else ""
            yield (f"migration from version {version}{more}",
                   lambda version=version, additions=additions: self.old_store(self.store, version, additions),
                   lambda: self.call("goal", "history", "--all"))

    def run(self):
        rows = []
        for name, prepare, work in self.operations():
            if self.options.operation not in name:
                continue
            self.restore()
            if prepare:
                prepare()
            watcher, began = Watcher(self.store), time.monotonic()
            watcher.start()
            try:
                work()
            finally:
                watcher.stop()
            seconds = time.monotonic() - began
            rows.append({"operation": name, "seconds": round(seconds, 1), "holds": watcher.holds,
                         "longest_ms": round(watcher.longest * 1000, 1), "looks_a_second": round(watcher.looks / seconds)})
            print(f"{name:32} {seconds:7.1f} s  {watcher.holds:6} holds  longest {watcher.longest * 1000:8.1f} ms at {watcher.longest_at:6.1f} s  "
                  f"{watcher.looks / seconds:8.0f} looks a second", file=sys.stderr, flush=True)
        return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=pathlib.Path, required=True)
    parser.add_argument("--seed", help=argparse.SUPPRESS)
    parser.add_argument("--goals", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of events, of responses and of memory each")
    parser.add_argument("--operation", default="", help="only operations whose name has these words")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="steadfast-locks-", dir=scratch()) as root:
        bench = Bench(options.binary.resolve(), pathlib.Path(root), options)
        bench.fill()
        megabytes = bench.saved.stat().st_size / 1e6
        load = os.getloadavg()[0]
        rows = bench.run()
    longest = max(rows, key=lambda row: row["longest_ms"], default={})
    print(json.dumps({"trials": len(rows), "store_mb": round(megabytes), "load_before": round(load, 1),
                      "longest_ms": longest.get("longest_ms"), "longest_in": longest.get("operation"), "operations": rows}))


if __name__ == "__main__":
    main()
