"""Name the thorough tests that a change can reach: what CI runs besides `make test`.

A test reaches the modules that it imports, those of the verbs that it calls, and all that these import. A
change of the core, of what tests share, or of how things are built reaches every test.

Usage: reached.py [BASE]. BASE is the commit to compare with. Without it, it is where this branch left the one
that it follows, or else the last commit that is older than a day. Without any, every test is reached.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

from uncork.cli.verbs import VERBS, Verb  # noqa: E402 -- of this checkout

SHARED = (
    *("crates/", "Cargo.", "requirements/", "pyproject.toml", "Makefile", ".ci/"),
    *("tests/fakes/", "tests/conftest.py", "tests/e2e/conftest.py", "tests/integration/conftest.py"),
)
"""Changes of files that begin with one of these reach every test."""
ANY_RUN = frozenset({"compare", "mcp", "report", "serve", "sql"})
"""Verbs that read runs of all kinds, so that they import nearly everything; `make test` covers them."""
IMPORTED = re.compile(r"^\s*(?:from|import) (uncork[\w.]*)", re.MULTILINE)
MARK = "pytest.mark.thorough"
WORD = re.compile(r'"([a-z][a-z-]*)"')


def verb_modules(verbs: dict[str, Verb]) -> Iterator[tuple[str, str]]:
    """Yield each verb with its module."""
    for name, verb in verbs.items():
        if verb.target:
            yield name, verb.target.partition(":")[0]
        yield from verb_modules(dict(verb.verbs or {}))


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
    return subprocess.run(
        [shutil.which("git") or "git", *words], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.strip()


def reached(changed: Iterable[str], tests: Iterable[Path]) -> Iterator[Path]:
    """Yield the test files that changed files can reach."""
    changed = list(changed)
    if any(file.startswith(SHARED) for file in changed):
        yield from tests
        return
    graph = grimp.build_graph("uncork")
    interface = {module for module in graph.modules if module.startswith("uncork.api")}
    for module in interface:  # the package itself is imported for its version
        graph.remove_import(importer="uncork", imported=module)
    touched: set[str] = set()
    for file in changed:
        if file.startswith("python/"):
            parts = Path(file).relative_to("python").with_suffix("").parts
            module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            if module not in graph.modules:  # a deleted one, or data of a package
                module = next((name for name in parents(parts) if name in graph.modules), "")
            if not module:
                yield from tests
                return
            touched |= {module} | graph.find_downstream_modules(module)
    modules = {}
    for name, module in verb_modules(dict(all_verbs())):
        if name not in ANY_RUN:
            modules.setdefault(name, set()).add(module)
    for test in tests:
        text = test.read_text()
        uses = set(IMPORTED.findall(text)).union(*(modules.get(word, ()) for word in WORD.findall(text)))
        uses |= interface if "uncork" in uses else set()
        own = str(test.relative_to(ROOT)) in changed
        if (
            own
            or touched & uses
            or (test.parent.name == "docs" and any(file.endswith(".md") for file in changed))
        ):
            yield test


def parents(parts: tuple[str, ...]) -> Iterator[str]:
    """Yield the dotted names of the packages that a file is in, the innermost first."""
    for length in range(len(parts) - 1, 0, -1):
        yield ".".join(parts[:length])


def all_verbs() -> Iterator[tuple[str, Verb]]:
    """Yield the verbs of all groups of the help."""
    for group in VERBS.values():
        yield from group.items()


if __name__ == "__main__":
    thorough = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if MARK in path.read_text()]
    changed = changed_files(sys.argv[1] if len(sys.argv) > 1 else "")
    for found in thorough if changed is None else reached(changed, thorough):
        print(found.relative_to(ROOT))
