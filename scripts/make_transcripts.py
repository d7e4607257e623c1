#!/usr/bin/env python3
"""Writes a tree of session files as Claude Code keeps them, with the exact totals of the tokens in it.

    scripts/make_transcripts.py DIRECTORY --mb 500 --totals totals.json

Everything is invented, and the same seed writes the same tree. The files have what makes counting hard:

- one response is several lines, one per content block, with the same ids; early ones may have smaller numbers;
- a fork copies the lines of another session into a file of its own, under its own session id;
- subagents write files of their own below their session;
- responses through a gateway have no request id;
- errors of the service are lines of the model `<synthetic>`, with nulls where numbers are;
- compaction appends, and a crash leaves half a line at the end.
"""
import argparse
import json
import pathlib
import random
import string

MODELS = ("claude-opus-4-5-20251101", "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001")
KINDS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
START = 1_778_000_000


class Totals:
    """What a reader has to find: each response once, with its final numbers."""

    def __init__(self):
        self.models = {}

    def add(self, model, usage):
        sums = self.models.setdefault(model, dict.fromkeys((*KINDS, "responses"), 0))
        sums["responses"] += 1
        for kind in KINDS:
            sums[kind] += usage[kind]


class World:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        self.seconds = START
        self.bytes = self.files = self.lines = 0
        self.totals = Totals()
        letters = self.random.choices(string.ascii_lowercase + "     \n\"\\é", k=200_000)
        self.text = "".join(letters)

    def chance(self, rate):
        return self.random.random() < rate

    def id(self, prefix):
        return prefix + "".join(self.random.choices(string.ascii_letters + string.digits, k=20))

    def words(self, least, most):
        length = self.random.randint(least, most)
        begin = self.random.randrange(len(self.text) - length)
        return self.text[begin:begin + length]

    def tick(self):
        self.seconds += self.random.randint(1, 20)
        minutes, seconds = divmod(self.seconds - START, 60)
        hours, minutes = divmod(minutes, 60)
        days, hours = divmod(hours, 24)
        months, day = divmod(days, 28)
        return f"2026-{1 + months % 12:02}-{1 + day:02}T{hours:02}:{minutes:02}:{seconds:02}.000Z"


