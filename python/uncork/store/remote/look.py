"""Read what is at an address: the whole index, or only recent changes."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from uncork.errors import StoreError, UncorkError
from uncork.store.remote.changes import Change
from uncork.store.remote.objects import Entry, Remote
from uncork.store.remote.record import (
    CATALOGUE,
    INDEX,
    NAMES_OF_RUNS,
    KnownRun,
    Record,
    RunDocument,
    catalogue_of,
    digest_of,
    listing_of,
    now,
    read_catalogue_copy,
    run_path,
    stamp_of,
)

__all__ = ["Look", "look_at_all", "look_at_changes"]

_WORTH: Final = 200
"""The copy of the index is rewritten when at least this many entries were read one by one. With as many
changed runs, the whole index is listed."""
_FEW: Final = 4
"""The tags of up to this many runs are listed one by one; those of more runs, all together."""
_NONE: Final = KnownRun("", "", (0, 0), {})

Documents = dict[str, tuple[str, RunDocument]]
"""Index entries of runs, each with its stamp; the stamp is empty if the entry must be read again."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was found at the address about the runs `ids`; those in `there` have an index entry.

    `documents` are the entries that were read, and `damaged` the errors for others. `tags` are the tags of
    the runs in `tagged`. `names` is None if they were not read. `whole_at` is when the whole index was
    listed, in seconds since 1970, or 0.
    """

    ids: Set[str]
    there: Set[str]
    documents: Documents
    damaged: Mapping[str, StoreError]
    tagged: Set[str]
    tags: Mapping[str, tuple[str, ...]]
    names: Mapping[str, tuple[str, str]] | None
    whole_at: float = 0.0


def look_at_all(remote: Remote, before: Record, here: Set[str], at_s: float) -> Look:
    """List the whole index, and read entries that changed, or whose run is not in the local folders `here`.

    Raises:
        SetupError, ConnectError: see `Remote`.
    """
    listing, at = listing_of(remote.files(INDEX)), now()
    stamps = {id: stamp_of(entry, at) for id, entry in listing.runs.items()}
    changed = [
        id
        for id, stamp in stamps.items()
        if not stamp or id not in here or (before.runs.get(id) or _NONE).stamp != stamp
    ]
    copied: Documents = {}
    if len(changed) >= _WORTH and listing.catalogue:
        copied = read_catalogue_copy(remote.read([CATALOGUE]).get(CATALOGUE, b""))
        copied = {id: one for id, one in copied.items() if one[0] and one[0] == stamps.get(id)}
    documents = {id: copied[id] for id in changed if id in copied}
    wanted = {id: stamps[id] for id in changed if id not in copied}
    read, damaged = _read_indexes(remote, wanted)
    documents |= read
    if len(wanted) >= _WORTH:
        whole = {id: one for id, one in (copied | documents).items() if one[0]}
        with contextlib.suppress(UncorkError):  # without permission to write, it is only slower
            remote.write(CATALOGUE, catalogue_of(whole))
    ids = before.runs.keys() | before.again | stamps.keys()
    names = _names(remote, listing.names, before)
    return Look(ids, stamps.keys(), documents, damaged, ids, listing.tags, names, at_s)


def look_at_changes(remote: Remote, changes: Sequence[Change], before: Record, here: Set[str]) -> Look | None:
    """Read the runs that changed, and known runs that are not in the local folders `here`.

    Return None if there are so many that the whole index should be listed.

    Raises:
        SetupError, ConnectError: see `Remote`.
    """
    new = [change for change in changes if not change.done or change.token not in before.seen]
    again = (before.again | (before.runs.keys() - here)) - {NAMES_OF_RUNS}
    ids = again | {change.id for change in new if change.part != "name"}
    if len(ids) >= _WORTH:
        return None
    documents, damaged = _read_indexes(remote, dict.fromkeys(ids, ""))
    for id, (_, document) in documents.items():
        known = before.runs.get(id)
        if known is not None and known.digest == digest_of(document.content()):
            documents[id] = known.stamp, document
    tagged = again | {change.id for change in new if change.part == "all"}
    folders = [f"{INDEX}/tags/{id}" for id in sorted(tagged)] if len(tagged) <= _FEW else [f"{INDEX}/tags"]
    tags = listing_of([entry for folder in folders for entry in remote.files(folder)]).tags
    names = None
    if NAMES_OF_RUNS in before.again or any(change.part == "name" for change in new):
        names = _names(remote, listing_of(remote.files(f"{INDEX}/names")).names, before)
    return Look(ids, documents.keys() | damaged.keys(), documents, damaged, tagged, tags, names)


def _read_indexes(remote: Remote, stamps: Mapping[str, str]) -> tuple[Documents, dict[str, StoreError]]:
    """Read index entries of runs; return them with their stamps, and an error for each damaged entry."""
    contents = remote.read([run_path(id) for id in stamps])
    documents, damaged = {}, {}
    for id, stamp in stamps.items():
        content = contents.get(run_path(id))
        if content is None:  # pruned meanwhile, or not written yet
            continue
        try:
            documents[id] = stamp, RunDocument.read(content)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            damaged[id] = StoreError(f"{remote.address.shown}/{run_path(id)}: damaged: {error}")
    return documents, damaged


def _names(remote: Remote, listed: Mapping[str, Entry], before: Record) -> dict[str, tuple[str, str]]:
    """Return the names of runs; read only the names that changed."""
    at = now()
    stamps = {name: stamp_of(entry, at) for name, entry in listed.items()}
    names = {
        name: before.names[name]
        for name, stamp in stamps.items()
        if stamp and before.names.get(name, ("", ""))[0] == stamp
    }
    contents = remote.read([listed[name].path for name in stamps if name not in names])
    for path, content in contents.items():
        name = path.rpartition("/")[2]
        names[name] = stamps[name], content.decode(errors="replace").strip()
    return names
