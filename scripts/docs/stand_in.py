"""Stands in for Claude Code's terminal in the documentation's examples.

`stand_in.py serve` is the client: it starts a session and calls hooks as Claude Code does, until its stdin closes.
`stand_in.py type` sends it the lines of stdin that begin with `> ` and checks that each answer has the lines below it.
"""
import json
import os
import socket
import subprocess
import sys
import uuid
from pathlib import Path

ADDRESS = str(Path(os.environ["SANDBOX"]) / "client.socket")
SESSION = str(uuid.uuid5(uuid.NAMESPACE_DNS, "docs"))
TRANSCRIPT = Path(os.environ["HOME"]) / f".claude/projects/project/{SESSION}.jsonl"


def hook(event):
    """Calls the hook, with a socket as its stdin."""
    ours, theirs = socket.socketpair()
    call = {"session_id": SESSION, "transcript_path": str(TRANSCRIPT), "cwd": os.getcwd(), **event}
    environment = {**os.environ, "CLAUDE_PROJECT_DIR": os.getcwd(), "CLAUDE_CODE_ENTRYPOINT": "cli"}
    child = subprocess.Popen(["steadfast", "hook", "claude"], stdin=theirs, stdout=subprocess.PIPE, env=environment,
                             start_new_session=True)
    theirs.close()
    ours.sendall(json.dumps(call).encode())
    ours.close()
    said = child.communicate()[0].decode()
    return json.loads(said) if said.strip() else {}


def answer(typed):
    """What a person reads after typing a line, and what the model is given to say."""
    if typed.startswith("/"):
        name, _, arguments = typed[1:].partition(" ")
        event = {"hook_event_name": "UserPromptExpansion", "expansion_type": "slash_command", "command_name": name,
                 "command_args": arguments, "command_source": "userSettings", "prompt": typed}
    else:
        event = {"hook_event_name": "UserPromptSubmit", "prompt": typed}
    reply = hook(event)
    for_model = reply.get("hookSpecificOutput", {}).get("additionalContext")
    texts = [reply.get("reason"), reply.get("systemMessage"), for_model]
    return "\n".join(text for text in texts if text)


def serve():
    TRANSCRIPT.parent.mkdir(parents=True)
    TRANSCRIPT.touch()
    hook({"hook_event_name": "SessionStart", "source": "startup"})
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(ADDRESS)
    listener.listen()
    print("ready", flush=True)
    if os.fork() == 0:
        # Ends the client when the test does.
        sys.stdin.read()
        os.kill(os.getppid(), 15)
        os._exit(0)
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rw") as stream:
            stream.write(answer(json.loads(stream.readline())))


def type_all():
    turns = []
    for line in sys.stdin.read().splitlines():
        if line.startswith("> "):
            turns.append((line[2:], []))
        elif line.strip() and "…" not in line:
            turns[-1][1].append(line.strip())
    for typed, expected in turns:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(ADDRESS)
        with connection, connection.makefile("rw") as stream:
            stream.write(json.dumps(typed) + "\n")
            stream.flush()
            said = stream.read()
        print(f"> {typed}\n{said}")
        for line in expected:
            if line not in said:
                sys.exit(f"the answer has no line: {line}")


if __name__ == "__main__":
    serve() if sys.argv[1] == "serve" else type_all()
