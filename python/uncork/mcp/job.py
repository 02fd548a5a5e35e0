"""A tool, a call of it, and what every answer has in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncork.errors import SetupError, UsageError
from uncork.mcp.arguments import Arguments
from uncork.mcp.bounded import LIMIT, bounded, plain

if TYPE_CHECKING:
    from uncork.api.runs import Run

Result = dict[str, Any]
"""The result of a tool, as plain values."""


@dataclass(frozen=True, slots=True)
class Job:
    """A call of a tool.

    `runs` is where runs are stored, None for the default of `uncork.api`. `tell` takes a line of progress.
    """

    arguments: Any
    runs: str | None
    tell: Callable[[str], None]

    @property
    def root(self) -> Path:
        """The folder of runs."""
        from uncork.api.words import runs_folder  # noqa: PLC0415 -- each call loads what it needs

        return runs_folder(self.runs)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: what it is called and does, in words for a language model, and the function that answers.

    Tools that measure (`measures`) start servers and programs, or connect to a server, and store runs. They
    exist only with --allow-run, and one call of them runs at a time. `starts_programs` is true if a file
    decides what they start. `limit_s` is the longest time of a call; None if the arguments bound it.
    `memory` limits the memory of a call, in bytes.
    """

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    answer: Callable[[Job], Result]
    limit_s: float | None = 300.0
    memory: int | None = None
    measures: bool = False
    starts_programs: bool = False


def opened(job: Job, word: str) -> Run:
    """Open a listed run. A path is refused, even one that leads to a run.

    Raises:
        SetupError: if there is no such run.
    """
    import uncork  # noqa: PLC0415 -- as above

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
    """Return a value under its name, cut to the limit, with a list of what was cut.

    Raises:
        UsageError: if even the shortest form is too long.
    """
    found = bounded(plain(value))
    if found.value is None:
        parts = f"; its parts: {', '.join(map(str, value))}" if isinstance(value, Mapping) else ""
        raise UsageError(f"even a shortened form is longer than {LIMIT} characters; ask for a part{parts}")
    return {name: found.value, **({"cut": found.cut} if found.cut else {})}
