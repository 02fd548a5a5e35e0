"""One trial's load by HTTP, and how answers are compared."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uncork.model.http import HttpSpec
from uncork.model.request import LoadRequest
from uncork.model.server import Target
from uncork.model.service import Served
from uncork.model.units import count_words

__all__ = [
    "NOT_COMPARED",
    "AskedRequest",
    "HttpAnswer",
    "HttpTrial",
    "TrialRequest",
    "answers_differ",
    "fill",
    "names_in_braces",
]

NOT_COMPARED = "not compared"
"""Begins the description of an answer that could not be read."""

_BRACES = re.compile(r"\{\{|\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class HttpTrial:
    """A load by HTTP on a service; `target` is the database behind it, whose processor time is read too.

    `warmup_operations` are sent before those of `spec` are measured. `deadline_ns` limits the whole trial;
    answers that take longer than `late_ns` count as failed even if they arrive.
    """

    target: Target
    served: Served
    spec: HttpSpec
    warmup_operations: int
    deadline_ns: int
    late_ns: int | None = None


TrialRequest = LoadRequest | HttpTrial
"""What a trial sends: statements, or HTTP requests."""


@dataclass(frozen=True, slots=True)
class AskedRequest:
    """A request with its values filled in, sent once to see its answer."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None

    @property
    def line(self) -> str:
        """Return the request line that reports show."""
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer to a request: its status, and the body as canonical JSON text, or else its digest.

    `json` is None if the body is not JSON; `digest` and `size` describe the body as received.
    """

    request: str
    status: int
    json: str | None
    digest: str
    size: int


def names_in_braces(text: str) -> set[str]:
    """Return the names that occur in a text as ``{name}``."""
    return {match[1] for match in _BRACES.finditer(text) if match[1]}


def fill(text: str, values: Mapping[str, str], *, last: bool = True) -> str:
    """Replace ``{name}`` by its value; names without a value stay.

    With `last` the result is sent as it is: ``{{`` becomes a brace. Otherwise the text is filled again later,
    so braces stay, and those of a value are doubled.
    """

    def replaced(match: re.Match[str]) -> str:
        if match[1] is None:
            return "{" if last else match[0]
        if match[1] not in values:
            return match[0]
        value = values[match[1]]
        return value if last else value.replace("{", "{{")

    return _BRACES.sub(replaced, text)


def answers_differ(expected: Sequence[HttpAnswer], found: Sequence[HttpAnswer]) -> str | None:
    """Return where answers first differ: the request, and the first place in it; None if they are equal."""
    for one, other in zip(expected, found, strict=True):
        told = _difference(one, other)
        if told is not None:
            return f"{one.request}: {told}"
    return None


def _difference(expected: HttpAnswer, found: HttpAnswer) -> str | None:
    if expected.status != found.status:
        return f"status {found.status} where the baseline answers {expected.status}"
    if expected.json is None or found.json is None:
        if expected.digest == found.digest:
            return None
        kinds = [("JSON" if one.json is not None else "no JSON") for one in (found, expected)]
        if kinds[0] != kinds[1]:
            return f"the body is {kinds[0]} where the baseline's is {kinds[1]}"
        return f"a different body: {found.size} bytes where the baseline's has {expected.size}"
    if expected.json == found.json:
        return None
    return _place(json.loads(expected.json), json.loads(found.json), "")


def _place(expected: object, found: object, at: str) -> str | None:
    """Return the first place where two JSON values differ, keys in alphabetical order."""
    if isinstance(expected, dict) and isinstance(found, dict):
        keys = sorted({*expected, *found})
        return next((told for key in keys if (told := _at_key(expected, found, key, at))), None)
    if isinstance(expected, list) and isinstance(found, list):
        pairs = enumerate(zip(expected, found, strict=False))
        told = next((told for n, (one, other) in pairs if (told := _place(one, other, f"{at}/{n}"))), None)
        if told is None and len(expected) != len(found):
            many = count_words(len(found), "element")
            told = f"{at or 'the body'} has {many} where the baseline's has {len(expected)}"
        return told
    if type(expected) is type(found) and expected == found:
        return None
    return f"{at or 'the body'} is {_short(found)} where the baseline has {_short(expected)}"


def _at_key(expected: Mapping[str, object], found: Mapping[str, object], key: str, at: str) -> str | None:
    if key not in found:
        return f"{at}/{key} is missing"
    if key not in expected:
        return f"{at}/{key} is missing in the baseline's"
    return _place(expected[key], found[key], f"{at}/{key}")


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
