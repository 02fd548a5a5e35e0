"""A tool, a call of it, and what every answer has in common."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from pydantic import BaseModel, ConfigDict, ValidationError

import uncork
from uncork.errors import SetupError, UsageError
from uncork.model.units import format_count

if TYPE_CHECKING:
    from uncork.api.runs import Run

Result = dict[str, Any]
"""The result of a tool, as plain values."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a call is given: where runs are stored, and what takes lines of progress."""

    runs: str | None
    tell: Callable[[str], None]

    @property
    def root(self) -> Path:
        """The folder of runs."""
        from uncork.api.words import runs_folder  # noqa: PLC0415 -- each call loads what it needs

        return runs_folder(self.runs)


class Tool(BaseModel, ABC):
    """A tool; its fields are the arguments of a call, and unknown ones are refused.

    The docstring of each tool is its description, in words for a language model. Tools that measure
    (`measures`) start servers and programs, or connect to a server, and store runs. They exist only with
    --allow-run, and one call of them runs at a time. `starts_programs` is true if a file decides what they
    start. `limit_s` is the longest time of a call; None if the arguments bound it. `memory` limits the memory
    of a call, in bytes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: ClassVar[str]
    title: ClassVar[str]
    limit_s: ClassVar[float | None] = 300.0
    memory: ClassVar[int | None] = None
    measures: ClassVar[bool] = False
    starts_programs: ClassVar[bool] = False

    @classmethod
    def read(cls, given: dict[str, Any]) -> Self:
        """Return a call with a client's arguments. Raises UsageError that names each wrong one."""
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise UsageError("; ".join(map(_sentence, error.errors(include_input=False)))) from None

    @classmethod
    def described(cls) -> tuple[str, dict[str, Any]]:
        """Return the description, and the JSON Schema of the arguments, without titles."""
        schema: dict[str, Any] = _untitled(cls.model_json_schema())
        return " ".join(schema.pop("description").split()), schema

    @abstractmethod
    def answer(self, job: Job) -> Result:
        """Carry out the call."""


def _sentence(error: Any) -> str:
    name, kind = ".".join(map(str, error["loc"])), error["type"]
    if kind == "missing":
        return f"{name} is required"
    if kind == "extra_forbidden":
        return f"there is no argument {name}"
    return f"{name}: {error['msg'][:1].lower()}{error['msg'][1:]}"


def _untitled(schema: Any) -> Any:
    if isinstance(schema, dict):
        titled = isinstance(schema.get("title"), str)
        return {name: _untitled(value) for name, value in schema.items() if name != "title" or not titled}
    return [_untitled(part) for part in schema] if isinstance(schema, list) else schema


def opened(job: Job, word: str) -> Run:
    """Open a listed run; paths are refused, even those of a run. Raises SetupError."""
    absent = SetupError(f'there is no run "{word}"; list_runs lists the ids of runs')
    if "/" in word or "\0" in word or word.startswith("."):
        raise absent
    if Path(word).exists() and not (job.root / word).is_dir():
        raise absent  # it would be taken for a path
    run = uncork.open(word, runs=job.runs)
    if run.folder.parent.resolve() != job.root.resolve():
        raise absent
    return run


def about(run: Run) -> Result:
    """Return what a run is, and its answer."""
    facts = {"run": run.id, "kind": run.kind, "status": run.status, "question": run.question}
    return {**facts, "answer": run.answer}


def shortened(name: str, value: Any) -> Result:
    """Return a value under its name, cut to the limit, with what was cut. Raises UsageError."""
    found = bounded(plain(value))
    if found.value is None:
        parts = f"; its parts: {', '.join(map(str, value))}" if isinstance(value, Mapping) else ""
        raise UsageError(f"even a shortened form is longer than {LIMIT} characters; ask for a part{parts}")
    return {name: found.value, **({"cut": found.cut} if found.cut else {})}


# ---- JSON documents of a size that a language model can read ----


LIMIT: Final = 50_000
"""Characters of a result as JSON, about 15 000 tokens."""
_STEPS: Final = (
    *((4000, 300), (2000, 150), (1000, 80), (500, 40), (300, 20), (200, 10)),
    *((150, 6), (100, 4), (80, 3), (60, 2), (40, 1)),
)
"""Characters of a text and entries of a list to keep: the first step that is short enough is taken."""
_CUTS: Final = 20


@dataclass(slots=True)
class Bounded:
    """A document, and its lists that were cut: the part, the entries that are left, and how many there were.

    `value` is None if even the shortest form is too long. Texts that were cut say so at their end.
    """

    value: Any
    cut: list[dict[str, Any]] = field(default_factory=list)


def bounded(value: Any, limit: int = LIMIT) -> Bounded:
    """Return a JSON value whose text has at most `limit` characters, or about: see `Bounded`."""
    if _length(value) <= limit:
        return Bounded(value)
    for characters, entries in _STEPS:
        found = Bounded(None)
        found.value = _cut(value, characters, entries, "", found.cut)
        if _length(found.value) <= limit:
            del found.cut[_CUTS:]
            return found
    return Bounded(None)


def part_of(value: Any, part: str) -> Any:
    """Return a part of a document, such as ``plans.0.text``. Raises UsageError."""
    found, passed = value, ""
    for word in filter(None, part.split(".")):
        where = f'"{passed}"' if passed else "the result"
        if isinstance(found, Mapping):
            if word not in found:
                raise UsageError(f'{where} has no part "{word}"; it has {", ".join(found) or "none"}')
            found = found[word]
        elif isinstance(found, list):
            if not found:
                raise UsageError(f"{where} has no entries")
            if not word.isdecimal() or int(word) >= len(found):
                many = f"{format_count(len(found))} {'entry' if len(found) == 1 else 'entries'}"
                raise UsageError(f"{where} has {many}, numbered from 0; there is no {word}")
            found = found[int(word)]
        else:
            raise UsageError(f"{where} is a single value and has no parts")
        passed = f"{passed}.{word}" if passed else word
    return found


def plain(value: Any) -> Any:
    """Return a value of a database as one of JSON; bytes, such as histograms, only with their length."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)  # NaN is not below it either
    if isinstance(value, bytes | bytearray | memoryview):
        return f"({format_count(len(value))} bytes)"
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [plain(item) for item in value]
    return str(value)


def _length(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def _cut(value: Any, characters: int, entries: int, part: str, cut: list[dict[str, Any]]) -> Any:
    if isinstance(value, str):
        if len(value) <= characters:
            return value
        return f"{value[:characters]}… (cut: {format_count(len(value))} characters)"
    if isinstance(value, Mapping):
        return {key: _cut(one, characters, entries, _below(part, key), cut) for key, one in value.items()}
    if isinstance(value, list | tuple):
        if len(value) > entries:
            cut.append({"part": part, "shown": entries, "of": len(value)})
        kept = enumerate(value[:entries])
        return [_cut(one, characters, entries, _below(part, place), cut) for place, one in kept]
    return value


def _below(part: str, name: object) -> str:
    return f"{part}.{name}" if part else str(name)
