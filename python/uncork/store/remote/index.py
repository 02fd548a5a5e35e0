"""Read the index of runs at an address: list all of it, and read the entries that changed."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Final

from uncork.errors import StoreError, UncorkError
from uncork.store.remote.objects import Entry, Remote
from uncork.store.remote.record import (
    CATALOGUE,
    INDEX,
    KnownRun,
    Record,
    RunDocument,
    catalogue_of,
    listing_of,
    now,
    read_catalogue_copy,
    run_path,
    stamp_of,
)

_WORTH: Final = 200
"""The copy of the index is rewritten when at least this many entries were read one by one."""
_NONE: Final = KnownRun("", "", (0, 0), {})

Documents = dict[str, tuple[str, RunDocument]]
"""Index entries of runs, each with its stamp; the stamp is empty if the entry must be read again."""


@dataclass(frozen=True, slots=True)
class Index:
    """The index at an address. `ids` are the runs that have an entry, and `tags` their tags.

    `documents` are the entries that changed, and `damaged` the errors for entries that cannot be read.
    `names` holds a stamp and a run's id for each name.
    """

    ids: Set[str]
    documents: Documents
    damaged: Mapping[str, StoreError]
    tags: Mapping[str, tuple[str, ...]]
    names: Mapping[str, tuple[str, str]]


def read_index(remote: Remote, before: Record, here: Set[str]) -> Index:
    """List the index, and read entries that changed, or whose run is not in the local folders `here`.

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
    names = _names(remote, listing.names, before)
    return Index(stamps.keys(), documents, damaged, listing.tags, names)


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
