"""The request of a guard, for an experiment file or a stored run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from uncork.experiment.guard.sides import Side, parse_side
from uncork.model.records import build_from
from uncork.model.redaction import is_secret, shell_command, variable_for, without_secrets
from uncork.model.variant_evidence import EvidenceKind
from uncork.requests.guard_options import GuardOptions
from uncork.requests.hosts import host_request
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, changes_of

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class GuardRequest:
    """What to guard, and how.

    `target` is an experiment file, or a stored run's id, name or path. `variant` names the variant
    of the file that both sides run; None is the file's baseline. `gates` come before those of the
    file. `acknowledged` is the file of acknowledged changes; None is the one that the experiment
    file names. `same` allows two identical sides (an A/A test of the guard itself). `words` are the
    command's arguments, to repeat it; secrets are removed where they are shown.

    For a stored load only: it is measured `times` times, sent to `url` with `headers` instead of
    its own; or `stored` judges it without measuring. For any stored run, `everything` includes runs
    with broken gates in its history. With `resume`, `target` is the run of an interrupted guard,
    which continues. `on_hosts` says that the hosts of a cluster measure both sides.
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
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    everything: bool = False
    resume: bool = False
    on_hosts: bool = False

    @property
    def two_sides(self) -> bool:
        """Return whether two sides are compared, rather than a stored run with its history."""
        return bool(self.baseline.says or self.candidate.says or self.same)


def guard_request(
    options: GuardOptions, target: str, server: ServerChoice, *, words: Sequence[str]
) -> GuardRequest:
    """Return the request that the options describe, on `target` and `server`; `words` repeat it.

    Raises UsageError if a side cannot be understood, or the hosts' options do not fit together.
    """
    return build_from(
        GuardRequest,
        options,
        target=target,
        baseline=parse_side("baseline", options.baseline or ()),
        candidate=parse_side("candidate", options.candidate or ()),
        gates=tuple(options.gates or ()),
        options=changes_of(options.sets, options.workloads, options.budget, options.precision, options.seed),
        choice=server,
        evidence=options.evidence or (),
        words=tuple(words),
        headers=tuple(options.header or ()),
        resume=options.resume is not None,
        on_hosts=host_request(options) is not None,
    )


def command_text(words: Sequence[str]) -> str:
    """Return a command line that repeats a guard, with environment variables in place of secrets."""
    return shell_command(map(_shown, words))


def _shown(word: str) -> str:
    kind, equals, rest = word.partition("=")
    if equals and kind.removeprefix("--").rpartition("=")[2] in ("dsn", "baseline", "candidate"):
        return f"{kind}={_shown(rest)}" if kind != "dsn" else f"dsn={without_secrets(rest)}"
    name, colon, _ = word.partition(":")
    if colon and is_secret(name) and "//" not in word:
        space = " " if word.startswith(f"{name}: ") else ""
        return f"{name}:{space}{variable_for(name.rpartition('.')[2].rpartition('=')[2])}"
    return without_secrets(word)
