#!/usr/bin/env python3
"""Damages what Steadfast keeps, and looks at what its commands and hooks then say.

    scripts/faults/corruption.py --binary target/release/steadfast --trials 2000 --seed 1

A world is made once: goals with a known ledger, a run with its folder and public files, a backup, a log that was not
written back. Each trial copies it, damages one file at one place (a flipped bit, a lost sector or page, a cut end), and
calls goal history, goal status, the Stop and SessionStart hooks, loop status, loop resume, doctor, usage and db recover.
Every call must end within its time and must not panic. It must give the right data or report the damage. After a
recovery all goals of the backup must be there. SQLite has no checksums, so a changed value inside a cell can pass
unseen; such trials are counted apart. The result is one JSON object on stdout; the exit code is 1 if anything is wrong.
"""
import argparse, collections, json, os, random, shutil, sqlite3, subprocess, sys, tempfile, time

CLIENT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/steadfast/tests/it/client.py")
LIMIT = 60
PANIC = ("internal error", "panicked at", "RUST_BACKTRACE")


class World:
    def __init__(self, binary, root):
        self.binary, self.root = binary, root
        self.home, self.project = os.path.join(root, "home"), os.path.join(root, "project")
        self.store = os.path.join(self.home, "goals.db")
        self.environment = {"PATH": os.environ["PATH"], "HOME": os.path.join(root, "user"), "TZ": "UTC",
                            "STEADFAST_HOME": self.home, "STEADFAST_NO_WATCH": "1"}

    def run(self, *arguments, stdin=b""):
        command = [self.binary, *arguments]
        if arguments[0] == "hook":
            command = [sys.executable, CLIENT, "one", *command]
        return subprocess.run(command, input=stdin, capture_output=True, timeout=LIMIT, env=self.environment,
                              cwd=self.project)

    def hook(self, session, **event):
        event = {"session_id": session, "cwd": self.project,
                 "transcript_path": os.path.join(self.root, session + ".jsonl"), **event}
        return self.run("hook", "claude", stdin=json.dumps(event).encode())

    def says(self, session, number):
        line = {"type": "assistant", "uuid": f"u-{session}-{number}", "requestId": f"r-{session}-{number}",
                "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.999Z", time.gmtime()),
                "message": {"id": f"m-{session}-{number}", "role": "assistant", "model": "claude-opus-4-8",
                            "type": "message", "content": [{"type": "text", "text": f"step {number}"}],
                            "usage": {"input_tokens": 97, "output_tokens": 2, "cache_creation_input_tokens": 1,
                                      "cache_read_input_tokens": 9}}}
        with open(os.path.join(self.root, session + ".jsonl"), "a") as file:
            file.write(json.dumps(line) + "\n")

    def stop(self, session):
        return self.hook(session, hook_event_name="Stop", stop_hook_active=True, last_assistant_message="step",
                         background_tasks=[])

    def start(self, session):
        return self.hook(session, hook_event_name="SessionStart", source="startup")

    def history(self):
        return self.run("goal", "history", "--all", "--format=json")


def must(done):
    if done.returncode != 0:
        raise SystemExit(f"the world cannot be made: {done.args}: {done.stdout!r} {done.stderr!r}")
    return done


def goals_of(output):
    goals = json.loads(output)["goals"]
    return {goal["goal_id"]: (goal["session_id"], goal["objective"], goal["tokens_used"]) for goal in goals}


