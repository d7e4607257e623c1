#!/usr/bin/env python3
"""Many runs at once, and one long run. Prints; asserts only that every run completed.

usage: bench_runs.py STEADFAST [LOOPS] [ITERATIONS]
"""

import json
import os
import subprocess
import sys
import tempfile
import time


def main():
    steadfast = os.path.abspath(sys.argv[1])
    loops = int(sys.argv[2]) if len(sys.argv) > 2 else 200
    iterations = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000
    with tempfile.TemporaryDirectory(prefix="steadfast-bench-") as root:
        bench = Bench(steadfast, root)
        bench.at_once(loops)
        bench.long(iterations)


class Bench:
    def __init__(self, steadfast, root):
        self.steadfast, self.project = steadfast, os.path.join(root, "project")
        home = os.path.join(root, "home")
        self.environment = {"PATH": os.environ["PATH"], "HOME": root, "STEADFAST_HOME": home, "STEADFAST_NO_WATCH": "1"}
        os.makedirs(self.project)
        kind = os.path.join(home, "loops", "count")
        os.makedirs(kind)
        with open(os.path.join(home, "config.toml"), "w") as file:
            file.write("[notify]\ndesktop = false\n")
        with open(os.path.join(kind, "loop.yaml"), "w") as file:
            file.write("delay: 0\n")
        with open(os.path.join(kind, "prompt.md"), "w") as file:
            file.write("${ITERATION}\n")

    def start(self, name, most, agent):
        command = [self.steadfast, "loop", "run", "count", name, "--max", str(most), "--agent", agent]
        return subprocess.Popen(command, cwd=self.project, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def state(self, name):
        with open(os.path.join(self.project, ".claude", f"loop-state-{name}.json")) as file:
            return json.load(file)

    def at_once(self, count):
        began = time.monotonic()
        engines = [self.start(f"many-{number}", 5, "sleep 1") for number in range(count)]
        resident, proportional = [], []
        while any(engine.poll() is None for engine in engines):
            sizes = [size for engine in engines if engine.poll() is None for size in [memory(engine.pid)] if size]
            if len(sizes) > len(resident):
                resident, proportional = [size[0] for size in sizes], [size[1] for size in sizes]
            time.sleep(1)
        took = time.monotonic() - began
        failed = [engine.returncode for engine in engines if engine.returncode]
        done = sum(self.state(f"many-{number}")["status"] == "completed" for number in range(count))
        print(f"{count} loops of 5 iterations of 1 s at once: {done} completed, {len(failed)} failed, {took:.0f} s")
        if resident:
            print(f"memory of an engine ({len(resident)} at once): resident {mean(resident):.1f} MB, "
                  f"its share {mean(proportional):.1f} MB, all together {sum(proportional):.0f} MB")
        if done != count:
            sys.exit(f"error: {count - done} loops did not complete")

    def long(self, iterations):
        engine = self.start("long", iterations, "true")
        began = last = time.monotonic()
        step, seen = max(1, iterations // 10), 0
        print(f"one loop of {iterations} iterations, time of each {step}:")
        while engine.poll() is None:
            time.sleep(0.2)
            try:
                reached = self.state("long")["history"][-1]["iteration"]
            except (OSError, ValueError, KeyError, IndexError):
                continue
            while reached >= seen + step:
                seen += step
                now = time.monotonic()
                size = memory(engine.pid) or (0, 0)
                print(f"  {seen:>6}: {now - last:6.1f} s  resident {size[0]:.1f} MB")
                last = now
        print(f"  all: {time.monotonic() - began:.1f} s, exit code {engine.returncode}")
        if engine.returncode:
            sys.exit("error: the long loop did not complete")


def memory(pid):
    """Resident and proportional size in MB; None for a process that is gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            sizes = dict(line.split(":", 1) for line in file if ":" in line and "kB" in line)
    except (OSError, ProcessLookupError):
        return None
    kilobytes = lambda name: int(sizes.get(name, "0 kB").split()[0])
    return (kilobytes("Rss") / 1024, kilobytes("Pss") / 1024) if sizes else None


def mean(sizes):
    return sum(sizes) / len(sizes)


main()
