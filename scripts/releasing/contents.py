"""The files that packages share: documents, completions, manual pages, the plugin, licences of dependencies."""

import pathlib
import tempfile

from releasing import licences
from releasing.facts import ROOT, run

COMPLETIONS = {"bash": "steadfast.bash", "zsh": "_steadfast", "fish": "steadfast.fish"}
LICENCES = ("LICENSE-APACHE", "LICENSE-MIT")
DOCUMENTS = ("README.md", "CHANGELOG.md", "SECURITY.md")


def completions(facts):
    """Shell -> its script."""
    return {shell: run(facts.binary, "completions", shell).encode() for shell in COMPLETIONS}


def manual(facts):
    """Name of the page -> roff."""
    with tempfile.TemporaryDirectory() as directory:
        run(facts.binary, "__man", directory)
        return {page.name: page.read_bytes() for page in pathlib.Path(directory).iterdir()}


def plugin():
    """The marketplace and the plugin, as `claude plugin marketplace add DIRECTORY` reads them."""
    files = [ROOT / ".claude-plugin/marketplace.json", *sorted((ROOT / "plugin").rglob("*"))]
    return {str(path.relative_to(ROOT)): path.read_bytes() for path in files if path.is_file()}


def documents():
    return {name: (ROOT / name).read_bytes() for name in DOCUMENTS}


def licence_texts(facts):
    own = {name: (ROOT / name).read_bytes() for name in LICENCES}
    return {**own, "THIRD-PARTY-LICENSES.txt": licences.of_dependencies(facts).encode()}
