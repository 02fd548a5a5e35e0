"""The folder or address of runs, and uploads to an address when a verb ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uncork.errors import UncorkError
from uncork.model.redaction import shell_command, variable_for, without_secrets
from uncork.model.units import format_count
from uncork.requests.shared_options import RUNS_HELP

if TYPE_CHECKING:
    from uncork.workbench.publishing import Sent


def place_of_runs(text: str | Path) -> Path:
    """Return the folder of runs that an option names; for an address, the local folder that mirrors it."""
    if "://" not in str(text):
        return Path(text)
    from uncork.workbench.publishing import open_runs  # noqa: PLC0415 -- keeps `uncork --help` fast

    return open_runs(str(text))


RunsOfGroup = Annotated[
    Path,
    typer.Option(
        "--runs",
        metavar="DIR",
        envvar="UNCORK_RUNS",
        parser=place_of_runs,
        help=RUNS_HELP,
    ),
]
RunsOfVerb = Annotated[
    Path | None,
    typer.Option("--runs", metavar="DIR", parser=place_of_runs, help=RUNS_HELP, show_default=False),
]
"""As `RunsOfGroup`, for verbs of `uncork runs`: it overrides the option before the verb."""


def send_written() -> None:
    """Upload the runs that this process wrote for an address, and report; failed ones remain local."""
    from uncork.store.remote.mirrors import opened  # noqa: PLC0415 -- keeps `uncork --help` fast

    if not any(mirror.wrote for mirror in opened()):
        return
    from uncork.workbench import publishing  # noqa: PLC0415 -- as above

    try:
        for sent in publishing.send_written():
            say_sent(sent)
    except (UncorkError, KeyboardInterrupt) as error:
        _note(f"{error or 'interrupted'}; `uncork runs push` uploads the remaining runs")


def say_sent(sent: Sent) -> None:
    """Report which runs were uploaded, which remain local, and how to upload them later."""
    if sent.runs:
        names = ", ".join(sent.runs) if len(sent.runs) <= 3 else format_count(len(sent.runs)) + " runs"
        _note(f"stored at {sent.shown}: {names}")
    troubles, left = [str(trouble) for trouble in sent.troubles], _left(sent.left, sent.shown, sent.root)
    if left:
        troubles = [*troubles[:-1], "; ".join([*troubles[-1:], left])]
    for text in troubles:
        _note(text)


def say_unsent(root: Path) -> None:
    """Report how many local runs have not been uploaded to their address."""
    from uncork.store.remote.mirrors import mirror_of, shown  # noqa: PLC0415 -- keeps `uncork --help` fast

    if mirror_of(root) is not None:
        from uncork.workbench.publishing import unsent  # noqa: PLC0415 -- as above

        left = _left(unsent(root), shown(root), root)
        if left:
            _note(left)


def _note(text: str) -> None:
    from uncork.cli import console  # noqa: PLC0415 -- loads rich, which `uncork --help` does without

    console.note(text)


def _left(left: int, shown: str, root: Path) -> str:
    """Describe how many runs remain local, and how to upload them; empty if there are none."""
    if not left:
        return ""
    runs = "1 run is" if left == 1 else f"{format_count(left)} runs are"
    return f"{runs} not stored at {shown} yet; kept in {root}; upload with `uncork runs push --runs {shown}`"


def redacted_command(words: list[str]) -> str:
    """Return the command that repeats a run, with environment variables in place of secrets."""
    from uncork.store.remote.mirrors import opened  # noqa: PLC0415 -- keeps `uncork --help` fast

    for mirror in opened():
        words = [_without_address(word, mirror.redacted(word)) for word in words]
    return shell_command(["uncork", *map(without_secrets, words)])


def _without_address(word: str, redacted: str) -> str:
    """Return a word with a variable in place of the address of a store, if that holds a password."""
    if redacted == word:
        return word
    option, equals, _ = word.partition("=")
    address = variable_for("UNCORK_RUNS")
    return f"{option}={address}" if equals and option.startswith("--") else address
