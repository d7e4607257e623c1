"""The pages of the documentation and the code blocks in them."""
import re
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(\s*)(```+)(.*)$")
HIDDEN = re.compile(r"^<!-- (sh|not run|until stopped|in the background)(?:: (.*?))?(?: -->)?$")
# Marks of blocks that are run, but do not end by themselves.
ENDLESS = ("until stopped", "in the background")


@dataclass
class Block:
    """A code block, or commands in a comment that readers do not see."""

    page: Path
    line: int
    language: str
    text: str
    # "" to run it; else one of `ENDLESS`, or why it is not run.
    mark: str = ""

    @property
    def place(self):
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"


def pages():
    """All pages that people read, in a fixed order."""
    docs = sorted((REPOSITORY / "docs").rglob("*.md"))
    others = ["README.md", "SECURITY.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "examples/README.md"]
    return [REPOSITORY / name for name in others if (REPOSITORY / name).exists()] + docs


def is_run(page):
    """Whether the commands of a page are for users, who type them anywhere; those for developers need a clone."""
    return page.name == "README.md" or REPOSITORY / "docs" in page.parents


def blocks(page):
    """The blocks of a page in order, with the marks of the comments above them."""
    found, fence, start, lines, mark, hidden = [], None, 0, [], "", None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if hidden is not None:
            if line.strip() == "-->":
                found.append(Block(page, start, "sh", "\n".join(hidden) + "\n"))
                hidden = None
            else:
                hidden.append(line)
            continue
        matched = FENCE.match(line)
        if fence:
            indent, ticks, info = fence
            if matched and matched[2].startswith(ticks) and not matched[3].strip():
                text = "\n".join(one.removeprefix(indent) for one in lines) + "\n"
                found.append(Block(page, start, info.strip(), text, mark))
                fence, mark = None, ""
            else:
                lines.append(line)
        elif matched:
            fence, start, lines = (matched[1], matched[2], matched[3]), number, []
        elif comment := HIDDEN.match(line.strip()):
            kind, said = comment[1], comment[2] or ""
            if kind != "sh":
                mark = said if kind == "not run" else kind
            elif said:
                found.append(Block(page, number, "sh", said + "\n"))
            else:
                hidden, start = [], number
        elif line.strip():
            mark = ""
    return found


def prose(page):
    """The lines of a page outside of code blocks, with their numbers."""
    fence = None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        matched = FENCE.match(line)
        if matched and (fence is None or matched[2].startswith(fence) and not matched[3].strip()):
            fence = matched[2] if fence is None else None
        elif fence is None:
            yield number, line
