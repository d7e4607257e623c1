#!/usr/bin/env python3
"""Measures the cost of session memory in hooks (`./bench memory`). Numbers are printed, never asserted.

Each hook call is a separate process with its own input, so that every call stores something new. The session has the
maximum number of events, so that each new event evicts another. CPU time is user + system from `wait4`, wall time is until
the process has ended; both are compared with an empty process (`true`) in the same run. This script is the client: hooks
believe only the process that started them, with the environment that it was started with itself.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STEADFAST, RUNS = sys.argv[1], int(sys.argv[2])
ONLY_GOAL = sys.argv[3:] == ["goal"]
EVENTS = 1_000
GOAL = "Keep the lighthouse burning"

# Medians on the same machine on another day: https://github.com/mksglu/context-mode 1.0.169 on Node 22, 600 rows.
REFERENCE = {
    "claude, Bash with 8 KB, a commit": (110.4, 106),
    "claude, Edit": (102.2, 101),
    "claude, Read of 40 KB": (115.1, 121),
    "claude, prompt": (100.7, 101),
    "claude, SessionStart (compact)": (103.3, 105),
    "codex, Bash with 8 KB, a commit": (100.9, 101),
    "codex, prompt": (86.1, 91),
    "codex, SessionStart (compact)": (105.3, None),
}

if "BENCH_WORK" not in os.environ:
    os.environ["BENCH_WORK"] = tempfile.mkdtemp(prefix="steadfast-bench-")
work = Path(os.environ["BENCH_WORK"])
environment = {
    "PATH": os.environ["PATH"], "HOME": str(work), "STEADFAST_HOME": str(work / "home"),
    "CLAUDE_CONFIG_DIR": str(work / "claude"), "CODEX_HOME": str(work / "codex"),
}
if os.environ.get("STEADFAST_HOME") != environment["STEADFAST_HOME"]:
    kept = {name: os.environ[name] for name in ("BENCH_WORK", "BENCH_CALLGRIND") if name in os.environ}
    os.execve(sys.executable, [sys.executable, *sys.argv], {**environment, **kept})
output = "".join(f"src/module_{at}.rs:{at}: a line of what a command prints, as long as they are\n" for at in range(120))[:8_000]
text = "".join(f"    let value_{at} = compute({at}); // and a word about it\n" for at in range(900))[:40_000]


def claude(event, **fields):
    return {"session_id": "claude-session", "transcript_path": str(work / "claude.jsonl"), "cwd": str(work), "hook_event_name": event, **fields}


def codex(event, **fields):
    thread = "01a1de4f-1a32-7830-a4c2-a007e02dedb9"
    return {"session_id": thread, "turn_id": "t", "transcript_path": str(work / f"codex/sessions/2026/11/15/rollout-2026-11-15T08-24-48-{thread}.jsonl"),
            "cwd": str(work), "hook_event_name": event, "model": "m", "permission_mode": "default", **fields}


def shell(host, number, command):
    if host is claude:
        return claude("PostToolUse", tool_name="Bash", tool_use_id=f"t{number}", tool_input={"command": command, "description": "Work"},
                      tool_response={"stdout": output, "stderr": "", "interrupted": False, "isImage": False})
    return codex("PostToolUse", tool_name="Bash", tool_use_id=f"t{number}", tool_input={"command": command}, tool_response=output)


# Each measured call: its name, the host, and its input as a function of a number.
CALLS = [
    ("claude, Bash with 8 KB, a commit", "claude", lambda n: shell(claude, n, f"git commit -m 'Change number {n}'")),
    ("claude, Bash with 8 KB, nothing new", "claude", lambda n: shell(claude, n, "cargo test")),
    ("claude, Bash with 8 KB that failed", "claude", lambda n: claude(
        "PostToolUseFailure", tool_name="Bash", tool_use_id=f"t{n}", tool_input={"command": f"make target{n}"}, error=f"Exit code 2\n{output}\nmake: *** [all] Error {n}")),
    ("claude, Edit", "claude", lambda n: claude(
        "PostToolUse", tool_name="Edit", tool_use_id=f"t{n}", tool_input={"file_path": f"{work}/src/edit_{n}.rs", "old_string": "a", "new_string": "b"},
        tool_response={"filePath": f"{work}/src/edit_{n}.rs", "oldString": "a", "newString": "b", "originalFile": text[:8_000], "structuredPatch": []})),
    ("claude, Read of 40 KB", "claude", lambda n: claude(
        "PostToolUse", tool_name="Read", tool_use_id=f"t{n}", tool_input={"file_path": f"{work}/src/read_{n}.rs"},
        tool_response={"type": "text", "file": {"filePath": f"{work}/src/read_{n}.rs", "content": text, "numLines": 900, "startLine": 1, "totalLines": 900}})),
    ("claude, prompt", "claude", lambda n: claude("UserPromptSubmit", prompt=f"Please look at request {n}: the parser drops the last token of a line when it ends in a tab, and the test for it is missing too.")),
    ("claude, SessionStart (compact)", "claude", lambda n: claude("SessionStart", source="compact")),
    ("codex, Bash with 8 KB, a commit", "codex", lambda n: shell(codex, n, f"git commit -m 'Change number {n}'")),
    ("codex, apply_patch", "codex", lambda n: codex(
        "PostToolUse", tool_name="apply_patch", tool_use_id=f"t{n}", tool_input={"command": f"*** Begin Patch\n*** Update File: src/patch_{n}.rs\n@@\n-a\n+b\n*** End Patch"},
        tool_response="Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\nM x\n")),
    ("codex, prompt", "codex", lambda n: codex("UserPromptSubmit", prompt=f"Please look at request {n}: the parser drops the last token of a line when it ends in a tab, and the test for it is missing too.")),
    ("codex, SessionStart (compact)", "codex", lambda n: codex("SessionStart", source="compact")),
]


def run(command, given=None):
    """Returns the CPU and wall milliseconds of one process."""
    before = time.monotonic()
    stdin = subprocess.DEVNULL if given is None else subprocess.PIPE
    child = subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    if given is not None:
        child.stdin.write(json.dumps(given).encode())
        child.stdin.close()
    child.stdout.read()
    _, status, use = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if status:
        sys.exit(f"error: {command} ended with {child.returncode}")
    return (use.ru_utime + use.ru_stime) * 1000, (time.monotonic() - before) * 1000


def hook(host, given):
    return run([STEADFAST, "hook", host], given)


def medians(measured):
    return [statistics.median(part) for part in zip(*(measured(number) for number in numbers(RUNS)))]


count = 0


def numbers(most):
    """Yields new numbers: an input that repeats the last one is not stored again."""
    global count
    for _ in range(most):
        count += 1
        yield count


def transcripts(megabytes, prompts=None):
    """Writes session files in the form of the clients, with these prompts at the beginning."""
    with open(work / "claude.jsonl", "w") as out:
        written, number = out.write(json.dumps(prompts["claude"]) + "\n") if prompts else 0, 0
        while written < megabytes * 1e6:
            number += 1
            line = {"parentUuid": f"u{number - 1}", "isSidechain": False, "type": "user", "uuid": f"u{number}", "timestamp": "2026-11-15T10:00:01.000Z",
                    "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{number}", "content": output[:3_500]}]}}
            written += out.write(json.dumps(line, separators=(",", ":")) + "\n")
    path = Path(codex("x")["transcript_path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as out:
        written, number = out.write('{"timestamp":"2026-11-15T08:24:48.000Z","type":"session_meta","payload":{"id":"x"}}\n'), 0
        if prompts:
            out.write(json.dumps(prompts["codex"], separators=(",", ":")) + "\n")
        while written < megabytes * 1e6:
            number += 1
            line = {"timestamp": "2026-11-15T10:00:01.000Z", "type": "response_item",
                    "payload": {"type": "function_call_output", "call_id": f"t{number}", "output": output[:3_500]}}
            written += out.write(json.dumps(line, separators=(",", ":")) + "\n")


def seed():
    for host, make in (("claude", claude), ("codex", codex)):
        hook(host, make("SessionStart", source="startup"))
        hook(host, make("UserPromptSubmit", prompt=f"goal: {GOAL}"))
    if os.path.exists(work / "home/goals.db"):
        # In Codex the marker starts a goal, which would be charged at each call; measure only memory.
        hook("codex", codex("UserPromptSubmit", prompt="$goal-pause"))
    for _ in range(EVENTS // 6 + 20):
        for name, host, given in CALLS:
            if "SessionStart" not in name and "nothing" not in name:
                hook(host, given(next(numbers(1))))


def report(name, cpu_ms, wall_ms, floor):
    theirs = REFERENCE.get(name)
    beside = f"   context-mode {theirs[0]:6.1f} wall" + (f" {theirs[1]:5.0f} CPU" if theirs[1] else "") if theirs else ""
    ratios = f"{cpu_ms / floor[0]:5.1f} x {wall_ms / floor[1]:5.1f} x" if floor else " " * 15
    print(f"{name:<40} {cpu_ms:7.2f} ms CPU {wall_ms:7.2f} ms wall {ratios}{beside}", flush=True)


def table(title):
    print(f"\n{title}: CPU, wall, both relative to `true`")
    floor = medians(lambda _: run(["true"]))
    report("true", *floor, None)
    report("steadfast --version", *medians(lambda _: run([STEADFAST, "--version"])), floor)
    for name, host, given in CALLS:
        report(name, *medians(lambda n: hook(host, given(n))), floor)


def instructions():
    if not shutil.which("valgrind"):
        return
    print("\ninstructions (callgrind)")
    for name, host, given in CALLS:
        line = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={work}/callgrind.out", f"--log-file={work}/callgrind.log"]
        run([*line, STEADFAST, "hook", host], given(next(numbers(1))))
        log = (work / "callgrind.log").read_text()
        total = next((line.split()[-1] for line in log.splitlines() if "Collected" in line), "?")
        print(f"{name:<40} {total:>14}", flush=True)
        if "BENCH_CALLGRIND" in os.environ:
            shutil.copy(work / "callgrind.out", f"{os.environ['BENCH_CALLGRIND']}/{name.replace(' ', '_')}.out")


def search_for_goal():
    """Measures the search for the goal in the session's file, from its end."""
    print("\nSessionStart (resume), CPU: is the goal in the session's file?")
    starts = {"claude": claude("SessionStart", source="resume"), "codex": codex("SessionStart", source="resume")}
    files = {host: Path(given["transcript_path"]) for host, given in starts.items()}

    def resumed(what, small=None):
        measured = {}
        for host, given in starts.items():
            measured[host] = medians(lambda _: hook(host, given))[0]
            more = f" {measured[host] - small[host]:+7.2f} ms" if small else ""
            print(f"{f'{host}, {what}':<40} {measured[host]:7.2f} ms{more}", flush=True)
        return measured

    transcripts(0.01)
    small = resumed("10 KB")
    transcripts(100)
    resumed("100 MB, nowhere", small)
    prompts = {
        "claude": {"parentUuid": None, "isSidechain": False, "type": "user", "uuid": "u0", "message": {"role": "user", "content": f"goal: {GOAL}"}},
        "codex": {"timestamp": "2026-11-15T10:00:00.000Z", "type": "response_item",
                  "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"goal: {GOAL}"}]}},
    }
    transcripts(7, prompts)
    resumed("7 MB after it was stated", small)
    # The words of the goal in every line, but no statement of it, as with a short goal.
    transcripts(100)
    for path in files.values():
        subprocess.run(["sed", "-i", f"s/a line of what/{GOAL}/", str(path)], check=True)
    resumed("100 MB, its words in every line", small)


def serve():
    """Starts the session's tool server, which keeps the store open."""
    server = subprocess.Popen([STEADFAST, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}).encode() + b"\n")
    server.stdin.flush()
    server.stdout.readline()
    return server


def main():
    transcripts(1)
    seed()
    shown = subprocess.run([STEADFAST, "session", "show", "claude-session", "--json"], capture_output=True, env=environment, check=True)
    events = sum(json.loads(shown.stdout)["events"].values())
    load = open("/proc/loadavg").read().split()[0] if os.path.exists("/proc/loadavg") else "?"
    size = (work / "home/goals.db").stat().st_size / 1e6
    print(f"median of {RUNS} calls, {os.cpu_count()} cores, load {load}; {events} events stored for the session, store size {size:.1f} MB")
    if not ONLY_GOAL:
        table("alone")
    server = serve()
    if not ONLY_GOAL:
        table("while a tool server has the store open")
        instructions()
    search_for_goal()
    server.stdin.close()
    server.wait()


try:
    main()
finally:
    shutil.rmtree(work, ignore_errors=True)
