"""What changed at an address of late: an object a change, so that a list need not look at all that is there.

::

    ADDRESS/.index/changes/<token>~<part>~<id>

Who changes the index of a run, its tags or a name writes such an object first, which says `begun`, then makes
the change, then writes the object again, which now says `done`. The index itself stays the only truth; these
objects only say where to look. A reader remembers which of them it has seen done, and looks again at the runs
of all others: a change that was done before the objects were listed is seen, and one whose writer was killed
in the middle is looked at each time.

The objects of the last two hours are kept. Whoever has not looked at all that is there for an hour does so:
that is how a change is seen whose object is gone, or that had none, as it was made by an older version or by
hand. Ages are told by the clock of the address alone, by that of the newest object.
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
"""All that is there is looked at when that was last done so long ago."""
_KEPT: Final = timedelta(hours=2)
"""Longer than `WHOLE_S` by what clocks may drift, and listings take."""

Part = Literal["run", "all", "name"]
"""What changed: the index of a run; its tags, too; or names, of which there are few."""
_BEGUN: Final = b"begun\n"
_DONE: Final = b"done\n"


@dataclass(frozen=True, slots=True)
class Change:
    """A change, as its object tells; `id` is that of the run, or empty."""

    path: str
    token: str
    part: Part
    id: str
    done: bool
    at: datetime | None


def changes_of(entries: Iterable[Entry]) -> tuple[Change, ...]:
    """Return the changes that were listed, without what is none: ids become folders. Pure."""
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
    """Return where the changes are that nobody needs: all readers have looked at everything since. Pure."""
    times = [change.at for change in changes if change.at is not None]
    if not times:
        return []
    newest = max(times)
    return [change.path for change in changes if change.at is not None and newest - change.at > _KEPT]


@contextmanager
def announced(remote: Remote, part: Part, id: str = "") -> Iterator[str]:
    """Announce a change while it is made; yield the token by which its maker knows it again.

    If it fails it stays announced, as one whose maker was killed: nobody knows how far it came.
    """
    token = secrets.token_hex(8)
    path = f"{CHANGES}/{token}~{part}~{id}"
    remote.write(path, _BEGUN)
    yield token
    remote.write(path, _DONE)