class File:
    """The file of a session or of a subagent."""

    def __init__(self, world, directory, project, session, agent=None):
        self.world, self.project, self.session, self.agent = world, project, session, agent
        name = pathlib.Path(session, "subagents", f"agent-{agent}.jsonl") if agent else f"{session}.jsonl"
        self.path = directory / name
        self.lines = []
        self.cached = world.random.randint(10_000, 30_000)
        self.model = world.random.choice(MODELS)
        self.is_gateway = world.chance(world.options.gateways)

    def add(self, kind, **fields):
        line = {"type": kind, "uuid": self.world.id(""), "timestamp": self.world.tick(), "cwd": self.project,
                "sessionId": self.session, "isSidechain": self.agent is not None, **fields}
        self.lines.append(line)

    def copy(self, lines):
        self.lines += [{**line, "sessionId": self.session} for line in lines]

    def user(self, content):
        self.add("user", message={"role": "user", "content": content})

    def response(self):
        world, pick = self.world, self.world.random
        created, output = pick.randint(0, 4_000), pick.randint(10, 2_500)
        usage = dict(zip(KINDS, (pick.randint(1, 20), output, created, self.cached)), service_tier="standard")
        self.cached += created + output
        world.totals.add(self.model, usage)
        tools = [world.id("toolu_") for _ in range(pick.choice((0, 1, 1, 1, 2, 3)))]
        blocks = [{"type": "thinking", "thinking": world.words(50, 800)}] if world.chance(0.4) else []
        blocks.append({"type": "text", "text": world.words(20, 1_000)})
        blocks += [{"type": "tool_use", "id": tool, "name": "Bash", "input": {"command": world.words(5, 300)}} for tool in tools]
        ids = {} if self.is_gateway else {"requestId": world.id("req_")}
        message = {"id": world.id("chatcmpl-" if self.is_gateway else "msg_"), "role": "assistant", "model": self.model}
        for number, block in enumerate(blocks, 1):
            shown = dict(usage)
            if world.options.early_numbers and number < len(blocks) and world.chance(0.5):
                shown["output_tokens"] = pick.randint(1, output)
            self.add("assistant", message={**message, "content": [block], "usage": shown}, **ids)
        for tool in tools:
            result = world.words(100, 100 + pick.choice((200, 800, 6_000)))
            self.add("user", message={"role": "user", "content": [{"type": "tool_result", "tool_use_id": tool, "content": result}]},
                     toolUseResult={"stdout": result, "stderr": ""})

    def odd_line(self):
        match self.world.random.randrange(4):
            case 0:
                nothing = {**dict.fromkeys(KINDS, 0), "service_tier": None, "iterations": None}
                self.add("assistant", isApiErrorMessage=True, message={
                    "id": self.world.id(""), "role": "assistant", "model": "<synthetic>", "usage": nothing,
                    "content": [{"type": "text", "text": "API Error: 529 Overloaded"}]})
            case 1:
                self.add("system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": self.cached})
                self.add("user", isCompactSummary=True, message={"role": "user", "content": self.world.words(2_000, 6_000)})
                self.cached = 20_000
            case 2:
                self.add("queue-operation", operation="enqueue", content=self.world.words(10, 80))
            case _:
                # The result of a subagent repeats usage that its own file has.
                self.add("user", toolUseResult={"usage": {"input_tokens": 777, "output_tokens": 777}, "totalTokens": 1_554})

    def write(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in self.lines)
        if self.world.options.torn and self.world.chance(0.1):
            last = json.dumps({**self.lines[-1], "uuid": self.world.id("")})
            text += last[:len(last) // 2]
        data = text.encode()
        self.path.write_bytes(data)
        self.world.bytes += len(data)
        self.world.files += 1
        self.world.lines += len(self.lines)


def write_session(world, directory, project, earlier):
    session = File(world, directory, project, world.id("s-"))
    if earlier and world.chance(world.options.forks):
        session.copy(world.random.choice(earlier))
    session.user(world.words(20, 400))
    for _ in range(world.random.randint(1, 2 * world.options.responses)):
        session.response()
        if world.chance(0.05):
            session.odd_line()
    session.write()
    if len(earlier) < 30:
        earlier.append(session.lines[:world.random.randint(1, len(session.lines))])
    if world.chance(world.options.subagents):
        for _ in range(world.random.randint(1, 4)):
            agent = File(world, directory, project, session.session, world.id(""))
            agent.user(world.words(50, 300))
            for _ in range(world.random.randint(1, 30)):
                agent.response()
            agent.write()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path, help="the directory `projects` to write")
    parser.add_argument("--totals", type=pathlib.Path, required=True, help="file for the correct totals, as JSON")
    parser.add_argument("--mb", type=float, default=500, help="size of the tree")
    parser.add_argument("--projects", type=int, default=24)
    parser.add_argument("--responses", type=int, default=100, help="responses of a session, on average")
    parser.add_argument("--forks", type=float, default=0.1, metavar="RATE", help="sessions that copy another one")
    parser.add_argument("--subagents", type=float, default=0.3, metavar="RATE", help="sessions with subagents")
    parser.add_argument("--gateways", type=float, default=0.0, metavar="RATE", help="sessions without request ids")
    parser.add_argument("--torn", action="store_true", help="end some files in the middle of a line")
    parser.add_argument("--early-numbers", action="store_true", help="repeat responses with smaller numbers first")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    world, earlier = World(options), []
    projects = [f"/src/project-{number:02}" for number in range(options.projects)]
    while world.bytes < options.mb * 1e6:
        project = world.random.choice(projects)
        write_session(world, options.directory / project.replace("/", "-"), project, earlier)
    sizes = {"bytes": world.bytes, "files": world.files, "lines": world.lines}
    options.totals.write_text(json.dumps({"models": world.totals.models, **sizes}, indent=1))


if __name__ == "__main__":
    main()