def build(world):
    for directory in (world.project, os.path.join(world.root, "user/.claude")):
        os.makedirs(directory, exist_ok=True)
    for session in ("s1", "s2", "s3", "s4"):
        must(world.start(session))
        must(world.run("goal", "start", f"Objective of {session}: " + "all tests pass and " * 20, "--session", session,
                       "--budget", "5M"))
        for number in range(6):
            world.says(session, number)
            must(world.stop(session))
    must(world.run("goal", "abandon", "--session", "s4"))
    agent = os.path.join(world.root, "agent.sh")
    with open(agent, "w") as file:
        file.write("#!/bin/sh\ncat >/dev/null\necho did some work\n")
    os.chmod(agent, 0o755)
    folder = os.path.join(world.home, "loops/small")
    os.makedirs(folder)
    with open(os.path.join(folder, "loop.yaml"), "w") as file:
        file.write("name: small\ndelay: 0\ncompletion: fixed-n\nruns: 3\n")
    with open(os.path.join(folder, "prompt.md"), "w") as file:
        file.write("Do something, ${SESSION} ${ITERATION}.\n")
    loop = world.run("loop", "run", "small", "small", "--agent", agent, "--trust")
    world.has_loop = loop.returncode == 0
    if not world.has_loop:
        print(f"no run in this world: {loop.stderr.decode(errors='replace').strip()}", file=sys.stderr)
    with open(os.path.join(world.home, "config.toml"), "w") as file:
        file.write("[goal]\n[retention]\nbackups = 4\n")
    must(world.run("usage", "daily", "--json"))
    must(world.run("db", "backup"))
    world.says("s1", 7)
    must(world.stop("s1"))
    world.truth = goals_of(must(world.history()).stdout)
    # A killed process leaves its log: the last change is only there.
    reader = sqlite3.connect(world.store)
    reader.execute("SELECT count(*) FROM goals").fetchone()
    world.truths = [world.truth]
    for session in ("s5", "s6", "s7", "s8", "s9"):
        must(world.run("goal", "start", "A goal that only the log has", "--session", session))
        world.truths.append(goals_of(must(world.history()).stdout))
    saved = {}
    for suffix in ("", "-wal", "-shm"):
        with open(world.store + suffix, "rb") as file:
            saved[suffix] = file.read()
    world.truth_with_log = goals_of(must(world.history()).stdout)
    reader.close()
    for suffix, content in saved.items():
        with open(world.store + suffix, "wb") as file:
            file.write(content)


def files_of(world):
    found = []
    for top in (world.home, os.path.join(world.project, ".claude")):
        for directory, _, names in os.walk(top):
            found += [os.path.join(directory, name) for name in names]
    return sorted(path for path in found if os.path.isfile(path) and os.path.getsize(path) > 0)


def damage(path, kind, dice):
    with open(path, "rb") as file:
        content = bytearray(file.read())
    at = dice.randrange(len(content))
    if kind == "flip":
        content[at] ^= 1 << dice.randrange(8)
    elif kind == "sector":
        at -= at % 512
        content[at:at + 512] = bytes(len(content[at:at + 512]))
    elif kind == "page":
        at -= at % 4096
        content[at:at + 4096] = bytes([0xA5]) * len(content[at:at + 4096])
    else:
        del content[at:]
    with open(path, "wb") as file:
        file.write(content)
    return at


