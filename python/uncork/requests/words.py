"""What single options of a load say: numbers, and how operations arrive. The same for SQL and HTTP. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from uncork.errors import UsageError
from uncork.load.trace import parse_trace
from uncork.model.load import ArrivalKind, Arrivals

__all__ = ["MOST", "read_arrivals", "read_count", "read_integer", "read_number", "refuse"]

MOST: Final = 2**31 - 1
"""The highest number that an option takes which names no other bound."""
_MOST_AT_ONCE: Final = 1_000_000

_Absent = TypeVar("_Absent", int, None)


def read_integer(text: str, option: str, least: int, most: int) -> int:
    """Return the whole number that an option names, from `least` to `most`.

    Raises:
        UsageError: if it is none, or lies outside.
    """
    if not re.fullmatch(r"\s*[-+]?\d+\s*", text):
        raise UsageError(f'invalid value "{text}" for option {option}; expecting a whole number')
    if not least <= int(text) <= most:
        raise UsageError(f"{option} must be in range {least}..{most}; found {int(text)}")
    return int(text)


def read_count(
    text: str | None, option: str, absent: _Absent, least: int = 1, most: int = MOST
) -> int | _Absent:
    """Return the whole number that an option names, from `least` to `most`; `absent` where it is not given.

    Raises:
        UsageError: if it is none, or lies outside.
    """
    return absent if text is None else read_integer(text, option, least, most)


def read_number(text: str, option: str) -> float:
    """Return the number that an option names.

    Raises:
        UsageError: if it is none, or not finite.
    """
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f'invalid value "{text}" for option {option}; expecting a number') from None
    if not math.isfinite(value):
        raise UsageError(f'invalid value "{text}" for option {option}; expecting a finite number')
    return value


def read_arrivals(
    text: str | None,
    rate: float | None,
    read: Callable[[str], str],
    *,
    kinds: tuple[ArrivalKind, ArrivalKind],
    rates: str,
    needed: str,
) -> Arrivals | None:
    """Return how operations arrive at `rate` a second; None for a closed loop.

    `text` is what --arrivals says and `read` reads the file of a trace. `kinds` are the ways of arriving that
    need no further word, first the one meant where there is only a rate. `rates` names the options that give
    a rate, `needed` says how to add one.

    Raises:
        UsageError: if it cannot be understood, or text and rate do not go together.
    """
    if text is None and rate is None:
        return None
    kind, _, rest = (kinds[0] if text is None else text).partition(":")
    if kind == "trace" and rest:
        if rate is not None:
            raise UsageError(f"--arrivals trace:FILE has its own times: leave out {rates}")
        return Arrivals("trace", offsets_ns=parse_trace(read(rest), rest))
    plain = next((one for one in kinds if one == kind and not rest), None)
    if plain is None and not (kind == "bursts" and rest):
        raise UsageError(
            f'invalid arrivals: "{text}"; expecting {kinds[0]}, {kinds[1]}, bursts:SIZE or trace:FILE'
        )
    if rate is None:
        raise UsageError(f"--arrivals {text} needs a rate: add {needed}")
    if plain is None:
        return Arrivals("bursts", rate, read_integer(rest, "--arrivals bursts", 1, _MOST_AT_ONCE))
    return Arrivals(plain, rate)


def refuse(contradictions: Iterable[tuple[bool, str]]) -> None:
    """Refuse what contradicts itself: each pair says whether something does, and what is wrong then.

    Raises:
        UsageError: with the first that does.
    """
    problem = next((words for wrong, words in contradictions if wrong), None)
    if problem is not None:
        raise UsageError(problem)
