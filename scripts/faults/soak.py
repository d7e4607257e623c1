#!/usr/bin/env python3
"""A hundred thousand hook calls over many sessions and goals: file size, time and memory must stay flat.

usage: soak.py --binary STEADFAST [--calls N] [--seed N] [--sessions N]

Prints a line every 5 %: sizes of the store and its log, wall and CPU time per call, the largest memory of a call. Between two
lines, 25 days go by for everything that is over, so that a whole run takes 500 days, and retention has work to do; for upkeep
itself they go by evenly, so a call stands for seven minutes. At the end
the tokens that were counted must be those that were written, the store must not grow in the second half, and a call must need
no more processor time and memory in the last fifth than in the second; otherwise the exit code is 1. Calls come from a process of its own that looks like a client, goals from this one, which looks like a person.
"""

import argparse
import json
import os
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time


def client():
    """Starts hooks for the requests on stdin, one JSON object a line, and reports what each took."""
    for line in sys.stdin:
        request = json.loads(line)
        ours, theirs = socket.socketpair()
        begun = time.monotonic()
        child = subprocess.Popen(request["argv"], stdin=theirs.fileno(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        theirs.close()
        ours.sendall(request["input"].encode())
        ours.close()
        said = child.stdout.read().decode(errors="replace")
        _, status, use = os.wait4(child.pid, 0)
        child.stdout.close()
        child.returncode = status
        done = {"code": os.waitstatus_to_exitcode(status), "said": said, "wall": time.monotonic() - begun,
                "cpu": use.ru_utime + use.ru_stime, "peak": use.ru_maxrss / 1024}
        print(json.dumps(done), flush=True)


class Session:
    def __init__(self, soak, number):
        self.soak, self.id = soak, f"{number:08x}-0000-4000-8000-{soak.seed:012x}"
        self.file = f"{soak.work}/{self.id}.jsonl"
        open(self.file, "w").close()
        self.call("SessionStart", source="startup")
        self.has_goal = soak.random.random() < 0.6
        if self.has_goal:
            soak.person("goal", "start", f"Objective of session {number}", "--session", self.id)

    def call(self, event, **fields):
        return self.soak.call({"session_id": self.id, "transcript_path": self.file, "cwd": self.soak.work, "hook_event_name": event, **fields})

    def answer(self):
        """The model answers: a tool call, new text, and tokens."""
        soak = self.soak
        soak.answers += 1
        tokens = soak.random.randint(1, 5_000)
        message = {"id": f"msg_{soak.answers}", "model": "claude-opus-4-5", "role": "assistant",
                   "content": [{"type": "tool_use", "id": f"t{soak.answers}", "name": "Bash", "input": {}}, {"type": "text", "text": f"more {soak.answers}"}],
                   "usage": {"input_tokens": tokens, "output_tokens": 1, "cache_read_input_tokens": 10}}
        now = time.time()
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03}Z"
        with open(self.file, "a") as file:
            file.write(json.dumps({"type": "assistant", "uuid": f"u{soak.answers}", "timestamp": at, "message": message}) + "\n")
        if self.has_goal:
            soak.written += tokens + 1

    def work(self):
        what, number = self.soak.random.random(), self.soak.answers
        if what < 0.15:
            self.call("UserPromptSubmit", prompt=f"Please look at request {number}, the {self.soak.random.choice(WORDS)} is slow")
        elif what < 0.6:
            self.call("PostToolUse", tool_name="Bash", tool_use_id=f"t{number}", tool_input={"command": f"git commit -m 'Change {number}'"},
                      tool_response={"stdout": "done\n" * 20, "stderr": "", "interrupted": False, "isImage": False})
        elif what < 0.97:
            for _ in range(RESPONSES_OF_LONG_TURN if self.soak.random.random() < LONG_TURNS else 1):
                self.answer()
            self.call("Stop", stop_hook_active=False, last_assistant_message=f"more {self.soak.answers}", background_tasks=[])
        elif what < 0.99:
            self.call("PreCompact", trigger="auto")
            self.call("SessionStart", source="compact")
        else:
            self.call("Stop", stop_hook_active=False, last_assistant_message=f"last {number}", background_tasks=[])
            self.end()
            return False
        return True

    def end(self):
        self.call("SessionEnd", reason="logout")
        if self.has_goal:
            self.soak.person("goal", "complete", "--session", self.id)
            self.soak.ended_tokens += self.soak.tokens_of(self.id)


# What has a time, with the column that names its session or goal.
AGED = {
    "goal_events": ("session_id", ["created_at_ms"]),
    "responses": ("session_id", ["at_ms"]),
    "session_events": ("session_id", ["created_at_ms"]),
    "sessions": ("session_id", ["started_at_ms", "last_seen_ms", "ended_at_ms"]),
    "goals": ("session_id", ["created_at_ms", "updated_at_ms"]),
    "session_snapshots": ("session_id", ["written_at_ms"]),
    "transcript_cursors": ("session_id", ["updated_at_ms"]),
}
DAYS_BETWEEN_LINES = 25
CALLS_BETWEEN_MOMENTS = 50
# A turn of hours has many responses and only one Stop, and all of them have to go some day.
LONG_TURNS = 0.08
RESPONSES_OF_LONG_TURN = 400
# A shorter run ends before anything is old enough to go.
LEAST_CALLS = 50_000
MOST_GROWTH = 1.25
WORDS = "parser lexer reader cache index query plan".split()


class Soak:
    def __init__(self, given, work):
        self.given, self.work, self.seed = given, work, given.seed
        self.random = random.Random(given.seed)
        self.home = f"{work}/home"
        self.store = f"{self.home}/goals.db"
        self.answers = self.written = self.done = self.started = self.ended_tokens = 0
        self.sizes, self.times, self.peaks = [], [], []
        self.environment = {"PATH": os.environ["PATH"], "HOME": work, "STEADFAST_HOME": self.home, "STEADFAST_NO_WATCH": "1",
                            "CLAUDE_CONFIG_DIR": f"{work}/claude"}
        os.makedirs(self.home)
        with open(f"{self.home}/config.toml", "w") as file:
            file.write("[notify]\ndesktop = false\n")
        self.client = subprocess.Popen([sys.executable, __file__, "--client"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.environment)
        self.forget()

    def forget(self):
        self.wall, self.cpu, self.peak, self.since = 0.0, 0.0, 0.0, self.done

    def person(self, *arguments):
        # A session of its own, as a terminal has it.
        subprocess.run([self.given.binary, *arguments], env=self.environment, cwd=self.work, check=True, stdout=subprocess.DEVNULL, start_new_session=True)

    def call(self, event):
        request = {"argv": [self.given.binary, "hook", "claude"], "input": json.dumps(event)}
        self.client.stdin.write(json.dumps(request) + "\n")
        self.client.stdin.flush()
        done = json.loads(self.client.stdout.readline())
        if done["code"] != 0:
            sys.exit(f"error: {event['hook_event_name']} ended with {done['code']}")
        self.done += 1
        self.wall, self.cpu, self.peak = self.wall + done["wall"], self.cpu + done["cpu"], max(self.peak, done["peak"])
        return done["said"]

    def tokens_of(self, session):
        db = sqlite3.connect(self.store)
        found = db.execute("SELECT tokens_used FROM goals WHERE session_id = ?", [session]).fetchone()
        db.close()
        return found[0] if found else 0

    def age(self):
        """Lets days go by for the sessions that are over."""
        db = sqlite3.connect(self.store, timeout=30)
        over = "SELECT session_id FROM sessions WHERE ended_at_ms IS NOT NULL"
        for table, (key, columns) in AGED.items():
            back = ", ".join(f"{column} = {column} - {DAYS_BETWEEN_LINES * 86_400_000}" for column in columns)
            db.execute(f"UPDATE {table} SET {back} WHERE {key} IN ({over})")
        db.commit()
        db.close()

    def let_upkeep_be_due(self, calls, part):
        """Lets time go by for upkeep, evenly: it works in steps, and a lump of days would be one step."""
        db = sqlite3.connect(self.store, timeout=30)
        db.execute(f"UPDATE upkeep SET due_at_ms = due_at_ms - {DAYS_BETWEEN_LINES * 86_400_000 * calls // part}")
        db.commit()
        db.close()

    def begin(self):
        self.started += 1
        return Session(self, self.started)

    def run(self):
        sessions = [self.begin() for _ in range(self.given.sessions)]
        part = max(1, self.given.calls // 20)
        print(f"{'calls':>9} {'store MB':>9} {'log MB':>8} {'wall ms':>8} {'CPU ms':>8} {'peak MB':>8} {'sessions':>9}")
        shown = passed = 0
        while self.done < self.given.calls:
            place = self.random.randrange(len(sessions))
            if not sessions[place].work():
                sessions[place] = self.begin()
            if self.done - passed >= CALLS_BETWEEN_MOMENTS:
                self.let_upkeep_be_due(self.done - passed, part)
                passed = self.done
            if self.done - shown >= part:
                shown = self.done
                self.show()
                self.age()
        for session in sessions:
            session.call("Stop", stop_hook_active=False, last_assistant_message="over", background_tasks=[])
            session.end()
        self.client.stdin.close()
        self.client.wait()
        return self.check()

    def show(self):
        size = lambda path: os.path.getsize(path) / 1e6 if os.path.exists(path) else 0.0
        calls = max(1, self.done - self.since)
        self.sizes.append(size(self.store))
        self.times.append(self.cpu / calls)
        self.peaks.append(self.peak)
        print(f"{self.done:9,} {size(self.store):9.2f} {size(self.store + '-wal'):8.2f} {self.wall / calls * 1000:8.1f} {self.cpu / calls * 1000:8.1f} "
              f"{self.peak:8.1f} {self.started:9,}", flush=True)
        self.forget()

    def check(self):
        copy = f"{self.work}/copy.db"
        for suffix in ("", "-wal"):
            if os.path.exists(self.store + suffix):
                shutil.copyfile(self.store + suffix, copy + suffix)
        db = sqlite3.connect(copy)
        counted = self.ended_tokens
        faults = [row[0] for row in db.execute("PRAGMA integrity_check(5)") if row[0] != "ok"]
        states = dict(db.execute("SELECT status || coalesce(' ' || paused_reason, ''), count(*) FROM goals GROUP BY 1"))
        print(f"goals: {states}\ntokens written {self.written:,}, counted {counted:,}; faults: {faults or 'none'}")
        log = f"{self.home}/log/hooks.log"
        if os.path.exists(log):
            lines = open(log).read().splitlines()
            print(f"hooks.log has {len(lines)} lines, the last: {lines[-1] if lines else ''}")
        grown = list(self.grown()) if self.given.calls >= LEAST_CALLS else []
        for what in grown:
            print(f"it grows: {what}", file=sys.stderr)
        return 0 if counted == self.written and not faults and not grown else 1

    def grown(self):
        """What was larger at the end than before."""
        half, fifth = len(self.sizes) // 2, len(self.sizes) // 5
        if max(self.sizes[half:]) > MOST_GROWTH * max(self.sizes[half - 4:half]):
            yield f"the store: {', '.join(f'{size:.1f}' for size in self.sizes)} MB"
        for what, lines in (("processor time of a call", self.times), ("memory of a call", self.peaks)):
            before, after = sum(lines[fifth:2 * fifth]), sum(lines[-fifth:])
            if after > MOST_GROWTH * before:
                yield f"{what}: {after / before:.2f} times that of the second fifth"



def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sessions", type=int, default=20, help="sessions at once")
    given = parser.parse_args()
    given.binary = os.path.abspath(given.binary)
    with tempfile.TemporaryDirectory(prefix="steadfast-soak-") as work:
        sys.exit(Soak(given, work).run())


if sys.argv[1:] == ["--client"]:
    client()
else:
    main()
