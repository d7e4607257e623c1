#!/usr/bin/env python3
"""Fills a new store with the rows of years: something large for `./bench scale` and for tests by hand.

usage: big_store.py STEADFAST STORE [--goals N] [--events N] [--session-events N] [--responses N] [--live N] [--age-days N]

The program itself makes the store and its first goal; the rows are copies of that goal with other ids. The store must not
be in use: the SQLite of Python may be older than the one that Steadfast needs.
"""

import argparse
import os
import random
import sqlite3
import subprocess
import sys
import time

DAY = 86_400_000
WORDS = "parser token lexer reader cache index query plan branch commit test build release window socket queue worker".split()


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("steadfast")
    parser.add_argument("store")
    parser.add_argument("--goals", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--session-events", type=int, default=1_000_000)
    parser.add_argument("--responses", type=int, default=1_000_000)
    parser.add_argument("--live", type=int, default=20, help="goals that are paused instead of complete")
    parser.add_argument("--age-days", type=float, default=25, help="the rows are spread over this many days")
    return parser.parse_args()


def columns_of(db, table):
    return [row[1] for row in db.execute(f"PRAGMA table_xinfo({table})") if row[6] == 0]


def copies(db, table, template, rows):
    """Inserts copies of a row with some columns changed."""
    names = columns_of(db, table)
    sql = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    base = dict(zip(names, db.execute(f"SELECT {', '.join(names)} FROM {template}").fetchone()))
    db.executemany(sql, ([{**base, **row}[name] for name in names] for row in rows))


def main():
    given = arguments()
    if os.path.exists(given.store):
        sys.exit(f"error: {given.store} exists already")
    home = os.path.dirname(os.path.abspath(given.store))
    environment = {"PATH": os.environ["PATH"], "HOME": home, "STEADFAST_HOME": home, "STEADFAST_NO_WATCH": "1"}
    start = [given.steadfast, "--db", given.store, "goal", "start", "Keep the lighthouse burning", "--session", "template"]
    subprocess.run(start, env=environment, check=True, stdout=subprocess.DEVNULL)
    fill(given, sqlite3.connect(given.store, isolation_level=None))


def fill(given, db):
    random.seed(7)
    now = int(time.time() * 1000)
    span = int(given.age_days * DAY)
    sessions = max(1, given.goals)
    at = lambda number, count: now - span + span * number // max(1, count)
    session = lambda number: f"{number % sessions:08x}-0000-4000-8000-000000000000"
    goal = lambda number: f"goal-{number % sessions:08x}"
    db.execute("PRAGMA synchronous = OFF")
    db.execute("BEGIN")
    def goals():
        for number in range(given.goals):
            is_live = number < given.live
            yield {"session_id": session(number), "goal_id": goal(number), "objective": f"Objective {number}: {' '.join(random.sample(WORDS, 8))}",
                   "status": "paused" if is_live else "complete", "paused_reason": "user" if is_live else None, "wake_at_ms": None,
                   "resume_at_ms": None, "created_at_ms": at(number, given.goals), "updated_at_ms": at(number, given.goals)}
    copies(db, "goals", "goals WHERE session_id = 'template'", goals())
    sql = """INSERT INTO sessions (session_id, host, cwd, project_dir, transcript_path, started_at_ms, last_seen_ms, ended_at_ms, end_reason)
             VALUES (?, 'claude', '/srv/project', '/srv/project', '', ?, ?, ?, 'logout')"""
    db.executemany(sql, ((session(n), at(n, sessions), at(n, sessions), at(n, sessions)) for n in range(sessions)))
    sql = "INSERT INTO goal_spans (goal_id, session_id, from_ms, to_ms) VALUES (?, ?, ?, ?)"
    db.executemany(sql, ((goal(n), session(n), at(n, sessions), at(n, sessions) + 1) for n in range(given.goals)))
    copies(db, "goal_events", "goal_events WHERE session_id = 'template'", (
        {"id": number + 1_000, "session_id": session(number), "goal_id": goal(number), "event_type": "tokens_accounted", "status_before": "active",
         "status_after": "active", "tokens_delta": 12, "payload_json": '{"tokens": 12, "file": "session.jsonl"}',
         "created_at_ms": at(number, given.events)} for number in range(given.events)))
    sql = """INSERT INTO responses (host, response_id, session_id, agent_id, goal_id, model, input_tokens, output_tokens,
               cache_creation_tokens, cache_creation_1h_tokens, cache_read_tokens, cost_micros, at_ms)
             VALUES ('claude', ?, ?, '', ?, 'claude-opus-4-5', 4, 8, 0, 0, 100, 250, ?)"""
    # None of them today, so that the sums of the day are the same as in a small store.
    old = lambda number: min(at(number, given.responses), now - 2 * DAY)
    db.executemany(sql, ((f"msg_{n:09x}", session(n), goal(n), old(n)) for n in range(given.responses)))
    # The index for searches is built at once: row by row takes much longer.
    triggers = db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'session_events%'").fetchall()
    for name, _ in triggers:
        db.execute(f"DROP TRIGGER {name}")
    sql = """INSERT INTO session_events (session_id, category, kind, importance, subject, text, created_at_ms)
             VALUES (?, 'prompt', 'prompt', 2, '', ?, ?)"""
    text = lambda number: f"the {' '.join(random.choices(WORDS, k=7))} number {number}"
    db.executemany(sql, ((session(n), text(n), at(n, given.session_events)) for n in range(given.session_events)))
    db.execute("INSERT INTO session_events_fts (session_events_fts) VALUES ('rebuild')")
    for _, create in triggers:
        db.execute(create)
    db.execute("DELETE FROM goals WHERE session_id = 'template'")
    db.execute("COMMIT")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


main()
