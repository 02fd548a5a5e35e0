"""Name the thorough tests that a change can reach: what CI runs besides `make test`.

A test reaches the modules that it and its helpers name, those of the verbs that they name, and all that these
import. Tests of documents run commands of all kinds, so each change of a module reaches them. A change of
anything but modules, tests and Markdown (the core, data, helpers, how things are built) reaches every test.

Usage: reached.py [BASE]. BASE is the commit to compare with. Without it, it is where this branch left the one
that it follows, or else the last commit that is older than a day. Without any, every test is reached.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from uncork.cli.verbs import VERBS, Verb  # noqa: E402 -- of this checkout

MARK = "pytest.mark.thorough"
KINDS = "uncork.workbench.documents.kinds"
"""Imports its neighbours by name, which no import statement shows."""
MODULE = re.compile(r"\buncork(?:\.\w+)*")
HELPER = re.compile(r"^from (fakes|databases)\.(\w+) import", re.MULTILINE)
IMPORT = re.compile(r"^\s*(?:from|import) .*$", re.MULTILINE)
WORD = re.compile(r"\b[a-z][a-z-]*\b")


def reached(changed: Collection[str], tests: Collection[Path]) -> list[Path]:
    """Return the test files that changed files can reach."""
    graph = import_graph()
    touched: set[str] = set()
    for file in changed:
        module = module_of(file)
        if module in graph.modules:
            touched |= {module} | graph.find_downstream_modules(module)
        elif not file.endswith(".md") and not Path(file).name.startswith("test_"):
            return list(tests)
    verbs: dict[str, set[str]] = {}
    for panel in VERBS.values():
        for name, modules in verb_modules(panel):
            verbs.setdefault(name, set()).update(modules)
    interface = {module for module in graph.modules if module.startswith("uncork.api")}
    documents = bool(touched) or any(file.endswith(".md") for file in changed)
    found = []
    for test in tests:
        text = text_of(test)
        uses = set(MODULE.findall(text)).union(
            *(verbs.get(word, ()) for word in set(WORD.findall(IMPORT.sub("", text))))
        )
        if "from uncork import" in text or "import uncork\n" in text:
            uses |= interface
        if (
            touched & uses
            or test.relative_to(ROOT).as_posix() in changed
            or (documents and test.parent.name == "docs")
        ):
            found.append(test)
    return found


def text_of(test: Path) -> str:
    """Return the name and the text of a test file, with the texts of the helpers that it imports."""
    texts, left, known = [test.stem.replace("_", " ")], [test], {test}
    while left:
        texts.append(left.pop().read_text())
        helpers = {
            ROOT / "tests" / folder / f"{name}.py" for folder, name in HELPER.findall(texts[-1])
        } - known
        left += [helper for helper in helpers if helper.is_file()]
        known |= helpers
    return "\n".join(texts)


def import_graph() -> grimp.ImportGraph:
    """Return which module imports which, also by name. The package itself uses none of its parts."""
    graph = grimp.build_graph("uncork")
    for module in graph.find_modules_directly_imported_by("uncork"):
        graph.remove_import(importer="uncork", imported=module)
    for module in graph.find_children(KINDS.rpartition(".")[0]) - {KINDS}:
        graph.add_import(importer=KINDS, imported=module)
    return graph


def module_of(file: str) -> str:
    """Return the dotted name of a module of the package; empty for other files."""
    path = Path(file)
    if path.suffix != ".py" or not file.startswith("python/"):
        return ""
    parts = path.relative_to("python").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def verb_modules(verbs: Mapping[str, Verb]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each verb with the modules of its code and of its options."""
    for name, verb in verbs.items():
        yield name, tuple(target.partition(":")[0] for target in (verb.target, verb.options) if target)
        yield from verb_modules(verb.verbs or {})


def changed_files(base: str) -> list[str] | None:
    """Return the files that differ from `base`; None if there is nothing to compare with."""
    commit = base or upstream() or git("rev-list", "-1", "--before=24 hours ago", "HEAD")
    return git("diff", "--name-only", commit).splitlines() if commit else None


def upstream() -> str:
    """Return the commit at which this branch left the one that it follows; empty if it follows none."""
    followed = git("rev-parse", "--verify", "-q", "@{upstream}")
    left = git("merge-base", "HEAD", followed) if followed else ""
    return "" if left == git("rev-parse", "HEAD") else left


def git(*words: str) -> str:
    """Return what git prints; empty if it refuses."""
    command = [shutil.which("git") or "git", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def thorough_tests() -> list[Path]:
    """Return the files that have a thorough test."""
    return [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if MARK in path.read_text()]


if __name__ == "__main__":
    changes, candidates = changed_files(sys.argv[1] if len(sys.argv) > 1 else ""), thorough_tests()
    for chosen in candidates if changes is None else reached(changes, candidates):
        print(chosen.relative_to(ROOT))
