#!/usr/bin/env python3
"""What commands and hooks cost on a store of years, compared with a small one. Numbers are printed, never asserted.

usage: bench_scale.py STEADFAST [RUNS] [GOALS] [EVENTS]

CPU is the median of the runs, user and system, of the program and its children. A session start does a step of upkeep when one
is due: that is part of its cost. Memory is the largest peak. This script is
the client: hooks believe only the process that started them, with the environment that it was started with itself.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SMALL = (10, 1_000)


def main():
    steadfast = os.path.abspath(sys.argv[1])
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    goals = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000
    events = int(sys.argv[4]) if len(sys.argv) > 4 else 1_000_000
    if "BENCH_WORK" not in os.environ:
        with tempfile.TemporaryDirectory(prefix="steadfast-bench-") as work:
            environment = {"PATH": os.environ["PATH"], "HOME": work, "STEADFAST_HOME": f"{work}/home", "STEADFAST_NO_WATCH": "1",
                           "CLAUDE_CONFIG_DIR": f"{work}/claude", "CODEX_HOME": f"{work}/codex", "BENCH_WORK": work}
            sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)
    work = os.environ["BENCH_WORK"]
    os.makedirs(f"{work}/home")
    os.makedirs(f"{work}/project")
    open(f"{work}/t.jsonl", "w").close()
    with open(f"{work}/home/config.toml", "w") as file:
        file.write("[notify]\ndesktop = false\n")
    sizes = {"small": SMALL, "large": (goals, events)}
    stores = {}
    for name, (goals, events) in sizes.items():
        stores[name] = f"{work}/home/{name}.db"
        amounts = ["--goals", str(goals), "--events", str(events), "--session-events", str(events), "--responses", str(events)]
        subprocess.run([sys.executable, f"{HERE}/faults/big_store.py", steadfast, stores[name], *amounts], check=True)
        print(f"{name}: {goals:,} goals, {events:,} events of each kind, {os.path.getsize(stores[name]) / 1e6:.1f} MB")
    session = "00000007-0000-4000-8000-000000000000"
    print(f"\n{'':34} {'small':>20} {'large':>20} {'ratio':>7}")
    for name, call in calls(steadfast, session):
        rows = {}
        for size, store in stores.items():
            samples = [call(store, number) for number in range(runs)]
            rows[size] = statistics.median(cpu for cpu, _ in samples), max(peak for _, peak in samples)
        small, large = rows["small"], rows["large"]
        shown = [f"{cpu:8.1f} ms {peak:5.1f} MB" for cpu, peak in (small, large)]
        print(f"{name:34} {shown[0]:>20} {shown[1]:>20} {large[0] / small[0]:6.2f}x")


def measure(argv, stdin=b""):
    # A hook asks the socket who wrote its input; a pipe that is closed again does not show that.
    ours, theirs = socket.socketpair()
    child = subprocess.Popen(argv, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=f"{os.environ['BENCH_WORK']}/project")
    theirs.close()
    try:
        ours.sendall(stdin)
    except BrokenPipeError:
        pass
    ours.close()
    while child.stdout.read(1 << 20):
        pass
    _, status, use = os.wait4(child.pid, 0)
    if status and os.waitstatus_to_exitcode(status) not in (0, 2, 4):
        sys.exit(f"error: {' '.join(argv)} ended with {os.waitstatus_to_exitcode(status)}")
    return (use.ru_utime + use.ru_stime) * 1000, use.ru_maxrss / 1024


def hook(steadfast, store, session, number, source):
    work = os.environ["BENCH_WORK"]
    call = {"session_id": f"new-{source}-{number}" if source == "startup" else session, "transcript_path": f"{work}/t.jsonl",
            "cwd": f"{work}/project", "hook_event_name": "SessionStart", "source": source}
    measured = measure([steadfast, "--db", store, "hook", "claude"], json.dumps(call).encode())
    log = f"{work}/home/log/hooks.log"
    if os.path.exists(log) and "not from the session's client" in open(log).read():
        sys.exit(f"error: the hook did nothing: {open(log).read().splitlines()[-1]}")
    return measured


def calls(steadfast, session):
    yield "--version", lambda store, number: measure([steadfast, "--version"])
    for source in ("startup", "resume", "compact"):
        yield f"SessionStart {source}", lambda store, number, source=source: hook(steadfast, store, session, number + 1_000, source)
    for arguments in (["goal", "status", "--session", session], ["goal", "history", "--session", session], ["goal", "history", "--all"],
                      ["goal", "history", "--all", "--events"], ["goal", "history", "--all", "--json"], ["goal", "cleanup", "--list"],
                      ["session", "list", "--all"], ["session", "search", "parser"], ["session", "search", "the parser"],
                      ["session", "search", "nowhere"], ["doctor"]):
        yield " ".join(part for part in arguments if part != session), lambda store, number, arguments=arguments: measure(
            [steadfast, "--db", store, *arguments])


main()
