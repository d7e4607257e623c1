"""Methods that are programs of their own: each prints what it did as one line of JSON."""
import json, subprocess, sys

from sweep import Result
from world import REPOSITORY

# The program, and its words in each mode. All take `--binary`.
METHODS = {
    "contention": ("scripts/faults/contention.py", {"short": ["--seconds", "10"], "sample": ["--seconds", "60"], "full": []}),
    "corruption": ("scripts/faults/corruption.py", {"short": ["--short"], "sample": [], "full": []}),
    "soak": ("scripts/faults/soak.py", {"short": ["--calls", "300"], "sample": ["--calls", "5000"], "full": []}),
    "fuzz": ("scripts/fuzz", {"short": ["--short"], "sample": ["--short"], "full": []}),
}
PATIENCE = 4 * 3600


def run(method, binary, mode, seed, report, say):
    """Runs one, and reads from its last line how many trials it made and how many problems it found."""
    program, words = METHODS[method]
    path = REPOSITORY / program
    if not path.exists():
        report.notes.append(f"{method}: not run, {program} is not there")
        say(f"!! NOT RUN: {method}: {program} is not there")
        return
    argv = [sys.executable] if path.suffix == ".py" else []
    done = subprocess.run([*argv, str(path), "--binary", str(binary), *words[mode]], cwd=REPOSITORY,
                          capture_output=True, text=True, timeout=PATIENCE)
    lines = done.stdout.strip().splitlines()
    try:
        value = json.loads(lines[-1])
    except (IndexError, ValueError):
        value = {}
    result = Result()
    result.trials = value.get("trials") or value.get("calls") or value.get("runs") or 0
    result.hits = value.get("faults", value.get("hits", value.get("kills", 0)))
    result.seconds = value.get("seconds", 0)
    if done.returncode != 0:
        result.problems.append({"method": method, "operation": method, "at": 0,
                                "problem": f"exit {done.returncode}: {(done.stderr or done.stdout)[-1500:]}"})
    report.add(method, method, result)
    report.rows[-1]["measured"] = value
