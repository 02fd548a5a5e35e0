"""List, read, write and delete files at an address through fsspec; the only module that imports fsspec.

Writes are atomic: an object store shows an object once it is complete, and elsewhere a file is
written under a temporary name and renamed. The backends read credentials from the environment; this
module neither stores nor shows them.
"""

from __future__ import annotations

import hashlib
import posixpath
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from uncork.errors import ConnectError, SetupError, UncorkError, UsageError
from uncork.model.extras import install_extra
from uncork.store.remote.address import Address

_OBJECT_STORES: Final = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "oci", "memory"})
"""Schemes with atomic writes and without folders."""
_PACKAGES: Final = {
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "az": "adlfs",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "sftp": "paramiko",
    "ssh": "paramiko",
}
"""The packages of backends that the extra `store` does not install, by scheme."""
_S3: Final = ("s3", "s3a")
"""The schemes whose backend the extra `store` installs."""
_AT_ONCE: Final = 256
_SMALL_BYTES: Final = 8 << 20
_TAGS: Final = ("ETag", "etag", "md5Hash", "generation")
_TIMES: Final = ("LastModified", "last_modified", "updated", "mtime", "modified", "created")


@dataclass(frozen=True, slots=True)
class Entry:
    """A file at an address: its path below the address, its size, and a stamp that changes with the file.

    `changed_at` is when it last changed, None if unknown. `exact` means that the stamp comes from
    the content, not from a clock that may be coarse.
    """

    path: str
    size: int
    stamp: str
    changed_at: datetime | None
    exact: bool


