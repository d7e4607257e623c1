#!/usr/bin/env python3
"""What the page and `steadfast top` cost on a large store. Numbers are printed, never asserted.

usage: bench_views.py STEADFAST [RUNS] [GOALS] [EVENTS] [ITERATIONS]

The store has goals, events, and a run with many iterations. A page's time is that of a request to a server that runs; `top`
is the CPU of one `top --json`, which starts the program, builds everything on the screen and ends.
"""

import http.client
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
AGENT = "cat > /dev/null; echo done"


def main():
    steadfast = os.path.abspath(sys.argv[1])
    runs, goals, events, iterations = (int(given) for given in [*sys.argv[2:], *["20", "1000", "100000", "10000"][len(sys.argv) - 2:]])
    with tempfile.TemporaryDirectory(prefix="steadfast-bench-") as work:
        home = f"{work}/home"
        environment = {"PATH": os.environ["PATH"], "HOME": work, "STEADFAST_HOME": home, "STEADFAST_NO_WATCH": "1",
                       "CLAUDE_CONFIG_DIR": f"{work}/claude", "CODEX_HOME": f"{work}/codex"}
        os.makedirs(f"{home}/loops/quick")
        os.makedirs(f"{work}/project")
        amounts = ["--goals", str(goals), "--events", str(events), "--session-events", str(events), "--responses", str(events), "--live", "60"]
        subprocess.run([sys.executable, f"{HERE}/faults/big_store.py", steadfast, f"{home}/goals.db", *amounts], check=True)
        with open(f"{home}/loops/quick/loop.yaml", "w") as file:
            file.write("name: quick\ndelay: 0\ncompletion: fixed-n\nruns: 1\n")
        with open(f"{home}/loops/quick/prompt.md", "w") as file:
            file.write("go\n")
        subprocess.run([steadfast, "loop", "run", "quick", "many", "--agent", f"sh -c '{AGENT}'"], env=environment, cwd=f"{work}/project",
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        run_id = more_iterations(f"{home}/goals.db", iterations)
        print(f"{goals:,} goals, {events:,} events of each kind, {iterations:,} iterations, {os.path.getsize(f'{home}/goals.db') / 1e6:.1f} MB")
        pages(steadfast, environment, work, runs, {"now": "/", "now as JSON": "/now.json", "run": f"/runs/{run_id}", "search": "/search?q=parser",
                                                   "metrics": "/metrics", "goal": goal_path(f"{home}/goals.db")})
        samples = [cpu([steadfast, "top", "--json"], environment, f"{work}/project") for _ in range(runs)]
        print(f"{'top, one refresh with its start':34} {statistics.median(samples):8.1f} ms CPU, longest {max(samples):.1f}")


def goal_path(store):
    db = sqlite3.connect(store)
    return "/goals/" + db.execute("SELECT goal_id FROM goal_events GROUP BY goal_id ORDER BY count(*) DESC LIMIT 1").fetchone()[0]


def more_iterations(store, count):
    """Copies the one committed iteration of the run."""
    db = sqlite3.connect(store)
    names = [row[1] for row in db.execute("PRAGMA table_xinfo(run_iterations)") if row[6] == 0]
    base = dict(zip(names, db.execute(f"SELECT {', '.join(names)} FROM run_iterations").fetchone()))
    sql = f"INSERT INTO run_iterations ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    db.executemany(sql, ([{**base, "iteration": number}[name] for name in names] for number in range(2, count + 1)))
    db.commit()
    return base["run_id"]


def pages(steadfast, environment, work, runs, paths):
    server = subprocess.Popen([steadfast, "ui"], env=environment, cwd=f"{work}/project", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port, key = re.match(r"http://127\.0\.0\.1:(\d+)(/\S+)", server.stdout.readline()).groups()
        connection = http.client.HTTPConnection("127.0.0.1", int(port))
        connection.request("GET", key)
        answer = connection.getresponse()
        cookie = answer.getheader("set-cookie").split(";")[0]
        answer.read()
        for name, path in paths.items():
            took = []
            for _ in range(runs):
                began = time.perf_counter()
                connection.request("GET", path, headers={"Cookie": cookie})
                answer = connection.getresponse()
                size = len(answer.read())
                took.append((time.perf_counter() - began) * 1000)
                if answer.status != 200:
                    sys.exit(f"error: {path}: {answer.status}")
            print(f"{name:34} {statistics.median(took):8.1f} ms, longest {max(took):.1f}, {size / 1000:.0f} kB")
        memory = re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{server.pid}/status").read())[1]
        print(f"{'memory of the server, peak':34} {int(memory) / 1024:8.1f} MB")
    finally:
        server.terminate()


def cpu(argv, environment, directory):
    child = subprocess.Popen(argv, env=environment, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    child.stdout.read()
    _, status, use = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"error: {argv} ended with {os.waitstatus_to_exitcode(status)}")
    return (use.ru_utime + use.ru_stime) * 1000


main()
