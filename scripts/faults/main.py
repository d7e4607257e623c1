"""`./faults`: makes the product fail in every way that we know, asks it afterwards what it knows, and counts the losses."""
import argparse, json, os, pathlib, platform, queue, shutil, subprocess, sys, tempfile, threading, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import complete, goal_operations, hook_operations, others, page, power, run_operations, setup_operations
import store_operations, sweep, tool_operations, verb_operations
from world import REPOSITORY, World, scratch

MODULES = (goal_operations, tool_operations, hook_operations, store_operations, setup_operations, run_operations,
           verb_operations)
SWEEPS = ("errors", "kills", "power")
# Every how many-th system call is hit; images of the disk; and the part of the time that an operation may take.
MODES = {
    "full": {"every": 1, "every_of_runs": 4, "images": 200, "seconds": None},
    "sample": {"every": 24, "every_of_runs": 160, "images": 24, "seconds": 840},
    "short": {"every": 120, "every_of_runs": 900, "images": 6, "seconds": 110},
}
# What a mode means, above the table.
MEANINGS = {
    "full": "Every system call was hit, one after the other, until the operation came through untouched (in runs of "
            "agents, every {every_of_runs}th); {images} images of the disk.",
    "sample": "A sample: every {every}th system call was hit only (in runs of agents, every {every_of_runs}th), and "
              "{images} images of the disk were built; where the time was over, fewer.",
    "short": "A short sample: every {every}th system call was hit only, {images} images of the disk, and one operation "
             "of each kind.",
}
# What `--short` looks at: one operation of each kind.
SHORT = ("goal start, new store", "goal extend", "Claude Stop", "Codex Stop", "MCP update_goal complete, verified",
         "migration from version 5", "setup claude", "uninstall codex", "loop", "pipeline", "usage, cold", "session purge")
# Problems that cost the user nothing that was done: files left behind, words, exit codes.
HARMLESS = ("files left behind", "not a documented exit code", "an error without a hint", "it speaks of its inside",
            "it does not end")


def all_operations():
    return [make() for module in MODULES for make in module.OPERATIONS]


def operations(method, wanted, mode):
    made = all_operations()
    if method == "power":
        made = [one for one in made if one.cuts_power] + [power.Work(False), power.Work(True)]
    if wanted:
        return [one for one in made if wanted.lower() in one.name.lower()]
    return [one for one in made if mode != "short" or one.name in SHORT or isinstance(one, power.Work)]


def build(mode):
    """The release binary; in the short form the one that the tests have just built."""
    profile = [] if mode == "short" else ["--release"]
    subprocess.run(["cargo", "build", "--quiet", "-p", "steadfast", *profile], cwd=REPOSITORY, check=True)
    target = os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")
    return pathlib.Path(target) / ("release" if profile else "debug") / "steadfast"


def cannot_trace():
    """Why strace cannot be used here, if so."""
    if sys.platform != "linux":
        return "strace exists on Linux only"
    if not shutil.which("strace"):
        return "strace is not installed"
    done = subprocess.run(["strace", "-D", "-qq", "-o", "/dev/null", "-e", "inject=getppid:error=EIO:when=1", "true"],
                          capture_output=True, text=True)
    return None if done.returncode == 0 else f"strace cannot trace here: {done.stderr.strip()}"


def say(text):
    print(text, file=sys.stderr, flush=True)


class Report:
    def __init__(self, mode, seed):
        self.mode, self.seed = mode, seed
        # Now, because the repository may have moved on when the results are there.
        self.commit = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=REPOSITORY, capture_output=True,
                                     text=True).stdout.strip()
        self.lock = threading.Lock()
        self.rows, self.problems, self.notes = [], [], []

    def add(self, method, name, result):
        trials = lambda wanted: {(found.get("call"), found["at"], found.get("image")) for found in result.problems
                                 if found["problem"].startswith(HARMLESS) in wanted}
        row = {"method": method, "operation": name, "trials": result.trials, "hits": result.hits,
               "losses": len(trials((False,))), "other_problems": len(trials((True,)) - trials((False,))),
               "seconds": round(result.seconds, 1)}
        with self.lock:
            self.rows.append(row)
            self.problems += result.problems
            say(f"{method:7} {name:45} {row['trials']:5} trials {row['hits']:5} hit {row['losses']:3} lost {row['other_problems']:3} other "
                f"{row['seconds']:7} s")

    def value(self, binary):
        version = subprocess.run([binary, "--version"], capture_output=True, text=True).stdout.partition("\n")[0]
        machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
        return {"mode": self.mode, "what": MEANINGS[self.mode].format(**MODES[self.mode]), "seed": self.seed, "commit": self.commit, "version": version,
                "machine": machine, "date": time.strftime("%Y-%m-%d", time.gmtime()), "rows": self.rows,
                "notes": self.notes, "problems": self.problems}


