"""Read the files that an experiment file names into its data, so that a stored spec is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from uncork.experiment.spec.problems import Problem

Read = Callable[[str], str]


def inline_files(data: dict[str, Any], read: Read) -> list[Problem]:
    """Replace each `file` by `sql` with the file's content."""
    found = []
    for key, section in _sections(data):
        if not isinstance(section, dict) or not isinstance(section.get("file"), str):
            continue
        if "sql" in section:
            found.append(Problem((*key, "file"), "give either sql or file, not both"))
            continue
        try:
            section["sql"] = read(section["file"])
        except (OSError, UnicodeDecodeError) as error:
            section["sql"] = ";"
            found.append(Problem((*key, "file"), f'cannot read "{section["file"]}": {_reason(error)}'))
    return found


def service_files(
    named: Mapping[tuple[str, ...], list[str]], commands: list[str], read: Read
) -> tuple[dict[str, str], list[Problem]]:
    """Return the files that services need, by name.

    `named` maps keys to the files that they require. In addition, any word of a command may be the name of a
    file beside the experiment; words that are not are ignored.
    """
    files: dict[str, str] = {}
    found = []
    for word in commands:
        if word and word[0] not in "-{/:" and not any(sign in word for sign in " \n\0"):
            try:
                files[word] = read(word)
            except (OSError, UnicodeDecodeError):
                continue
    for key, names in named.items():
        for name in names:
            if name.startswith("/") or ".." in name.split("/"):
                found.append(Problem(key, f'"{name}" must be in the folder of this file, or below it'))
                continue
            try:
                files[name] = read(name)
            except (OSError, UnicodeDecodeError) as error:
                found.append(Problem(key, f'cannot read "{name}": {_reason(error)}'))
    return files, found


def _reason(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, ValueError):
        return "it is not UTF-8 text"
    return f"{error.strerror or 'no such file'}; paths are relative to this file"


def _sections(data: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every section that may name an SQL file, with its key."""
    yield ("setup",), data.get("setup")
    for kind in ("workloads", "databases", "checks", "metrics"):
        sections = data.get(kind)
        for name, section in sections.items() if isinstance(sections, dict) else ():
            yield (kind, name), section
    variants = data.get("variants")
    for name, variant in variants.items() if isinstance(variants, dict) else ():
        if isinstance(variant, dict):
            yield ("variants", name, "setup"), variant.get("setup")
            own = variant.get("workloads")
            for key, section in own.items() if isinstance(own, dict) else ():
                yield ("variants", name, "workloads", key), section