class Remote:
    """The files at an address. Paths are relative to the address, with slashes.

    Raises:
        UsageError: if the backend for the scheme is not installed.
        SetupError: from any method, if the address does not exist (such as a missing bucket).
        ConnectError: from any method, if the address cannot be reached, or refuses access.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._whole_writes = address.scheme in _OBJECT_STORES
        self._made: set[str] = set()
        self._opened: tuple[Any, str] | None = None
        _look_for_backend(address)

    def files(self, folder: str) -> list[Entry]:
        """Return all files below a folder; empty if there is no such folder."""
        with self._translated("list"):
            fs, root = self._fs()
            fs.invalidate_cache()
            try:
                found = fs.find(f"{root}/{folder}", detail=True)
            except FileNotFoundError:
                if self._whole_writes:
                    raise
                found = {}
            skip = len(root) + 1
            return [_entry(path[skip:], info) for path, info in found.items() if not _is_draft(path)]

    def folders(self) -> list[str]:
        """Return the names of the top-level folders."""
        with self._translated("list"):
            fs, root = self._fs()
            fs.invalidate_cache()
            try:
                found = fs.ls(root, detail=True)
            except FileNotFoundError:
                return []
            return [
                posixpath.basename(one["name"].rstrip("/")) for one in found if one["type"] == "directory"
            ]

    def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """Return the contents of files, read many at once; missing files are left out."""
        content: dict[str, bytes] = {}
        with self._translated("read"):
            fs, root = self._fs()
            for start in range(0, len(paths), _AT_ONCE):
                some = {f"{root}/{path}": path for path in paths[start : start + _AT_ONCE]}
                answers = fs.cat(list(some), on_error="return")
                for full, answer in answers.items():
                    if isinstance(answer, FileNotFoundError):
                        continue
                    if isinstance(answer, BaseException):
                        raise answer
                    content[some[full]] = answer
        return content

    def read_to(self, path: str, target: Path) -> bool:
        """Copy a large file to this machine; return False if it does not exist."""
        with self._translated("read"):
            fs, root = self._fs()
            try:
                fs.get_file(f"{root}/{path}", str(target))
            except FileNotFoundError:
                return False
        return True

    def write(self, path: str, content: bytes) -> None:
        """Write a file atomically."""
        with self._translated("write"):
            fs, root = self._fs()
            full = f"{root}/{path}"
            if self._whole_writes:
                fs.pipe_file(full, content)
                return
            draft = self._draft(full)
            fs.pipe_file(draft, content)
            fs.mv(draft, full)

    def write_files(self, files: Mapping[str, Path]) -> None:
        """Upload local files, many at once, each atomically."""
        with self._translated("write"):
            fs, root = self._fs()
            small: dict[str, bytes] = {}
            for path, source in files.items():
                full = f"{root}/{path}"
                if not self._whole_writes:
                    draft = self._draft(full)
                    fs.put_file(str(source), draft)
                    fs.mv(draft, full)
                elif source.stat().st_size > _SMALL_BYTES:
                    fs.put_file(str(source), full)
                else:
                    small[full] = source.read_bytes()
                if len(small) >= _AT_ONCE or sum(map(len, small.values())) > 8 * _SMALL_BYTES:
                    fs.pipe(small)
                    small = {}
            if small:
                fs.pipe(small)

    def remove(self, paths: Sequence[str]) -> None:
        """Delete files; missing files are not an error."""
        with self._translated("remove from"):
            fs, root = self._fs()
            for start in range(0, len(paths), _AT_ONCE):
                some = [f"{root}/{path}" for path in paths[start : start + _AT_ONCE]]
                try:
                    fs.rm(some)
                except FileNotFoundError:
                    for text in some:
                        if fs.exists(text):
                            fs.rm_file(text)

    def remove_folder(self, folder: str) -> None:
        """Delete a folder with its files; in a store without folders, all files with that prefix."""
        self.remove([entry.path for entry in self.files(folder)])
        if not self._whole_writes:
            with self._translated("remove from"):
                fs, root = self._fs()
                if fs.exists(f"{root}/{folder}"):
                    fs.rm(f"{root}/{folder}", recursive=True)

    # ---- steps ----

    def _fs(self) -> tuple[Any, str]:
        if self._opened is None:
            from fsspec.core import url_to_fs  # noqa: PLC0415 -- optional, and slow to load

            fs, root = url_to_fs(self.address.text)
            self._opened = fs, root.rstrip("/")
        return self._opened

    def _draft(self, full: str) -> str:
        folder, name = posixpath.split(full)
        if folder not in self._made:
            self._fs()[0].makedirs(folder, exist_ok=True)
            self._made.add(folder)
        return f"{folder}/.{name}.{secrets.token_hex(4)}.new"

    @contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        """Convert errors of the backend into errors of uncork, with a message of one line."""
        shown = self.address.shown
        try:
            yield
        except UncorkError:
            raise
        except FileNotFoundError as error:
            raise SetupError(f"{shown}: does not exist: {self._words(error)}") from error
        except PermissionError as error:
            raise ConnectError(
                f"{shown}: not allowed to {doing} it: {self._words(error)}; check the credentials, which "
                "come from the environment"
            ) from error
        except Exception as error:  # backends raise errors of any type
            raise ConnectError(f"{shown}: cannot {doing} it: {self._words(error)}") from error

    def _words(self, error: BaseException) -> str:
        """Return the message of an error in one line, without the password of the address."""
        text = " ".join(str(error).split()) or type(error).__name__
        return text.replace(self.address.text, self.address.shown)[:300].rstrip(".")


def _look_for_backend(address: Address) -> None:
    """Check that a backend for the scheme is installed; raises UsageError with what to install."""
    try:
        from fsspec.registry import (  # noqa: PLC0415 -- optional, and slow to load
            available_protocols,
            get_filesystem_class,
            known_implementations,
            registry,
        )
    except ImportError as error:
        raise UsageError(f"{address.shown} needs fsspec: {_install(address.scheme)}") from error
    if address.scheme not in {*available_protocols(), *registry}:
        raise UsageError(
            f'{address.shown}: unknown scheme "{address.scheme}"; a store can be a folder, s3://, gs://, '
            "az://, sftp://, or another scheme with a backend for fsspec"
        )
    try:
        get_filesystem_class(address.scheme)
    except ImportError as error:
        hint = str(known_implementations.get(address.scheme, {}).get("err", error)).rstrip(".")
        remedy = _install(address.scheme) if address.scheme in {*_S3, *_PACKAGES} else hint
        raise UsageError(f"{address.shown} needs a backend that is not installed: {remedy}") from error


def _install(scheme: str) -> str:
    """Return the command that installs fsspec and the backend of a scheme."""
    return install_extra("store", *([_PACKAGES[scheme]] if scheme in _PACKAGES else []))


def _is_draft(path: str) -> bool:
    name = posixpath.basename(path)
    return name.startswith(".") and name.endswith(".new")


def _entry(path: str, info: Mapping[str, Any]) -> Entry:
    size = int(info.get("size") or 0)
    tag = next((info[name] for name in _TAGS if info.get(name)), None)
    at = _instant(next((info[name] for name in _TIMES if info.get(name)), None))
    stamp = str(tag) if tag is not None else f"{size} {at}"
    return Entry(path, size, hashlib.sha256(stamp.encode()).hexdigest()[:16], at, tag is not None)


def _instant(value: object) -> datetime | None:
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
