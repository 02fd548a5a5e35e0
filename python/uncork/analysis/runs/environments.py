"""Differences between the environments of two runs, and between what was asked of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from uncork.model.results.figure import RunFigures
from uncork.model.results.run_comparison import EnvironmentDifference

_GRAVE: Final = ("architecture", "processor", "processors", "memory", "virtualised")
"""Facts of a machine that make metrics incomparable."""
_PASSING: Final = ("load average at start", "other uncork runs at start", "python")
"""Facts of a machine that change from moment to moment, or do not affect measurements."""


def differences(before: RunFigures, after: RunFigures) -> Iterator[EnvironmentDifference]:
    """Yield the differences, the gravest first: the machine, then the server, then what was asked."""
    machine = list(_section(before, after, "machine"))
    yield from (difference for difference in machine if difference.grave)
    if before.server != after.server:
        yield EnvironmentDifference("server", "place", before.server, after.server, grave=False)
    others = dict.fromkeys((*before.environment, *after.environment))
    for name in others:
        if name != "machine":
            yield from _section(before, after, name)
    yield from (difference for difference in machine if not difference.grave)
    yield from differing("asked", before.asked, after.asked)
    if before.commit != after.commit:
        yield EnvironmentDifference("commit", "", before.commit or "", after.commit or "", grave=False)


def unasked_differences(before: RunFigures, after: RunFigures) -> tuple[EnvironmentDifference, ...]:
    """Return the differences other than what was asked, the commit measured, and uncork's own core."""
    found = differences(before, after)
    return tuple(difference for difference in found if difference.section not in ("asked", "commit", "core"))


def same_machine(one: Mapping[str, Mapping[str, str]], other: Mapping[str, Mapping[str, str]]) -> bool:
    """Say whether two environments are of comparable machines, as far as is known."""
    facts = [environment.get("machine", {}) for environment in (one, other)]
    return all(facts[0].get(name) == facts[1].get(name) for name in _GRAVE)


def surroundings(run: RunFigures) -> tuple[tuple[str, str], ...]:
    """Return what comparable runs have in common besides what was asked: machine, server and settings."""
    machine, server = (run.environment.get(name, {}) for name in ("machine", "server"))
    kept = [(name, value) for name, value in machine.items() if name not in _PASSING]
    return (("place", run.server), *sorted(kept), *sorted(server.items()))


def _section(before: RunFigures, after: RunFigures, name: str) -> Iterator[EnvironmentDifference]:
    yield from differing(name, before.environment.get(name, {}), after.environment.get(name, {}))


def differing(
    section: str, old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[EnvironmentDifference]:
    """Yield the facts of a section that differ, without passing states of the machine."""
    for name in dict.fromkeys((*old, *new)):
        values = (old.get(name, ""), new.get(name, ""))
        if values[0] == values[1] or (section == "machine" and name in _PASSING):
            continue
        grave = section == "machine" and name in _GRAVE and all(values)
        yield EnvironmentDifference(section, name, *values, grave=grave)