def trial(template, number, seed, counts, wrong):
    dice = random.Random(f"{seed}/{number}")
    # Paths are in the store, so each trial works in the same place.
    world = World(template.binary, template.root)
    for part in ("home", "project"):
        shutil.rmtree(os.path.join(world.root, part), ignore_errors=True)
        shutil.copytree(os.path.join(template.saved, part), os.path.join(world.root, part), symlinks=True)
    everything = files_of(world)
    databases = [path for path in everything if path.startswith(world.store) and "backups" not in path]
    path = dice.choice(databases if dice.random() < 0.6 else everything)
    kind = dice.choice(("flip", "flip", "sector", "page", "cut"))
    at = damage(path, kind, dice)
    name = os.path.relpath(path, world.root)
    about = f"trial {number}: {kind} at {at} of {name}"

    def fault(what, done=None):
        said = "" if done is None else f": {done.returncode} {done.stdout[-300:]!r} {done.stderr[-300:]!r}"
        wrong.append(f"{about}: {what}{said}")

    def call(what, run):
        counts["calls"] += 1
        try:
            done = run()
        except subprocess.TimeoutExpired:
            fault(f"{what} hangs")
            return None
        text = (done.stdout + done.stderr).decode(errors="replace")
        if any(word in text for word in PANIC) or done.returncode < 0 or done.returncode == 101:
            fault(f"{what} panics", done)
        return done

    kinds = {"goals.db": "database", "goals.db-wal": "log", "goals.db-shm": "index of the log"}
    group = kinds.get(os.path.basename(path), "backup" if "/backups/" in path else "other file")
    counts[f"{group}: trials"] += 1
    # First of all: the next command may write a damaged log back, as far as it can be read.
    checked = call("db check", lambda: world.run("db", "check"))
    named = checked is not None and checked.returncode == 4
    if checked is not None and checked.returncode not in (0, 2, 4):
        fault("db check", checked)
    done = call("goal history", world.history)
    if done is not None:
        if done.returncode == 4:
            counts[f"{group}: reported"] += 1
            if b"hint" not in done.stderr and b"hint" not in done.stdout:
                fault("no hint", done)
        elif done.returncode != 0:
            fault("goal history", done)
        else:
            found = goals_of(done.stdout)
            if found == template.truth_with_log:
                counts[f"{group}: right"] += 1
            elif group == "log" and found in template.truths and (
                    named or kind == "cut" or found in template.truths[-3:]):
                # A log that ends early, and damage in the last transactions, look like a crash. All else must be named.
                counts[f"log: last commits rolled back, {'named' if named else 'like a crash'}"] += 1
            elif named:
                counts[f"{group}: named by db check"] += 1
            elif group == "database" and kind in ("flip", "sector") and set(found) == set(template.truth_with_log):
                counts["undetected value flips"] += 1
            else:
                fault(f"wrong goals {found}")
    for what, run in (("Stop", lambda: world.stop("s1")), ("SessionStart", lambda: world.start("s2"))):
        done = call(what, run)
        if done is not None and (done.returncode != 0 or done.stderr):
            fault(f"{what} does not fail open", done)
    done = call("goal status", lambda: world.run("goal", "status", "--json", "--session", "s2"))
    if done is not None and done.returncode not in (0, 4) and not (done.returncode == 2 and kind in ("flip", "sector")):
        fault("goal status", done)
    if template.has_loop:
        for verb in ("status", "resume"):
            done = call(f"loop {verb}", lambda verb=verb: world.run("loop", verb, "small", "--json"))
            if done is not None and done.returncode not in (0, 2, 3, 4):
                fault(f"loop {verb}", done)
    if number % 10 == 0:
        for arguments in (("doctor", "--json"), ("usage", "daily", "--json")):
            done = call(arguments[0], lambda arguments=arguments: world.run(*arguments))
            if done is not None and done.returncode not in (0, 4):
                fault(arguments[0], done)
    before = open(world.store, "rb").read() if os.path.exists(world.store) else b""
    if dice.random() < 0.3:
        counts["recoveries killed"] += 1
        victim = subprocess.Popen([world.binary, "db", "recover"], env=world.environment, cwd=world.project,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(dice.random() * 0.2)
        victim.kill()
        victim.wait()
    done = call("db recover", lambda: world.run("db", "recover", "--json"))
    is_config = name == "home/config.toml"
    if done is not None and done.returncode != 0 and not is_config:
        fault("db recover", done)
    elif done is not None and not is_config:
        outcome = json.loads(done.stdout)["outcome"]
        counts[f"recovery: {outcome}"] += 1
        kept = [name for name in os.listdir(world.home) if ".corrupt-" in name or name == "goals.db"]
        if outcome != "not_needed" and group == "database" and before not in (
                open(os.path.join(world.home, name), "rb").read() for name in kept):
            # With a log, SQLite may have written it into the file before it met the damage.
            counts["damaged file changed by its log"] += 1
            if not os.path.exists(os.path.join(template.saved, "home/goals.db-wal")):
                fault("the damaged file is not kept")
        left = [name for name in os.listdir(world.home) if "recovery" in name]
        if left:
            fault(f"left behind: {left}")
        after = call("goal history after recovery", world.history)
        if after is not None and after.returncode != 0:
            fault("goal history after recovery", after)
        elif after is not None and outcome in ("rebuilt", "continued"):
            missing = set(template.truth) - set(goals_of(after.stdout))
            if missing:
                fault(f"goals are missing after recovery: {missing}")
    log = os.path.join(world.home, "log/hooks.log")
    if os.path.exists(log) and path != log and "internal error" in open(log, errors="replace").read():
        fault("the log has an internal error")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="repeat one trial")
    arguments = parser.parse_args()
    counts, wrong = collections.Counter(), []
    with tempfile.TemporaryDirectory(prefix="steadfast-corruption-") as root:
        template = World(os.path.abspath(arguments.binary), root)
        build(template)
        template.saved = os.path.join(root, "saved")
        os.mkdir(template.saved)
        for part in ("home", "project"):
            shutil.copytree(os.path.join(root, part), os.path.join(template.saved, part), symlinks=True)
        numbers = range(arguments.trials) if arguments.only is None else [arguments.only]
        for number in numbers:
            trial(template, number, arguments.seed, counts, wrong)
    result = {"trials": len(numbers), "damaged": len(numbers), "seed": arguments.seed, "counts": dict(sorted(counts.items())), "wrong": wrong}
    print(json.dumps(result, indent=1))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
