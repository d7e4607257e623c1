"""Every command, tool and hook that changes something has an operation: compared with what the product itself lists."""
import json, re

from world import REPOSITORY

# What has no operation, and why.
ONLY_READS = ("completions", "db backups", "db check", "db path", "goal history", "goal queue list", "goal status",
              "loop attach", "loop list", "loop logs", "loop status", "loop types", "loop validate", "pipeline attach",
              "pipeline graph", "pipeline list", "pipeline logs", "pipeline status", "pipeline types", "pipeline validate",
              "session events", "session export", "session list", "session search", "session show", "session snapshot", "MCP get_goal",
              "MCP recall")
EXEMPT = {
    **dict.fromkeys(ONLY_READS, "it only reads"),
    "fleet": "a program of its own; its faults are those of the fleet's tests",
    "top": "interactive; what its keys do are the commands above",
    "ui": "interactive; what its buttons do are the commands above",
    "demo": "it works in a folder of its own, which it removes",
    "hook": "its operations are the events of each client",
    "mcp": "its operations are the tools",
    "__exec": "hit in the operation `loop, with its supervisors and agents`",
    "__engine": "hit in every run, and started by `loop run --detach`",
    "__man": "packages call it once, and check what it wrote",
}
# Operations with a shorter name than that of their command.
SHORTENED = {"loop": "loop run", "pipeline": "pipeline run"}


def commands():
    """The commands without subcommands, from the page that is written from clap's own tree, and the hidden ones."""
    page = (REPOSITORY / "docs/reference/commands.md").read_text()
    names = re.findall(r"^#+ steadfast (.+)$", page, re.MULTILINE)
    leaves = [name for name in names if not any(other.startswith(f"{name} ") for other in names) or name == "run"]
    hidden = re.findall(r'"(__\w+)"', (REPOSITORY / "crates/steadfast/src/cli.rs").read_text())
    return [*leaves, *hidden]


def tools():
    page = (REPOSITORY / "docs/reference/tools.md").read_text()
    return [f"MCP {name}" for name in re.findall(r"^## (\w+)$", page, re.MULTILINE)]


def events():
    """What the hooks of each client listen to."""
    hooks = json.loads((REPOSITORY / "plugin/hooks/hooks.json").read_text())["hooks"]
    code = (REPOSITORY / "crates/steadfast-hosts/src/codex/install.rs").read_text()
    listed = code[code.index("const EVENTS: "):code.index("];")]
    codex = re.findall(r'(?:event\(|name: )"(\w+)"', listed)
    return [*(f"Claude {name}" for name in hooks), *(f"Codex {name}" for name in codex)]


def problems(names):
    """What the product has and no operation does, and exemptions that are not needed."""
    names = [SHORTENED.get(name, name) for name in names]
    covered = lambda wanted: any(re.match(rf"{re.escape(wanted)}(?![\w-])", name) for name in names)
    listed = [*commands(), *tools(), *events()]
    # Each of the lists has dozens; a page of another form must not pass as an empty one.
    for what, found, least in (("commands", commands(), 60), ("tools", tools(), 8), ("events", events(), 25)):
        if len(found) < least:
            yield f"only {len(found)} {what} are found: scripts/faults/complete.py reads them wrongly"
    for wanted in listed:
        if not covered(wanted) and wanted not in EXEMPT:
            yield f"`{wanted}` has no operation in scripts/faults (or exempt it in complete.py, with the reason)"
    for name in EXEMPT:
        if name not in listed:
            yield f"`{name}` is exempt in complete.py, and the product does not have it"
        elif covered(name):
            yield f"`{name}` is exempt in complete.py, and has an operation"
