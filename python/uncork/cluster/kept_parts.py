"""Keep what nodes send of their parts: in the run of the whole load, so that a lost node loses little."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from uncork.errors import StoreError
from uncork.model.load import LoadProgress
from uncork.store.layout import read_manifest, write_manifest
from uncork.store.parts import RESERVATIONS, part_folder, stored_progress
from uncork.store.snapshots import SNAPSHOTS


class KeptPart:
    """The copy of a node's part: a folder of a run like the one on the node, as far as it is known."""

    def __init__(self, folder: Path, number: int) -> None:
        self.folder = part_folder(folder, number)

    def begin(self, files: Mapping[str, bytes]) -> None:
        """Store what the part wrote by its start; its process runs elsewhere. Raises StoreError."""
        self._write(files)
        if files:
            manifest = read_manifest(self.folder)
            write_manifest(self.folder, replace(manifest, owner=None))

    def add(self, snapshots: bytes, reserved: bytes) -> list[LoadProgress]:
        """Store progress, and the operations that may have begun. Raises StoreError."""
        lines = zlib.decompress(snapshots)
        if not self.folder.is_dir():
            return []
        try:
            with (self.folder / SNAPSHOTS).open("ab") as file:
                file.write(lines)
            (self.folder / RESERVATIONS).write_bytes(reserved)
        except OSError as error:
            raise StoreError(f"cannot store progress in {self.folder}: {error}") from error
        return [stored_progress(json.loads(line)) for line in lines.splitlines()]

    def finish(self, files: Mapping[str, bytes]) -> None:
        """Replace the copy by the part's files at its end. Raises StoreError."""
        (self.folder / SNAPSHOTS).unlink(missing_ok=True)  # the part of a killed process sends it again
        self.begin(files)

    def _write(self, files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts:
                raise StoreError(f"a node sent a file with the path {name!r}, which is not within its run")
            place = self.folder / path
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(zlib.decompress(data))
            except OSError as error:
                raise StoreError(f"cannot store {place}: {error}") from error
