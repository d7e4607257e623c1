"""The crates that are in the binary, from `cargo metadata` and `cargo tree`."""

import pathlib
import re


def shipped(facts):
    """Ids of the crates that are in the program -> ids they use."""
    nodes = {node["id"]: node for node in facts.metadata["resolve"]["nodes"]}
    known = packages(facts.metadata)
    root = next(crate for crate, package in known.items() if package["name"] == "steadfast")
    graph, waiting = {}, [root]
    while waiting:
        crate = waiting.pop()
        if crate in graph:
            continue
        uses = [
            dependency["pkg"]
            for dependency in nodes[crate]["deps"]
            if (known[dependency["pkg"]]["name"], known[dependency["pkg"]]["version"]) in facts.crates
            and any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
        graph[crate] = sorted(uses)
        waiting += uses
    return root, graph


def packages(metadata):
    return {package["id"]: package for package in metadata["packages"]}


def directory(package):
    return pathlib.Path(package["manifest_path"]).parent


def sqlite_version(package):
    """The version of the SQLite source inside `libsqlite3-sys`."""
    header = (directory(package) / "sqlite3/sqlite3.h").read_text()
    return re.search(r'#define SQLITE_VERSION\s+"([^"]+)"', header).group(1)
