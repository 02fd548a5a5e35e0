"""An experiment file before its validation: what is added to its data, and places to fill in.

The files that it names are read into its data, so that a stored spec is complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from uncork.experiment.spec.problems import Problem
from uncork.model.units import format_count

Read = Callable[[str], str]

MOST_VARIANTS: Final = 200
_VARIANT: Final = re.compile(r'^[ \t]*\[[ \t]*variants[ \t]*\.[ \t]*([\w-]+|"[^"\n]*")', re.MULTILINE)
_MARK: Final = "FILL IN: "
_PLACE: Final = re.compile(rf'{_MARK}([^"\n]+)')


def fill_in(what: str) -> str:
    """Return the mark of a place in a generated file that a person has to fill in with `what`."""
    return _MARK + what.replace('"', "'").replace("\n", " ")


def places_to_fill(text: str) -> list[Problem]:
    """Return a problem for each place that is not filled in yet."""
    return [
        Problem((), f"fill in {found[1].strip()}", line=number)
        for number, line in enumerate(text.splitlines(), start=1)
        if (found := _PLACE.search(line))
    ]


def too_many_variants(variants: str | Collection[str]) -> list[Problem]:
    """Return a problem if there are too many variants: in the text, or by name."""
    count = len(set(_VARIANT.findall(variants)) if isinstance(variants, str) else variants)
    if count <= MOST_VARIANTS:
        return []
    return [
        Problem(
            ("variants",),
            f"found {format_count(count)} variants; expected at most {MOST_VARIANTS}, because every round "
            "measures each of them; remove variants, or divide them among several files",
        )
    ]


# ---- files with one variant or none, which a guard turns into two sides ----


def with_variant(data: dict[str, Any]) -> dict[str, Any]:
    """Return a file's data with a baseline added if it has one variant or none."""
    variants, experiment = data.get("variants", {}), data.get("experiment", {})
    if not isinstance(variants, dict) or len(variants) > 1 or not isinstance(experiment, dict):
        return data
    ((name, variant),) = variants.items() or [(experiment.get("name", "baseline"), {})]
    if not isinstance(variant, dict):
        return data
    return {**data, "variants": {name: {**variant, "baseline": True}}}


def too_few(data: Mapping[str, Any], *, alone: bool) -> Iterator[Problem]:
    """Yield a problem if an experiment has only one variant, unless it is read for a guard."""
    variants = data.get("variants")
    if not alone and isinstance(variants, dict) and len(variants) == 1:
        yield Problem(
            ("variants",),
            f"expected at least 2 variants; found 1 ({', '.join(variants)}); to compare two states of one "
            "variant, use `uncork guard`",
        )


# ---- the files that it names ----


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
