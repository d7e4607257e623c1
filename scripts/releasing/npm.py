"""Two npm packages: `steadfast`, which everyone installs, and the one with the program of a platform."""

import json

from releasing import archive, contents
from releasing.facts import ROOT

PLATFORMS = {
    "x86_64-unknown-linux-gnu": ("linux", "x64"),
    "aarch64-unknown-linux-gnu": ("linux", "arm64"),
    "x86_64-apple-darwin": ("darwin", "x64"),
    "aarch64-apple-darwin": ("darwin", "arm64"),
}


def name(platform):
    return f"steadfast-{'-'.join(platform)}"


def write(facts, output, licences):
    sources = ROOT / "packaging/npm"
    common = {
        "version": facts.version,
        "license": facts.licence,
        "repository": {"type": "git", "url": f"git+{facts.repository}.git"},
        "homepage": facts.repository,
    }
    main = {
        "name": "steadfast",
        "description": facts.description,
        **common,
        "keywords": ["claude-code", "codex", "agent", "goal", "budget", "loop"],
        "bin": {"steadfast": "bin/steadfast"},
        # npm prints this list where it refuses to install; no system has the last name.
        "os": ["linux", "darwin", "on-windows-use-wsl"],
        "optionalDependencies": {name(platform): facts.version for platform in PLATFORMS.values()},
    }
    pages = {f"man/{page}": text for page, text in sorted(contents.manual(facts).items())}
    # npm links these into share/man of its prefix, so `man steadfast` works.
    main["man"] = [f"./{page}" for page in pages]
    plain = {"README.md": (sources / "README.md").read_bytes(), **contents.plugin(), **pages}
    plain |= {licence: licences[licence] for licence in contents.LICENCES}
    pack(facts, output, main, plain, {"bin/steadfast": (sources / "steadfast").read_bytes()})

    system, processor = PLATFORMS[facts.target]
    native = {
        "name": name((system, processor)),
        "description": f"The program of the package `steadfast` for {system} on {processor}",
        **common,
        "os": [system],
        "cpu": [processor],
    }
    if facts.is_linux:
        native["libc"] = ["glibc"]
    readme = f"# {native['name']}\n\n{native['description']}: `npm install -g steadfast` installs it.\n"
    plain = {"README.md": readme.encode(), **licences}
    pack(facts, output, native, plain, {"bin/steadfast": facts.binary.read_bytes()})


def pack(facts, output, manifest, plain, programs):
    files = {"package.json": (json.dumps(manifest, indent=2) + "\n").encode(), **plain}
    entries = {path: (content, False) for path, content in files.items()}
    entries |= {path: (content, True) for path, content in programs.items()}
    archive.tar_gz(output / f"{manifest['name']}-{facts.version}.tgz", "package", entries, facts.epoch)
