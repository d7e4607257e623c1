"""Setup and its removal: each file of the user is, byte for byte, the old one or the new one."""
import re

import operation
from operation import Operation

SETTINGS = ('{\n\t"model": "opus",   "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}\n}')
CODEX_CONFIG = '# mine\nmodel = "gpt-6.1"\n\n[mcp_servers.other]\ncommand = "x" # theirs\n# end'
CODEX_HOOKS = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}}'


def users_files(world):
    world.write("user/.claude/settings.json", SETTINGS)
    world.write("user/.claude/commands/goal-pause.md", "my own command")
    world.write("user/.codex/config.toml", CODEX_CONFIG)
    world.write("user/.codex/hooks.json", CODEX_HOOKS)


def contents(world):
    """The user's files. A time that setup writes differs from trial to trial; files left behind are a finding of their own."""
    date = re.compile(rb'("lastUpdated": *)"[^"]*"')
    return {path: date.sub(rb'\1"now"', data) for path, data in world.files("user").items()
            if not operation.is_unfinished(path)}


class Setup(Operation):
    is_removal = False

    def __init__(self, host):
        self.host = host
        self.install = ("setup", host, "--yes")
        self.remove = ("setup", host, "--uninstall")
        self.argv = self.remove if self.is_removal else self.install
        self.name = f"uninstall {host}" if self.is_removal else f"setup {host}"

    def prepare(self, world):
        users_files(world)
        self.without = contents(world)
        world.ok(*self.install)
        self.installed = contents(world)
        if not self.is_removal:
            world.ok(*self.remove)

    def old_and_new(self):
        return (self.installed, self.without) if self.is_removal else (self.without, self.installed)

    def safe(self, world):
        old, new = self.old_and_new()
        for path, data in contents(world).items():
            if path in old or path in new:
                if data not in (old.get(path), new.get(path)):
                    yield f"{path} is neither the old nor the new one: {data[:200]!r}"
        for path in set(old) & set(new) - set(contents(world)):
            yield f"{path} is gone"

    def holds(self, world):
        _, new = self.old_and_new()
        found = contents(world)
        wrong = {path for path in set(found) | set(new) if found.get(path) != new.get(path)}
        if wrong:
            yield f"not as they should be: {sorted(wrong)}"

    def judge(self, world, *rest):
        yield from super().judge(world, *rest)
        if not self.is_removal:
            removed = world.person(*self.remove)
            if removed.code != 0 or contents(world) != self.without:
                changed = set(contents(world).items()) ^ set(self.without.items())
                yield f"removed again, the files differ: {sorted({path for path, _ in changed})}: {removed}"


class Uninstall(Setup):
    is_removal = True


OPERATIONS = [lambda: Setup("claude"), lambda: Setup("codex"), lambda: Uninstall("claude"), lambda: Uninstall("codex")]
