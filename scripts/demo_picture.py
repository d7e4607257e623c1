#!/usr/bin/env python3
"""Draws the demo as an animated picture of a terminal, light and dark, from its real output.

`demo_picture.py` writes docs/img/demo-light.svg and docs/img/demo-dark.svg; `--check` fails if they show anything else than
the demo prints now. STEADFAST_BIN is the program; default: target/debug/steadfast.
"""
import os
import re
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
FOLDER = REPOSITORY / "docs/img"
PROGRAM = os.environ.get("STEADFAST_BIN", str(REPOSITORY / "target/debug/steadfast"))

ROWS, COLUMNS = 27, 80
CELL, LINE, LEFT, TOP = 8.43, 20, 20, 52
WIDTH, HEIGHT = round(COLUMNS * CELL + 2 * LEFT), TOP + ROWS * LINE + 14
# Seconds that a line, a heading and the end are shown for the reader.
PER_LINE, PER_HEADING, AT_END = 0.42, 1.1, 7.0

SCHEMES = {
    "light": {"back": "#ffffff", "edge": "#d0d7de", "text": "#1f2328", "dim": "#59636e", "user": "#0550ae",
              "steadfast": "#1a7f37", "agent": "#6639ba", "client": "#59636e", "budget": "#9a6700", "kill": "#cf222e"},
    "dark": {"back": "#0d1117", "edge": "#30363d", "text": "#e6edf3", "dim": "#9198a1", "user": "#79c0ff",
             "steadfast": "#56d364", "agent": "#d2a8ff", "client": "#9198a1", "budget": "#e3b341", "kill": "#ff7b72"},
}
LABEL = re.compile(r"^  (user|steadfast|agent|client|budget|kill -9)\s")


def demo():
    """The lines of the story and its promises, without what differs from run to run."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"HOME": home, "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "NO_COLOR": "1"}
        output = subprocess.run([PROGRAM, "demo", "--fast"], env=environment, capture_output=True, text=True, check=True)
    lines = output.stdout.rstrip().splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("1. "))
    status = lines.index("steadfast goal status")
    promises = lines.index("Promises")
    end = next(number for number, line in enumerate(lines) if number > promises and not line)
    story = lines[begin:status] + lines[promises:end]
    return ["$ steadfast demo", "", *story]


def parts(line, state):
    """Pieces of a line with their colours; a line without a label belongs to the one above."""
    if line.startswith("$ ") or re.match(r"^(\d\. |Promises)", line):
        state["who"] = "text"
        return [("strong", line)]
    if matched := LABEL.match(line):
        state["who"] = matched[1].split()[0]
        if state["who"] == "budget":
            bar, _, rest = line[13:].partition(" ")
            return [("budget", line[:13] + bar), ("text", f" {rest}")]
        return [(state["who"], line[:13]), ("kill" if state["who"] == "kill" else "text", line[13:])]
    if line.startswith("  ✓"):
        return [("steadfast", line[:13]), ("text", line[13:])]
    return [("text", line)]


def draw(lines, colours):
    """The picture: lines appear one after the other, and the screen scrolls as a terminal does."""
    starts, now = [], 0.4
    for line in lines:
        starts.append(now)
        now += PER_HEADING if re.match(r"^(\$ |\d\. |Promises)", line) else PER_LINE if line else 0.0
    total = now + AT_END

    def percent(seconds):
        return f"{100 * seconds / total:.2f}%"

    scrolled = max(len(lines) - ROWS, 0)
    css = [f".s{{animation:s {total:.1f}s steps(1,end) infinite}}", f".l{{animation-duration:{total:.1f}s;"
           "animation-timing-function:steps(1,end);animation-iteration-count:infinite}"]
    css += [f".{name}{{fill:{colour}}}" for name, colour in colours.items()]
    css.append(f".strong{{fill:{colours['text']};font-weight:700}}")
    frames = ["0%{transform:translateY(0)}"]
    body, state = [], {"who": "text"}
    for number, (line, start) in enumerate(zip(lines, starts)):
        if number >= ROWS:
            frames.append(f"{percent(start)}{{transform:translateY(-{(number - ROWS + 1) * LINE}px)}}")
        if not line:
            continue
        css.append(f"@keyframes l{number}{{0%{{opacity:0}}{percent(start)}{{opacity:1}}}}.l{number}{{animation-name:l{number}}}")
        spans = "".join(f'<tspan class="{kind}">{escape(text)}</tspan>' for kind, text in parts(line, state) if text)
        body.append(f'<text class="l l{number}" x="{LEFT}" y="{TOP + number * LINE + 14}">{spans}</text>')
    css.append("@keyframes s{" + "".join(frames) + "}")
    # A reader who wants no motion, or a viewer without animation, sees the end of the story.
    css.append(f".s{{transform:translateY(-{scrolled * LINE}px)}}")
    css.append("@media (prefers-reduced-motion:reduce){.s,.l{animation:none}}")
    dots = "".join(f'<circle cx="{24 + 20 * i}" cy="22" r="6" fill="{colours["edge"]}"/>' for i in range(3))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img"
  aria-label="A terminal with the output of steadfast demo: an agent pursues a goal through a budget warning, a compaction, a refused completion, a kill and a resume">
<!-- Made by scripts/demo_picture.py from the output of `steadfast demo`; do not edit. -->
<style>
text{{font:14px ui-monospace,SFMono-Regular,"DejaVu Sans Mono",Menlo,Consolas,monospace;white-space:pre}}
{chr(10).join(css)}
</style>
<clipPath id="screen"><rect x="0" y="{TOP - 1}" width="{WIDTH}" height="{ROWS * LINE + 5}"/></clipPath>
<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="10" fill="{colours["back"]}" stroke="{colours["edge"]}"/>
{dots}
<g clip-path="url(#screen)"><g class="s">
{chr(10).join(body)}
</g></g>
</svg>
"""


def main():
    lines = demo()
    wide = [line for line in lines if len(line) > COLUMNS]
    if wide:
        sys.exit(f"the demo prints lines over {COLUMNS} columns: {wide}")
    stale = []
    for name, colours in SCHEMES.items():
        file, picture = FOLDER / f"demo-{name}.svg", draw(lines, colours)
        if "--check" in sys.argv:
            if not file.exists() or file.read_text() != picture:
                stale.append(file.relative_to(REPOSITORY))
        else:
            FOLDER.mkdir(exist_ok=True)
            file.write_text(picture)
    for file in stale:
        print(f"{file} is not what the demo prints: run scripts/demo_picture.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
