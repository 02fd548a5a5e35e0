"""Recent changes at an address, one object for each, so that listing need not read the whole index.

::

    ADDRESS/.index/changes/<token>~<part>~<id>

A writer that changes the index of a run, its tags or a name first writes such an object with the content
`begun`, then makes the change, then writes the object again with the content `done`. The index remains the
only truth; these objects only say where to look. A reader remembers which changes it has seen as `done`, and
reads the runs of all other changes again. So it sees every change that was done before it listed the objects,
and it reads a change whose writer was killed each time.

Objects are kept for two hours. A reader that has not read the whole index for an hour does so. In this way it
sees changes whose object is gone, or that had none because a person made them. Ages use
only the clock of the address: they are relative to the newest object.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, cast, get_args

from uncork.store.remote.objects import Entry, Remote
from uncork.store.remote.record import INDEX

__all__ = ["CHANGES", "WHOLE_S", "Change", "announced", "changes_of", "outlived"]

CHANGES: Final = f"{INDEX}/changes"
WHOLE_S: Final = 3600.0
"""The whole index is read again after this time."""
_KEPT: Final = timedelta(hours=2)
"""Longer than `WHOLE_S`, to allow for clock drift and slow listings."""

Part = Literal["run", "all", "name"]
"""What changed: the index of a run, its index and tags, or names (all are read again; they are few)."""
_BEGUN: Final = b"begun\n"
_DONE: Final = b"done\n"


@dataclass(frozen=True, slots=True)
class Change:
    """A change, as its object describes it; `id` is the run's, or empty."""

    path: str
    token: str
    part: Part
    id: str
    done: bool
    at: datetime | None


def changes_of(entries: Iterable[Entry]) -> tuple[Change, ...]:
    """Parse listed objects as changes; ignore unsafe names, because ids become folders. Pure."""
    found = []
    for entry in entries:
        token, _, rest = entry.path.removeprefix(f"{CHANGES}/").partition("~")
        part, _, id = rest.partition("~")
        safe = not id.startswith(".") and "/" not in id and (id == "") == (part == "name")
        if token and part in get_args(Part) and safe:
            done = entry.size == len(_DONE)
            found.append(Change(entry.path, token, cast("Part", part), id, done, entry.changed_at))
    return tuple(found)


def outlived(changes: Collection[Change]) -> list[str]:
    """Return the paths of changes that no reader needs, since all have read the whole index since. Pure."""
    times = [change.at for change in changes if change.at is not None]
    if not times:
        return []
    newest = max(times)
    return [change.path for change in changes if change.at is not None and newest - change.at > _KEPT]


@contextmanager
def announced(remote: Remote, part: Part, id: str = "") -> Iterator[str]:
    """Announce a change while it is made; yield a token by which its writer recognizes it.

    If the change fails, it remains announced like one whose writer was killed: its state is unknown.
    """
    token = secrets.token_hex(8)
    path = f"{CHANGES}/{token}~{part}~{id}"
    remote.write(path, _BEGUN)
    yield token
    remote.write(path, _DONE)
