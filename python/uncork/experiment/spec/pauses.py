r"""Pauses of the client between the statements of an operation, written as ``\sleep 50 ms``. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from uncork.experiment.spec import problems
from uncork.model.engine import POSTGRESQL

if TYPE_CHECKING:
    from uncork.experiment.spec.schema import Spec

_PAUSE: Final = re.compile(r"\\sleep\s+(\d+)\s*(us|ms|s)?", re.IGNORECASE)
_UNITS_NS: Final = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_LONGEST_NS: Final = 60 * _UNITS_NS["s"]


def is_pause(text: str) -> bool:
    """Return whether an item of a workload's `sql` is a command of the client instead of SQL."""
    return text.lstrip().startswith("\\")


def pause_ns(text: str) -> int:
    """Return the length of a pause; as in pgbench, a number without a unit is in seconds.

    Raises ValueError if it is another command than a pause, or longer than a minute.
    """
    found = _PAUSE.fullmatch(text.strip().rstrip(";").rstrip())
    if found is None:
        raise ValueError(
            f"{text.strip().splitlines()[0]} is no pause of the client; write \\sleep, a whole number and "
            "us, ms or s: \\sleep 50 ms"
        )
    length_ns = int(found[1]) * _UNITS_NS[(found[2] or "s").lower()]
    if length_ns > _LONGEST_NS:
        raise ValueError(f"{text.strip()} is longer than 60 s")
    return length_ns


def pause_line(length_ns: float) -> str:
    r"""Return a pause as a workload writes it, in whole microseconds: ``\sleep 1500 us``."""
    return f"\\sleep {max(1, round(length_ns / _UNITS_NS['us']))} us"


def paused_ns(statements: Iterable[str]) -> int:
    """Return how long a client pauses in an operation."""
    return sum(pause_ns(statement) for statement in statements if is_pause(statement))


def without_pauses(statements: Iterable[str]) -> tuple[str, ...]:
    """Return the statements of an operation without its pauses."""
    return tuple(statement for statement in statements if not is_pause(statement))


def check_pauses(spec: Spec) -> Iterator[problems.Problem]:
    """Yield a problem for each pause that cannot be understood, or that no engine or batch can make."""
    for name, workload in spec.workloads.items():
        places: dict[tuple[str, ...], tuple[str, ...]] = {("workloads", name, "sql"): workload.statements}
        for variant, facts in spec.variants.items():
            if name in facts.workloads:
                places["variants", variant, "workloads", name, "sql"] = spec.statements(name, variant)
        for key, statements in places.items():
            yield from _of_list(spec, name, key, statements)


def _of_list(
    spec: Spec, name: str, key: tuple[str, ...], statements: Sequence[str]
) -> Iterator[problems.Problem]:
    pauses = [statement for statement in statements if is_pause(statement)]
    for pause in pauses:
        try:
            pause_ns(pause)
        except ValueError as error:
            yield problems.Problem(key, str(error))
    if not pauses:
        return
    if len(pauses) == len(statements):
        yield problems.Problem(key, "has only pauses; add a statement")
    if spec.workloads[name].batch is not None:
        yield problems.Problem(key, "a batch has no pauses; remove \\sleep")
    others = sorted({spec.engine(text) for text in spec.compared(name)} - {POSTGRESQL})
    if others:
        yield problems.Problem(key, f"\\sleep works only with {POSTGRESQL}, not {others[0]}")