def work(jobs, binary, mode, options, report, deadline):
    world = World(binary)
    try:
        while True:
            try:
                method, one, left = jobs.get_nowait()
            except queue.Empty:
                return
            if not one.is_available(world):
                with report.lock:
                    report.notes.append(f"{one.name}: not in this version")
                continue
            stop_at = None
            if deadline:
                # What is left of the time, shared fairly by what is left to do, two at a time.
                stop_at = time.time() + max(1.0, 3 * (deadline - time.time()) / max(1, left))
            try:
                if method == "power":
                    result = power.cut_power(world, one, mode["images"], options.seed, stop_at, say)
                else:
                    every = options.every or mode["every_of_runs" if one.is_slow else "every"]
                    result = sweep.sweep(world, one, method, every, options.seed, stop_at, say, options.at)
            except Exception as error:
                result = sweep.Result()
                result.problems.append({"method": method, "operation": one.name, "at": 0,
                                        "problem": f"{type(error).__name__}: {error}"})
                say(f"PROBLEM {method}, {one.name}: {error}")
            report.add(method, one.name, result)
    finally:
        world.close()


def main():
    parser = argparse.ArgumentParser(prog="./faults", description=__doc__)
    parser.add_argument("method", nargs="?", choices=[*SWEEPS, *others.METHODS], help="only this method")
    parser.add_argument("operation", nargs="?", default="", help="only operations whose name has these words")
    parser.add_argument("--every", type=int, help="hit every N-th system call only")
    parser.add_argument("--at", metavar="CALL:N[:ERROR]", help="hit this system call only, such as fcntl:121:ENOLCK")
    parser.add_argument("--seed", default="1", help="which of the random choices to make [default: 1]")
    parser.add_argument("--binary", type=pathlib.Path, help="the program to test [default: build a release]")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--short", action="store_const", const="short", dest="mode", help="two minutes, for ./test")
    parser.add_argument("--sample", action="store_const", const="sample", dest="mode", help="about 15 minutes")
    parser.add_argument("--seconds", type=int, help="stop early: share this time among the operations")
    parser.add_argument("--write", action="store_true",
                        help="write docs/reliability.json and the table of its page; with a method, only its rows")
    parser.add_argument("--printed", action="append", default=[], metavar="METHOD=FILE",
                        help="do not run this long method: read what it printed before, with a line `rc CODE`")
    options = parser.parse_args()
    mode_name = options.mode or "full"
    printed = dict(one.split("=", 1) for one in options.printed)
    mode = MODES[mode_name]

    missing = list(complete.problems([one.name for one in all_operations()]))
    for problem in missing:
        say(f"PROBLEM {problem}")
    if missing:
        return 1
    why = cannot_trace()
    if why:
        say(f"!! SKIPPED the fault sweeps: {why}")
        return 77
    binary = (options.binary or build(mode_name)).resolve()
    # A copy, since the original may be rebuilt meanwhile; without its debug information it starts faster.
    directory = pathlib.Path(tempfile.mkdtemp(prefix="steadfast-faults-", dir=scratch()))
    program = directory / "steadfast"
    shutil.copy2(binary, program)
    subprocess.run(["strip", program], capture_output=True)

    report = Report(mode_name, options.seed)
    seconds = options.seconds or mode["seconds"]
    methods = [options.method] if options.method else [*SWEEPS, *others.METHODS]
    jobs, wanted = queue.Queue(), []
    for method in SWEEPS:
        if method in methods:
            wanted += [(method, one) for one in operations(method, options.operation, mode_name)]
    # Long ones first, so that two workers end together.
    wanted.sort(key=lambda pair: (not pair[1].is_slow, pair[1].with_children))
    for number, (method, one) in enumerate(wanted):
        jobs.put((method, one, len(wanted) - number))
    others_wanted = [method for method in methods if method in others.METHODS]
    share = 0.75 if others_wanted and wanted else 1
    deadline = time.time() + seconds * share if seconds else None
    threads = [threading.Thread(target=work, args=(jobs, program, mode, options, report, deadline)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for method in others_wanted:
        others.run(method, program, mode_name, options.seed, report, say, printed.get(method))
    shutil.rmtree(directory)

    value = report.value(binary)
    if options.write:
        page.write(value, is_part=bool(options.method))
    print(json.dumps(value, indent=1) if options.json else page.table(value))
    for found in report.problems:
        say(f"PROBLEM {found['method']}, {found.get('operation', '')}: {found['problem'][:300]}")
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
