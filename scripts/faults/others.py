"""Methods that are programs of their own: each prints what it did as one line of JSON."""
import json, pathlib, re, subprocess, sys

from sweep import Result
from world import REPOSITORY

# The program, and its words in each mode; without words for a mode, it is not run there.
METHODS = {
    "contention": ("scripts/faults/contention.py", {"short": ["--seconds", "8", "--processes", "8"],
                                                    "sample": ["--seconds", "180"], "full": ["--seconds", "180"]}),
    "corruption": ("scripts/faults/corruption.py", {"short": ["--trials", "6"], "sample": ["--trials", "100"], "full": ["--trials", "1000"]}),
    "soak": ("scripts/faults/soak.py", {"short": ["--calls", "300"], "sample": ["--calls", "5000"], "full": []}),
    # A measurement, so no part of the tests.
    "locks": ("scripts/faults/locks.py", {"sample": ["--rows", "200000"], "full": []}),
    # The targets have a short run of their own, as tests.
    "fuzz": ("scripts/fuzz", {"full": ["--seconds", "120"]}),
}
PATIENCE = 4 * 3600


def read(text):
    """The JSON objects that a program printed: one over several lines, or one in each line."""
    try:
        return [json.loads(text)]
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]


def rows(text):
    """The first and the last row of a table whose first column is a number of calls."""
    found = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit()]
    names = [name.strip() for name in re.split(r" {2,}", text.splitlines()[0].strip())] if found else []
    if not found:
        return []
    show = lambda row: f"({', '.join(f'{name} {value}' for name, value in zip(names[1:], row[1:]))})"
    return [{"calls": int(found[-1][0].replace(",", "")), "at_first": show(found[0]), "in_the_end": show(found[-1])}]


def summed_up(facts):
    """What the page shows of a program's results: its only one, or the sums of its targets."""
    if len(facts) == 1:
        return facts[0]
    if all("target" in fact for fact in facts):
        return {"targets": len(facts), "seconds": sum(fact["seconds"] for fact in facts),
                "broken_inputs": sum(len(fact["broken"]) for fact in facts)}
    return {}


def earlier(argv, text):
    """A run that was made before. Its output must end with its exit code, or a failed run would count as a good one."""
    found = re.findall(r"^rc (\d+)$", text, re.MULTILINE)
    if len(found) != 1:
        raise SystemExit("error: the output of an earlier run needs one line `rc CODE`: it may not be over")
    return subprocess.CompletedProcess(argv, int(found[0]), text, "")


def run(method, binary, mode, seed, report, say, printed=None):
    """Runs one, and reads from its last line how many trials it made and how many problems it found. With the output of an
    earlier run, only reads."""
    program, words = METHODS[method]
    path = REPOSITORY / program
    if not path.exists():
        report.notes.append(f"{method}: not run, {program} is not there")
        say(f"!! NOT RUN: {method}: {program} is not there")
        return
    if mode not in words:
        return
    of_binary = ["--binary", str(binary)] if path.suffix == ".py" else []
    of_seed = ["--seed", seed] if path.suffix == ".py" else []
    argv = [sys.executable, str(path), *of_binary, *of_seed, *words[mode]]
    if printed:
        done = earlier(argv, pathlib.Path(printed).read_text())
    else:
        done = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE)
    facts = read(done.stdout) or rows(done.stdout)
    total = lambda *names: sum(next((fact[name] for name in names if isinstance(fact.get(name), (int, float))), 0)
                               for fact in facts)
    result = Result()
    result.trials = total("trials", "calls", "executions", "runs")
    # A program that injects nothing met no fault.
    result.hits = total("kills", "damaged")
    result.seconds = total("seconds")
    if done.returncode != 0:
        result.problems.append({"method": method, "operation": method, "at": 0,
                                "problem": f"exit {done.returncode}: {(done.stderr or done.stdout)[-1500:]}"})
    report.add(method, method, result)
    report.rows[-1]["measured"] = summed_up(facts)
