"""A register of the local folders that mirror a store at an address; checking it costs almost nothing.

All commands write and read local folders. A registered folder mirrors an address: what is read from it is
fetched first, and what a command wrote into it is sent when the command ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol

from uncork.errors import StoreError

ABSENT: Final = ".absent"
"""An empty file in a mirrored run, which marks that some of its files are only at the address."""


class Mirror(Protocol):
    """A local folder that mirrors an address; implemented by `store.remote.mirror.AddressMirror`.

    `wrote` means that this process created or changed a run in it. `damaged` holds an error for each damaged
    run at the address.
    """

    root: Path
    wrote: bool
    damaged: tuple[StoreError, ...]

    @property
    def shown(self) -> str:
        """The address without its password."""

    def redacted(self, text: str) -> str:
        """Remove the password of the address from a text."""

    def refresh(self) -> None:
        """Update the local runs, names and tags from the address."""

    def fetch(self, runs: Iterable[Path], tables: Sequence[str] | None = None) -> list[StoreError]:
        """Fetch the files of runs, or only of some tables; return an error for each damaged run."""

    def set_tag(self, id: str, tag: str, *, present: bool) -> None:
        """Add or remove a tag of a run at the address."""

    def set_name(self, name: str, id: str) -> None:
        """Set the name of a run at the address."""

    def remove(self, id: str) -> bool:
        """Delete a run at the address; return False if it must be kept."""

    def remove_leftovers(self) -> int:
        """Delete what killed processes left at the address; return the number of runs."""

    def size_of(self, id: str) -> int:
        """Return the size of a run at the address, in bytes."""


_opened: Final[dict[Path, Mirror]] = {}


def register(mirror: Mirror) -> None:
    """Register a folder as a mirror, for this process."""
    _opened[mirror.root] = mirror


def mirror_of(root: Path) -> Mirror | None:
    """Return the mirror of a folder; None if the folder is not a mirror."""
    return _opened.get(root) if _opened else None


def opened() -> tuple[Mirror, ...]:
    """Return all mirrors of this process."""
    return tuple(_opened.values())


def shown(root: Path) -> str:
    """Return the name to show for a folder of runs: its address if it has one, else its path."""
    mirror = mirror_of(root)
    return str(root) if mirror is None else mirror.shown


def refresh(root: Path) -> None:
    """Update a folder's list of runs from its address, if it has one.

    Raises:
        SetupError, ConnectError: if the address is wrong, or cannot be reached.
    """
    mirror = mirror_of(root)
    if mirror is not None:
        mirror.refresh()


def fetch(runs: Sequence[Path], needed: Sequence[str] | None = None) -> list[StoreError]:
    """Fetch files of runs that are only at an address; return an error for each damaged run.

    `needed` lists the tables and files to fetch; all if None.

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
        text = "its files are at an address; name the address with --runs"
        damaged += [StoreError(f"{run}: {text}") for run in some]
    return damaged


def fetched(runs: Sequence[Path]) -> Iterator[Path]:
    """Yield runs one by one, after fetching their files; many runs are fetched together in advance.

    Raises:
        SetupError, ConnectError: if the address cannot be reached.
    """
    for start in range(0, len(runs), _AHEAD):
        some = runs[start : start + _AHEAD]
        fetch(some)
        yield from some


_AHEAD: Final = 100
