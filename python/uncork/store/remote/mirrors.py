"""A register of the local folders that mirror a store at an address; checking it costs almost nothing.

All commands write and read local folders. A registered folder mirrors an address: what is read from
it is fetched first, and what a command wrote into it is sent when the command ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from uncork.errors import StoreError

if TYPE_CHECKING:
    from uncork.store.remote.mirror import AddressMirror

ABSENT: Final = ".absent"
"""An empty file in a mirrored run, which marks that some of its files are only at the address."""

_opened: Final[dict[Path, AddressMirror]] = {}


def register(mirror: AddressMirror) -> None:
    """Register a folder as a mirror, for this process."""
    _opened[mirror.root] = mirror


def mirror_of(root: Path) -> AddressMirror | None:
    """Return the mirror of a folder; None if the folder is not a mirror."""
    return _opened.get(root) if _opened else None


def opened() -> tuple[AddressMirror, ...]:
    """Return all mirrors of this process."""
    return tuple(_opened.values())


def shown(root: Path) -> str:
    """Return the name to show for a folder of runs: its address if it has one, else its path."""
    mirror = mirror_of(root)
    return str(root) if mirror is None else mirror.shown


def refresh(root: Path) -> None:
    """Update a folder's list of runs from its address, if it has one.

    Raises SetupError, ConnectError if the address is wrong, or cannot be reached.
    """
    mirror = mirror_of(root)
    if mirror is not None:
        mirror.refresh()


def fetch(runs: Sequence[Path], needed: Sequence[str] | None = None) -> list[StoreError]:
    """Fetch files of runs that are only at an address; return an error for each damaged run.

    `needed` lists the tables and files to fetch; all if None. Raises SetupError, ConnectError if
    the address cannot be reached.
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

    Raises SetupError, ConnectError if the address cannot be reached.
    """
    for start in range(0, len(runs), _AHEAD):
        some = runs[start : start + _AHEAD]
        fetch(some)
        yield from some


_AHEAD: Final = 100
