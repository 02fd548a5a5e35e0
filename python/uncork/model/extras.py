"""The optional packages that pyproject.toml lists, and the command that installs one.

Requirements and their versions are read from the metadata of the installed package, so that pyproject.toml is
the only place that lists them.
"""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

_REQUIREMENT = re.compile(r"(?P<wanted>[^;]+?)\s*(;.*\bextra\s*==\s*['\"](?P<extra>[^'\"]+)['\"].*)?")


def declared_requirements() -> dict[str, tuple[str, ...]]:
    """Return the requirements of each extra by its name; the extra ``""`` is what uncork always needs."""
    try:
        lines = importlib.metadata.requires("uncork") or ()
    except importlib.metadata.PackageNotFoundError:
        lines = ()
    return _by_extra(lines)


def install_extra(extra: str, *further: str) -> str:
    """Return the command that installs an extra, and further packages, for the Python that runs uncork.

    A checkout that runs without being installed has no metadata; there ``make engines`` installs every extra.
    """
    wanted = declared_requirements().get(extra, ())
    return install_command(*wanted, *further) if wanted else "make engines"


def install_modules(modules: Iterable[str]) -> str | None:
    """Return one command that installs modules; None unless a declared requirement provides each.

    Modules are looked up only among declared requirements, so that uncork never recommends an unknown
    package.
    """
    known = {
        _normalized(re.split(r"[\[<>=!~ ]", wanted, maxsplit=1)[0]): wanted
        for requirements in reversed(declared_requirements().values())
        for wanted in reversed(requirements)
    }
    found = [known.get(_normalized(module.partition(".")[0])) for module in modules]
    wanted = [text for text in found if text is not None]
    return install_command(*wanted) if wanted and len(wanted) == len(found) else None


def install_command(*requirements: str) -> str:
    """Return a shell command that installs requirements for the Python that runs uncork.

    The path of Python is relative to the working directory if it lies below it, such as ``.venv/bin/python``.
    """
    return shlex.join([_python(), "-m", "pip", "install", *requirements])


def _python() -> str:
    python = Path(sys.executable)
    here = Path.cwd()
    return str(python.relative_to(here)) if python.is_relative_to(here) else str(python)


def _by_extra(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Group the lines of ``Requires-Dist`` by extra."""
    found: dict[str, tuple[str, ...]] = {}
    for line in lines:
        match = _REQUIREMENT.fullmatch(line.strip())
        if match is not None:
            extra = match["extra"] or ""
            found[extra] = (*found.get(extra, ()), match["wanted"])
    return found


def _normalized(name: str) -> str:
    """Return a project's name normalised as PEP 503 prescribes."""
    return re.sub(r"[-_.]+", "-", name).lower()
