"""The crates that are in the binary, from `cargo metadata`."""

import pathlib
import re


def shipped(metadata):
    """Ids of the crates below `steadfast`, without those that only tests or build scripts use -> ids they use."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    root = next(package["id"] for package in metadata["packages"] if package["name"] == "steadfast")
    graph, waiting = {}, [root]
    while waiting:
        crate = waiting.pop()
        if crate in graph:
            continue
        uses = [
            dependency["pkg"]
            for dependency in nodes[crate]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
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
