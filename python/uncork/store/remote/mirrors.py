"""Which folders of this machine stand for a store at an address: a small register that costs nothing to ask.

All verbs write and read local folders. A folder that is registered here mirrors an address: what is looked
for in it is fetched first, and what a verb wrote into it is sent when the verb ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from uncork.errors import StoreError

__all__ = ["ABSENT", "Mirror", "fetch", "fetched", "mirror_of", "opened", "refresh", "register", "shown"]

ABSENT: Final = ".absent"
"""An empty file in a mirrored run: some of its files are at the address only."""


class Mirror(Protocol):
    """A local folder that mirrors an address; `store.remote.mirror.AddressMirror` is the one there is.

    `wrote` says that this process made or changed a run in it. `damaged` is what is wrong with runs there.
    """

    root: Path
    wrote: bool
    damaged: tuple[StoreError, ...]

    @property
    def shown(self) -> str:
        """The address, without password."""

    def redacted(self, text: str) -> str:
        """Return a text that may hold the address as it was given, without the password."""

    def refresh(self) -> None:
        """Make the list of runs, their names and tags here what they are there."""

    def fetch(self, runs: Iterable[Path], tables: Sequence[str] | None = None) -> list[StoreError]:
        """Bring files of runs here, or those of some tables; return what is wrong with some."""

    def set_tag(self, id: str, tag: str, *, present: bool) -> None:
        """Give a run a tag there, or take it away."""

    def set_name(self, name: str, id: str) -> None:
        """Give a run a name there."""

    def remove(self, id: str) -> bool:
        """Remove a run there; return False if it was kept meanwhile."""

    def remove_leftovers(self) -> int:
        """Remove there what killed processes left; return how much that was."""

    def size_of(self, id: str) -> int:
        """Return how many bytes a run takes there."""


_opened: Final[dict[Path, Mirror]] = {}


def register(mirror: Mirror) -> None:
    """Say that a folder mirrors an address, from now on in this process."""
    _opened[mirror.root] = mirror


def mirror_of(root: Path) -> Mirror | None:
    """Return the mirror that a folder is; None for any other folder."""
    return _opened.get(root) if _opened else None


def opened() -> tuple[Mirror, ...]:
    """Return all mirrors of this process."""
    return tuple(_opened.values())


def shown(root: Path) -> str:
    """Return what people call a place of runs: its address if it has one, else its path."""
    mirror = mirror_of(root)
    return str(root) if mirror is None else mirror.shown


def refresh(root: Path) -> None:
    """Make a folder's list of runs that of its address, if it has one.

    Raises:
        SetupError, ConnectError: if the address is wrong, or cannot be reached.
    """
    mirror = mirror_of(root)
    if mirror is not None:
        mirror.refresh()


def fetch(runs: Sequence[Path], needed: Sequence[str] | None = None) -> list[StoreError]:
    """Bring the files of runs here that are at an address only; return what is wrong with some of them.

    `needed` are the tables, and files beside them, that are wanted; all if it is None.

    Raises:
        SetupError, ConnectError: if the address cannot be reached.
    """
    wanted = [run for run in runs if (run / ABSENT).exists()]
    damaged = []
    for root in {run.parent for run in wanted}:
        mirror, some = mirror_of(root), [run for run in wanted if run.parent == root]
        if mirror is not None:
            damaged += mirror.fetch(some, needed)
            continue
        text = "its files are at an address; name that with --runs"
        damaged += [StoreError(f"{run}: {text}") for run in some]
    return damaged


def fetched(runs: Sequence[Path]) -> Iterator[Path]:
    """Yield runs one by one, each with its files here; they are brought many at once, ahead of being wanted.

    Raises:
        SetupError, ConnectError: if the address cannot be reached.
    """
    for start in range(0, len(runs), _AHEAD):
        some = runs[start : start + _AHEAD]
        fetch(some)
        yield from some


_AHEAD: Final = 100
