"""Checks the documentation without a network: links and anchors in the sources and in the built site, the table of
contents, the width of lines, and that commands are in blocks that are run. Addresses elsewhere are checked for their form only."""
import argparse
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pages import REPOSITORY, blocks, is_run, pages, prose

LINK = re.compile(r"(?<!\\)!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
TAG = re.compile(r"<(?:img|a|source)\b[^>]*?\b(?:src|href|srcset)=\"([^\"]+)\"")
CODE = re.compile(r"(`+)(?:(?!\1).)*?\1")
WIDEST = 120
# Others are neither run nor checked by their name, as `bash` or `console` would be.
LANGUAGES = {"sh", "claude", "codex", "text", "yaml", "toml", "json", "markdown"}
# A block of `text` that begins so is typed into a terminal: `blocks.py` has to run it, or a mark says why not. In
# generated pages such a block is a synopsis.
COMMAND = re.compile(r"(?:\$ |steadfast |export |temporal |cargo |npm |git |sudo |cd )")
DOCS = REPOSITORY / "docs"
# Written by tests or scripts; a line there is as long as what it says.
GENERATED = {DOCS / "reference", DOCS / "reliability.md", DOCS / "benchmarks.md"}


def slug(heading):
    """The anchor of a heading, as forges and mdBook make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(page):
    found, counts = set(), {}
    for _, line in prose(page):
        if matched := re.match(r"^#{1,6} (.*)$", line):
            name = slug(matched[1])
            seen = counts.get(name, 0)
            counts[name] = seen + 1
            found.add(f"{name}-{seen}" if seen else name)
        found.update(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", line))
    return found


def is_generated(page):
    return any(page == one or one in page.parents for one in GENERATED)


def is_wrapped(page):
    """Whether people write the lines of a page."""
    return not is_generated(page) and (DOCS in page.parents or page.name == "README.md")


def of_sources():
    problems = []
    known = {}
    for page in pages():
        if is_run(page):
            strange = [block for block in blocks(page) if block.language not in LANGUAGES]
            problems += [f"{block.place}: a block of `{block.language}`; write one of {sorted(LANGUAGES)}" for block in strange]
            typed = [block for block in blocks(page) if block.language == "text" and COMMAND.match(block.text)]
            typed = [] if is_generated(page) else typed
            problems += [f"{block.place}: a command in a block of `text`; write `sh`, and `<!-- not run: WHY -->` above it "
                         "if it cannot be run" for block in typed]
        for number, line in prose(page):
            where = f"{page.relative_to(REPOSITORY)}:{number}"
            if len(line) >= WIDEST and is_wrapped(page) and not line.lstrip().startswith(("|", "<!--")):
                problems.append(f"{where}: {len(line)} columns; keep lines under {WIDEST}")
            plain = CODE.sub(lambda code: "x" * len(code[0]), line)
            for target in LINK.findall(plain) + TAG.findall(line):
                problems += [f"{where}: {problem}" for problem in of_link(page, target, known)]
    return problems


def of_link(page, target, known):
    parts = urlsplit(target)
    if parts.scheme:
        good = parts.scheme in ("https", "http", "mailto") and (parts.netloc or parts.scheme == "mailto")
        return [] if good else [f"`{target}` is no address"]
    path = page if not parts.path else (page.parent / unquote(parts.path)).resolve()
    if not path.exists():
        return [f"`{target}`: no such file"]
    inside = DOCS in page.parents
    if inside and path != DOCS and DOCS not in path.parents:
        return [f"`{target}` leaves the docs, so it is broken on the site"]
    if parts.fragment and path.suffix == ".md":
        if path not in known:
            known[path] = anchors(path)
        if parts.fragment not in known[path]:
            return [f"`{target}`: no such heading"]
    return []


def of_contents():
    """Every page is in the table of contents, once."""
    text = (DOCS / "SUMMARY.md").read_text()
    listed = [(DOCS / target).resolve() for target in LINK.findall(text)]
    there = {page for page in DOCS.rglob("*.md") if page.name != "SUMMARY.md"}
    problems = [f"docs/SUMMARY.md does not list {page.relative_to(DOCS)}" for page in sorted(there - set(listed))]
    problems += [f"docs/SUMMARY.md lists {page.name} twice" for page in sorted(set(listed)) if listed.count(page) > 1]
    return problems


class Html(HTMLParser):
    def __init__(self):
        super().__init__()
        self.ids, self.links = set(), []

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.ids.add(value)
            if name in ("href", "src") and value:
                self.links.append(value)


def of_site(site):
    """What a browser would find in the built files."""
    parsed = {}
    for file in site.rglob("*.html"):
        parsed[file] = Html()
        parsed[file].feed(file.read_text())
    problems = []
    for file, html in parsed.items():
        # Holds the other pages, with links relative to theirs.
        if file.name in ("print.html", "404.html", "toc.html"):
            continue
        for link in html.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                problems.append(f"{file.relative_to(site)}: `{link}` leads nowhere")
            elif parts.fragment and target in parsed and unquote(parts.fragment) not in parsed[target].ids:
                problems.append(f"{file.relative_to(site)}: `{link}` has no such place")
    if not list(site.glob("searchindex*.js")):
        problems.append("the site has no search index")
    return problems, len(parsed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--site", type=Path)
    site = parser.parse_args().site
    problems = of_sources() + of_contents()
    looked = f"{len(pages())} pages"
    if site and site.exists():
        more, count = of_site(site)
        problems += more
        looked += f" and {count} files of the site"
    for problem in problems:
        print(problem)
    print(f"links and lines of {looked}: {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
