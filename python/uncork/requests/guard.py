"""What a guard is asked, whether of an experiment file or of a stored run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from uncork.errors import UsageError
from uncork.experiment.guard.sides import Side
from uncork.model.evidence import EvidenceKind
from uncork.model.redaction import is_secret, redact
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options

__all__ = ["GuardRequest", "Tell", "command_text", "headers_of"]

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class GuardRequest:
    """What is asked.

    `target` is an experiment file, or a stored run's id, name or path. `variant` names the file's variant
    that both sides are; the file's baseline if None. `gates` go before those of the file. `acknowledged` is
    the file of known changes; the one that the experiment file names if None. `same` lets two sides through
    that come out the same (an A/A test of the guard itself). `words` are the command's arguments as written,
    to repeat it; secrets are taken out where they are shown. Of a stored load only: `times` it is measured
    again, sent to `url` with `headers` in place of its own, or `stored` compares it without measuring; of any
    stored run `everything` takes those for its past, too, that a guard found broken. With `resume`, `target`
    is the run of a guard that was interrupted and goes on.
    """

    target: str
    baseline: Side
    candidate: Side
    gates: tuple[str, ...] = ()
    variant: str | None = None
    options: Options = field(default_factory=Options)
    choice: ServerChoice = field(default_factory=ServerChoice)
    acknowledged: Path | None = None
    confirm: bool = True
    evidence: tuple[EvidenceKind, ...] = ()
    same: bool = False
    words: tuple[str, ...] = ()
    stored: bool = False
    times: int = 1
    url: str | None = None
    headers: tuple[str, ...] = field(default=(), repr=False)
    everything: bool = False
    resume: bool = False

    @property
    def two_sides(self) -> bool:
        """Whether sides were named, or are to be the same, and not one thing is held against its history."""
        return bool(self.baseline.says or self.candidate.says or self.same)


def headers_of(wanted: GuardRequest) -> list[tuple[str, str]]:
    """Return the headers that were given again.

    Raises:
        UsageError: if one is none.
    """
    found = []
    for text in wanted.headers:
        name, colon, value = text.partition(":")
        if not colon or not name.strip():
            raise UsageError("--header: write it as NAME: VALUE, such as Authorization: Bearer ...")
        found.append((name.strip(), value.strip()))
    return found


def command_text(words: Sequence[str]) -> str:
    """Return a command line that repeats a guard, without secrets: of servers, variables and headers."""
    return shlex.join(map(_shown, words))


def _shown(word: str) -> str:
    kind, equals, rest = word.partition("=")
    if equals and kind.removeprefix("--").rpartition("=")[2] in ("dsn", "baseline", "candidate"):
        return f"{kind}={_shown(rest)}" if kind != "dsn" else f"dsn={redact(rest)}"
    name, colon, _ = word.partition(":")
    if colon and is_secret(name) and "//" not in word:
        return f"{name}:***"
    return redact(word)
