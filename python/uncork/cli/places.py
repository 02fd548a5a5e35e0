"""Where runs are: the option that names a folder or an address, and what is sent when a verb ends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from uncork.cli import console
from uncork.errors import UncorkError
from uncork.model.units import format_count

if TYPE_CHECKING:
    from uncork.workbench.publishing import Sent

__all__ = ["HELP", "place_of_runs", "say_sent", "say_unsent", "send_written"]

HELP = "Where runs are stored: a folder, or an address such as s3://BUCKET/PREFIX."


def place_of_runs(text: str | Path) -> Path:
    """Return the folder of runs that an option names; for an address that which mirrors it here."""
    if "://" not in str(text):
        return Path(text)
    from uncork.workbench.publishing import open_runs  # noqa: PLC0415 -- keeps `uncork --help` fast

    return open_runs(str(text))


def send_written() -> None:
    """Send what this process wrote for an address, and say how that went; what fails stays here."""
    from uncork.store.remote.mirrors import opened  # noqa: PLC0415 -- keeps `uncork --help` fast

    if not any(mirror.wrote for mirror in opened()):
        return
    from uncork.workbench import publishing  # noqa: PLC0415 -- as above

    try:
        for sent in publishing.send_written():
            say_sent(sent)
    except (UncorkError, KeyboardInterrupt) as error:
        console.note(f"{error or 'interrupted'}; `uncork runs push` sends what was not sent")


def say_sent(sent: Sent) -> None:
    """Say what was sent, and what stays here and how to send it later."""
    if sent.runs:
        names = ", ".join(sent.runs) if len(sent.runs) <= 3 else format_count(len(sent.runs)) + " runs"
        console.note(f"stored at {sent.shown}: {names}")
    troubles, left = [str(trouble) for trouble in sent.troubles], _left(sent.left, sent.shown, sent.root)
    if left:
        troubles = [*troubles[:-1], "; ".join([*troubles[-1:], left])]
    for text in troubles:
        console.note(text)


def say_unsent(root: Path) -> None:
    """Say how many runs wait here to be sent to an address."""
    from uncork.store.remote.mirrors import mirror_of, shown  # noqa: PLC0415 -- keeps `uncork --help` fast

    if mirror_of(root) is not None:
        from uncork.workbench.publishing import unsent  # noqa: PLC0415 -- as above

        left = _left(unsent(root), shown(root), root)
        if left:
            console.note(left)


def _left(left: int, shown: str, root: Path) -> str:
    """Say how many runs stay here, and how to send them; nothing if there are none."""
    if not left:
        return ""
    runs = "1 run is" if left == 1 else f"{format_count(left)} runs are"
    return f"{runs} not stored at {shown} yet; kept in {root}, sent by `uncork runs push --runs {shown}`"
