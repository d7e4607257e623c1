"""Stands in for the terminal of a client, `claude` or `codex`, in the documentation's examples.

`stand_in.py serve HOST` is the client: it starts a session and calls hooks as that client does, until its stdin closes.
`stand_in.py type HOST` sends it the lines of stdin that begin with `> ` and checks that each answer has the lines below it.
A word in capitals that is a variable of the page, such as GOAL, stands for its value. `/exit` ends the session.
"""
import json
import os
import re
import socket
import subprocess
import sys
import uuid
from pathlib import Path


class Claude:
    """Claude Code: the session begins with the client."""

    session = str(uuid.uuid5(uuid.NAMESPACE_DNS, "docs"))
    transcript = Path(os.environ["HOME"]) / f".claude/projects/project/{session}.jsonl"

    def hook(self, event):
        """Calls the hook, with a socket as its stdin."""
        ours, theirs = socket.socketpair()
        call = {"session_id": self.session, "transcript_path": str(self.transcript), "cwd": os.getcwd(), **event}
        environment = {**os.environ, "CLAUDE_PROJECT_DIR": os.getcwd(), "CLAUDE_CODE_ENTRYPOINT": "cli"}
        child = subprocess.Popen(["steadfast", "hook", "claude"], stdin=theirs, stdout=subprocess.PIPE, env=environment,
                                 start_new_session=True)
        theirs.close()
        ours.sendall(json.dumps(call).encode())
        ours.close()
        return read_reply(child.communicate()[0])

    def start(self):
        self.transcript.parent.mkdir(parents=True)
        self.transcript.touch()
        self.hook({"hook_event_name": "SessionStart", "source": "startup"})

    def type(self, typed):
        if typed.startswith("/"):
            name, _, arguments = typed[1:].partition(" ")
            return self.hook({"hook_event_name": "UserPromptExpansion", "expansion_type": "slash_command",
                              "command_name": name, "command_args": arguments, "command_source": "userSettings",
                              "prompt": typed})
        return self.hook({"hook_event_name": "UserPromptSubmit", "prompt": typed})

    def end(self):
        self.hook({"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"})


class Codex:
    """Codex: the session begins with the first line that is typed, so the page can set Codex up before."""

    session = str(uuid.uuid5(uuid.NAMESPACE_DNS, "docs of codex"))
    folder = Path(os.environ["HOME"]) / ".codex"
    rollout = folder / f"sessions/2026/11/15/rollout-2026-11-15T08-00-00-{session}.jsonl"
    is_open = False

    def start(self):
        pass

    def hook(self, event):
        """Calls the command that `steadfast setup codex` wrote, with pipes that were opened in a row."""
        hooks = json.loads((self.folder / "hooks.json").read_text())["hooks"]
        command = hooks[event["hook_event_name"]][0]["hooks"][0]["command"]
        call = {"session_id": self.session, "transcript_path": str(self.rollout), "cwd": os.getcwd(),
                "model": "gpt-5.2-codex", "permission_mode": "default", **event}
        (stdin, ours), (theirs, stdout) = two_pipes()
        child = subprocess.Popen(["sh", "-c", command], stdin=stdin, stdout=stdout, start_new_session=True)
        os.close(stdin)
        os.close(stdout)
        os.write(ours, json.dumps(call).encode())
        os.close(ours)
        with os.fdopen(theirs, "rb") as stream:
            said = stream.read()
        child.wait()
        return read_reply(said)

    def type(self, typed):
        if not self.is_open:
            self.begin()
        # Each line is typed at an idle prompt: a turn of its own.
        return self.hook({"hook_event_name": "UserPromptSubmit", "turn_id": str(uuid.uuid4()), "prompt": typed})

    def begin(self):
        self.rollout.parent.mkdir(parents=True, exist_ok=True)
        meta = {"id": self.session, "session_id": self.session, "cwd": os.getcwd(), "source": "cli"}
        record = {"timestamp": "2026-11-15T08:00:00.000Z", "ordinal": 0, "type": "session_meta", "payload": meta}
        self.rollout.write_text(json.dumps(record) + "\n")
        self.hook({"hook_event_name": "SessionStart", "source": "startup"})
        self.is_open = True

    def end(self):
        self.hook({"hook_event_name": "SessionEnd", "reason": "other"})
        self.is_open = False


CLIENTS = {"claude": Claude, "codex": Codex}


def address(host):
    return str(Path(os.environ["SANDBOX"]) / f"{host}.socket")


def two_pipes():
    """Pipes whose numbers follow each other, as when no other process opened one in between."""
    while True:
        pipes = [os.pipe(), os.pipe()]
        first, second = (os.fstat(reader).st_ino for reader, _ in pipes)
        if second == first + 1 and first % 1024 not in (0, 1023):
            return pipes
        for end in pipes[0] + pipes[1]:
            os.close(end)


def read_reply(said):
    return json.loads(said) if said.strip() else {}


def answer(client, typed):
    """What a person reads after typing a line, and what the model is given to say."""
    if typed == "/exit":
        client.end()
        return ""
    reply = client.type(typed)
    for_model = reply.get("hookSpecificOutput", {}).get("additionalContext")
    texts = [reply.get("reason"), reply.get("systemMessage"), for_model]
    return "\n".join(text for text in texts if text)


def serve(host):
    client = CLIENTS[host]()
    client.start()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address(host))
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
            stream.write(answer(client, json.loads(stream.readline())))


def with_values(text):
    """The text with the values of the page's variables."""
    return re.sub(r"\b[A-Z]{2,}\b", lambda word: os.environ.get(word[0], word[0]), text)


def type_all(host):
    turns = []
    for line in sys.stdin.read().splitlines():
        if line.startswith("> "):
            turns.append((with_values(line[2:]), []))
        elif line.strip() and "…" not in line:
            turns[-1][1].append(with_values(line.strip()))
    for typed, expected in turns:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(address(host))
        with connection, connection.makefile("rw") as stream:
            stream.write(json.dumps(typed) + "\n")
            stream.flush()
            said = stream.read()
        print(f"> {typed}\n{said}")
        for line in expected:
            if line not in said:
                sys.exit(f"the answer has no line: {line}")


if __name__ == "__main__":
    {"serve": serve, "type": type_all}[sys.argv[1]](sys.argv[2])
