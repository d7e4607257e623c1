"""The licences of everything in the binary: a list, then each text once."""

from releasing import dependencies
from releasing.facts import ROOT

NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "COPYRIGHT", "UNLICENSE")


def of_dependencies(facts):
    _, graph = dependencies.shipped(facts)
    packages = dependencies.packages(facts.metadata)
    foreign = sorted((packages[crate] for crate in graph if packages[crate]["source"]), key=lambda it: it["name"])
    lines = ["What is in the program besides Steadfast.", ""]
    texts = {}
    for package in foreign:
        name = f"{package['name']} {package['version']}"
        lines.append(f"{name}: {package['license'] or 'see the text below'}")
        for path in sorted(dependencies.directory(package).iterdir()):
            if path.is_file() and path.name.upper().startswith(NAMES):
                text = path.read_text(errors="replace").strip()
                texts.setdefault(text, []).append(name)
    assets = (ROOT / "crates/steadfast-views/assets/THIRD-PARTY.md").read_text().strip()
    lines += ["SQLite: public domain (in libsqlite3-sys)", "", rule("files of the page"), assets]
    for text, users in texts.items():
        lines += ["", rule(", ".join(dict.fromkeys(users))), text]
    return "\n".join(lines) + "\n"


def rule(title):
    return f"{'-' * 80}\n{title}\n{'-' * 80}"
