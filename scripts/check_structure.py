#!/usr/bin/env python3
"""Checks the structure of the workspace; `./test` runs it.

1. Crates depend on each other only as the table ALLOWED says.
2. No cycle between the top-level modules of a crate.
3. No branch on a host's name outside the crates and files that adapt hosts.
4. The crates below the views and the binaries have no runtime, terminal or network library; the fuzz targets of the page
   need them.
"""
import collections
import json
import os
import re
import subprocess
import sys

ALLOWED = {
    "steadfast-model": set(),
    "steadfast-system": {"model"},
    "steadfast-store": {"model", "system"},
    "steadfast-hosts": {"model", "system"},
    "steadfast-memory": {"model"},
    "steadfast-app": {"model", "system", "store", "hosts", "memory"},
    "steadfast-engine": {"model", "system", "store", "hosts"},
    "steadfast-fleet": {"model", "system", "store", "hosts", "app", "engine"},
    "steadfast-fuzz": {"model", "system", "store", "hosts", "memory", "app", "engine", "views"},
    "steadfast-views": {"model", "system", "store", "hosts", "app", "engine"},
    "steadfast": {"model", "system", "store", "hosts", "memory", "app", "engine", "views"},
}
FORBIDDEN_BELOW_BINARY = re.compile(r"^(tokio|clap|hyper|axum|ratatui|rmcp|ureq|rustls) ")
HOST_BRANCH = re.compile(r"\b(?:Host|AgentKind)::(?:Claude|Codex)\b")
# Ids and the facts about them, what turns a name into an agent of a run, and fuzz targets of each host.
HOST_FILES = re.compile(r"^steadfast-hosts/|^steadfast-fuzz/|^steadfast-model/src/host\.rs$|^steadfast-model/src/run/plan\.rs$")

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
problems = []


def production_code(path):
    """The code of a file without its inline tests and comments; empty for files of tests."""
    if re.search(r"/tests?(/|\.rs$)|/tests/|/testing(/|\.rs$)|/examples/", path):
        return ""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = re.split(r"#\[cfg\((?:all\()?test[^\]]*\)\]\s*\nmod \w+ \{", text)[0]
    return re.sub(r"//.*", "", text)


def check_crates():
    metadata = json.loads(
        subprocess.run(
            ["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=root, check=True, capture_output=True
        ).stdout
    )
    for package in metadata["packages"]:
        name = package["name"]
        if name not in ALLOWED:
            problems.append(f"{name}: not in the table of scripts/check_structure.py")
            continue
        for dependency in package["dependencies"]:
            used = dependency["name"].removeprefix("steadfast-")
            ours = dependency["name"].startswith("steadfast-") and dependency["kind"] is None
            if ours and used not in ALLOWED[name]:
                problems.append(f"{name} must not depend on {dependency['name']}")
        if name not in ("steadfast", "steadfast-fleet", "steadfast-fuzz", "steadfast-views"):
            tree = subprocess.run(
                ["cargo", "tree", "-p", name, "-e", "normal", "--prefix", "none"],
                cwd=root, check=True, capture_output=True, text=True,
            ).stdout
            for line in tree.splitlines():
                if FORBIDDEN_BELOW_BINARY.match(line):
                    problems.append(f"{name} must not depend on {line.split()[0]}")


def cycles(edges):
    """Strongly connected components of more than one module (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in edges[node]:
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component = []
            while True:
                component.append(stack.pop())
                if component[-1] == node:
                    break
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def check_modules():
    for crate in sorted(os.listdir(os.path.join(root, "crates"))):
        source = os.path.join(root, "crates", crate, "src")
        if not os.path.isdir(source):
            continue
        entries = os.listdir(source)
        modules = {name.removesuffix(".rs") for name in entries} - {"lib", "main", "testing", "tests"}
        edges = {module: set() for module in modules}
        for folder, _, files in os.walk(source):
            for name in files:
                path = os.path.join(folder, name)
                if not name.endswith(".rs"):
                    continue
                code = production_code(path)
                relative = os.path.relpath(path, source)
                module = relative.split(os.sep)[0].removesuffix(".rs")
                if module in modules:
                    edges[module] |= {m for m in re.findall(r"\bcrate::(\w+)", code) if m in modules and m != module}
                if not HOST_FILES.search(f"{crate}/src/{relative}"):
                    for line in code.splitlines():
                        if HOST_BRANCH.search(line):
                            problems.append(f"{crate}/src/{relative}: branch on a host's name: {line.strip()}")
        for cycle in cycles(edges):
            problems.append(f"{crate}: cycle between modules {', '.join(cycle)}")


check_crates()
check_modules()
for problem in problems:
    print(problem, file=sys.stderr)
sys.exit(1 if problems else 0)
