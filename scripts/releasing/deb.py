"""A Debian package: program, completions, manual pages, documents, the plugin."""

import datetime
import email.utils
import os
import pathlib
import re
import shutil
import tempfile

from releasing import archive, contents
from releasing.facts import ROOT, PackagingError, run

PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64"}
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/steadfast",
    "zsh": "usr/share/zsh/vendor-completions/_steadfast",
    "fish": "usr/share/fish/vendor_completions.d/steadfast.fish",
}
MAINTAINER = "Steadfast <steadfast-dev@users.noreply.github.com>"


def write(facts, output, licences):
    if not shutil.which("dpkg-deb"):
        raise PackagingError("dpkg-deb is missing; install dpkg, or leave `deb` out of --formats")
    version = f"{facts.version}-1"
    processor = PROCESSORS[facts.processor]
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        root.chmod(0o755)
        add(root, "usr/bin/steadfast", facts.binary.read_bytes(), executable=True)
        for shell, script in contents.completions(facts).items():
            add(root, COMPLETIONS[shell], script)
        for page, text in contents.manual(facts).items():
            add(root, f"usr/share/man/man1/{page}.gz", archive.compressed(text))
        for path, text in contents.plugin().items():
            add(root, f"usr/share/steadfast/{path}", text)
        documents = "usr/share/doc/steadfast"
        add(root, f"{documents}/copyright", copyright_file(facts).encode())
        add(root, f"{documents}/changelog.gz", archive.compressed((ROOT / "CHANGELOG.md").read_bytes()))
        add(root, f"{documents}/changelog.Debian.gz", archive.compressed(changelog(facts, version).encode()))
        add(root, f"{documents}/README.md.gz", archive.compressed((ROOT / "README.md").read_bytes()))
        name = "THIRD-PARTY-LICENSES.txt"
        add(root, f"{documents}/{name}.gz", archive.compressed(licences[name]))
        size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024 + 1
        add(root, "DEBIAN/control", control(facts, version, processor, size).encode())
        target = output / f"steadfast_{version}_{processor}.deb"
        environment = {**os.environ, "SOURCE_DATE_EPOCH": str(facts.epoch)}
        # With several threads, the bytes depend on the memory that is free.
        environment["DPKG_DEB_THREADS_MAX"] = "1"
        run("dpkg-deb", "--root-owner-group", "-Zxz", f"-z{archive.LEVEL}", "--build", root, target, env=environment)


def add(root, path, content, executable=False):
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    target.chmod(0o755 if executable else 0o644)
    for parent in target.relative_to(root).parents:
        (root / parent).chmod(0o755)


def control(facts, version, processor, size):
    return f"""\
Package: steadfast
Version: {version}
Architecture: {processor}
Maintainer: {MAINTAINER}
Installed-Size: {size}
Depends: {', '.join(libraries(facts.binary))}
Suggests: git, tmux
Section: devel
Priority: optional
Homepage: {facts.repository}
Description: keeps coding agents on the job
 Durable goals for Claude Code and Codex: limits that hold, completion that is
 checked by running commands, exact accounting of tokens and money, session
 memory, and loops and pipelines of agents that survive crashes.
"""


def libraries(binary):
    """The Debian packages of the shared libraries that the program needs."""
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", binary))
    glibc = newest_glibc(binary)
    packages = [f"libc6 (>= {glibc})"] if glibc else []
    if "libgcc_s.so.1" in needed:
        packages.append("libgcc-s1")
    known = re.compile(r"lib(c|m|dl|rt|pthread|util)\.so\.\d|libgcc_s\.so\.1|ld-linux.*")
    unknown = [library for library in needed if not known.fullmatch(library)]
    if unknown:
        raise PackagingError(f"the program needs libraries that the package does not name: {', '.join(unknown)}")
    return packages


def newest_glibc(binary):
    """The oldest glibc that has all symbols of the program; `None` for a static one."""
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", run("readelf", "-V", binary))
    return ".".join(map(str, max((int(major), int(minor)) for major, minor in versions))) if versions else None


def changelog(facts, version):
    date = email.utils.format_datetime(datetime.datetime.fromtimestamp(facts.epoch, datetime.timezone.utc))
    return f"""\
steadfast ({version}) unstable; urgency=medium

  * Version {facts.version}; changelog.gz says what is new.

 -- {MAINTAINER}  {date}
"""


def copyright_file(facts):
    def indented(path):
        return "\n".join(f" {line}" if line.strip() else " ." for line in path.read_text().strip().splitlines())

    holder = re.search(r"Copyright.*", (ROOT / "LICENSE-MIT").read_text()).group(0)
    return f"""\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: steadfast
Source: {facts.repository}
Comment: THIRD-PARTY-LICENSES.txt.gz has the licences of the libraries in the program.

Files: *
Copyright: {holder.removeprefix('Copyright (c) ').removeprefix('Copyright ')}
License: Expat or Apache-2.0

License: Expat
{indented(ROOT / 'LICENSE-MIT')}

License: Apache-2.0
 On Debian systems, the text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
"""
