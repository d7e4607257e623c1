"""What every package says about the program: from `cargo metadata`, git and the binary itself."""

import dataclasses
import json
import os
import pathlib
import struct
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
# ELF and Mach-O names of a processor.
MACHINES = {"x86_64": (62, 0x01000007), "aarch64": (183, 0x0100000C)}


class PackagingError(Exception):
    """Printed as one line."""


@dataclasses.dataclass
class Facts:
    version: str
    description: str
    licence: str
    repository: str
    target: str
    epoch: int
    binary: pathlib.Path
    metadata: dict
    # Name and version of each crate in the program.
    crates: set

    @property
    def processor(self):
        return self.target.split("-")[0]

    @property
    def is_linux(self):
        return "-linux-" in self.target


def run(*command, **options):
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, **options)
    if result.returncode != 0:
        raise PackagingError(f"`{' '.join(map(str, command))}` failed with {result.returncode}")
    return result.stdout


def host_target():
    lines = run("rustc", "-vV").splitlines()
    return next(line.removeprefix("host: ") for line in lines if line.startswith("host: "))


def collect(binary, target):
    metadata = json.loads(run("cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target))
    package = next(package for package in metadata["packages"] if package["name"] == "steadfast")
    facts = Facts(
        version=package["version"],
        description=package["description"],
        licence=package["license"],
        repository=package["repository"],
        target=target,
        epoch=epoch(),
        binary=binary,
        metadata=metadata,
        crates=crates_of_program(target),
    )
    check_binary(facts)
    return facts


def crates_of_program(target):
    """`cargo metadata` resolves the features of the whole workspace, so it names crates that the program lacks."""
    edges = ["--edges", "normal,no-proc-macro", "--prefix", "none", "--no-dedupe", "--format", "{p}"]
    lines = run("cargo", "tree", "--locked", "--package", "steadfast", "--target", target, *edges).splitlines()
    return {(line.split()[0], line.split()[1].removeprefix("v")) for line in lines}


def epoch():
    """The time of everything in a package: that of the commit, so that two builds are equal."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return int(given or run("git", "log", "-1", "--format=%ct").strip())


def check_binary(facts):
    """A package must not have the program of another platform or version."""
    if not facts.binary.is_file():
        raise PackagingError(f"no program at {facts.binary}")
    with facts.binary.open("rb") as file:
        head = file.read(20)
    elf, macho = MACHINES[facts.processor]
    if facts.is_linux:
        fits = head[:4] == b"\x7fELF" and struct.unpack_from("<H", head, 18)[0] == elf
    else:
        fits = head[:4] == b"\xcf\xfa\xed\xfe" and struct.unpack_from("<I", head, 4)[0] == macho
    if not fits:
        raise PackagingError(f"{facts.binary} is no program for {facts.target}")
    printed = run(facts.binary, "--version").split()
    if printed[:2] != ["steadfast", facts.version]:
        raise PackagingError(f"{facts.binary} says `{' '.join(printed[:2])}`, not `steadfast {facts.version}`")
