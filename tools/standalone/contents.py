"""What the standalone folder contains, and under which licences. Pure, but for reading metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from email.message import Message
from pathlib import PurePosixPath
from typing import Final

_GLIBC: Final = frozenset(
    f"lib{name}.so.{number}"
    for name, number in (
        ("c", 6), ("m", 6), ("dl", 2), ("pthread", 0), ("rt", 1), ("util", 1), ("resolv", 2),
    )
)  # fmt: skip
_BUILDING: Final = frozenset({"maturin"})
"""Packages of requirements/run.txt that build uncork and do not run it."""
_UNNEEDED_MODULES: Final = frozenset({
    "test", "idlelib", "tkinter", "turtledemo", "turtle.py", "lib2to3", "ensurepip", "site-packages",
    "dist-packages", "__pycache__", "pydoc_data", "__phello__",
})  # fmt: skip
_UNNEEDED_EXTENSIONS: Final = re.compile(
    r"(_tkinter|_curses(_panel)?|readline|nis|_crypt|_?dbm|_?gdbm|ossaudiodev|_(x|ctypes_)?test\w*|xx\w+)\."
)
_UNNEEDED_IN_PACKAGES: Final = re.compile(
    r"(pyarrow/(include|src|tests)/|.*\.(pxd|pxi|pyx|hpp|h|a|lib)$|numpy/(.*/)?tests/|.*/__pycache__/|\.\.)"
)
_LIBRARIES: Final = {
    "libpython": ("Python", "PSF-2.0"),
    "libssl": ("OpenSSL", "Apache-2.0"),
    "libcrypto": ("OpenSSL", "Apache-2.0"),
    "libffi": ("libffi", "MIT"),
    "libsqlite": ("SQLite", "blessing (public domain)"),
    "libbz": ("bzip2", "bzip2-1.0.6"),
    "liblzma": ("XZ Utils", "0BSD or public domain"),
    "libz": ("zlib", "Zlib"),
    "libuuid": ("util-linux's libuuid", "BSD-3-Clause"),
    "libexpat": ("Expat", "MIT"),
    "libstdc++": ("GCC's C++ library", "GPL-3.0-or-later with GCC-exception-3.1"),
    "libgcc_s": ("GCC's runtime", "GPL-3.0-or-later with GCC-exception-3.1"),
}


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the folder that others wrote: a Python package, a crate or a library."""

    name: str
    version: str
    licence: str


def packages_to_run(pins: str) -> list[str]:
    """Return the packages that requirements/run.txt pins, without those that only build uncork."""
    names = re.findall(r"^([A-Za-z0-9_.-]+)==", pins, re.MULTILINE)
    return [name for name in names if name not in _BUILDING]


def is_needed_file(path: PurePosixPath, *, of_python: bool) -> bool:
    """Return whether a file of Python's library, or of a package, belongs into the folder.

    `path` is relative to the library or to site-packages. Tests, headers and graphical parts are left out.
    """
    if not of_python:
        return _UNNEEDED_IN_PACKAGES.match(str(path)) is None
    if any(part in _UNNEEDED_MODULES or part.startswith("config-") for part in path.parts):
        return False
    return path.parts[0] != "lib-dynload" or _UNNEEDED_EXTENSIONS.match(path.name) is None


def is_needed_library(name: str) -> bool:
    """Return whether a shared library must be in the folder, because it is not a part of glibc."""
    return name not in _GLIBC and not name.startswith(("ld-linux", "linux-vdso"))


def library_part(name: str) -> Part:
    """Return what is known of a shared library by its file's name.

    Raises:
        SystemExit: if its licence is unknown.
    """
    stem = re.sub(r"[0-9.]*\.so.*", "", name)
    if stem not in _LIBRARIES:
        raise SystemExit(f"{name}: nobody looked at its licence; add it to {__file__}, or leave it out")
    title, licence = _LIBRARIES[stem]
    return Part(title, name, licence)


def licence_of(metadata: Message) -> str:
    """Return the licence that a package's metadata names: the expression, or the classifiers, or the text."""
    if expression := metadata.get("License-Expression"):
        return str(expression)
    classifiers = [
        line.rpartition(" :: ")[2]
        for line in metadata.get_all("Classifier", [])
        if line.startswith("License :: ") and not line.endswith("OSI Approved")
    ]
    text = str(metadata.get("License") or "").strip()
    return " or ".join(classifiers) or (text.splitlines() or ["see its files"])[0][:80]


def glibc_needed(files: Iterable[bytes]) -> str:
    """Return the newest version of glibc whose symbols binaries use, such as ``2.34``."""
    versions = {
        tuple(map(int, found.decode().split(".")))
        for content in files
        for found in re.findall(rb"\0GLIBC_(2\.[0-9]+)(?:\.[0-9]+)?(?=\0)", content)
    }
    return ".".join(map(str, max(versions, default=(2, 17))))


def third_party_page(kinds: Sequence[tuple[str, Sequence[Part]]]) -> str:
    """Return the text of THIRD-PARTY.txt."""
    lines = [
        "What others wrote in this folder, with its licences",
        "",
        "The licence texts of the Python packages are in lib/python3.*/*-packages/*.dist-info,",
        "that of Python is lib/python3.*/LICENSE.txt, and those of the shared libraries are in licences/.",
        "psycopg (LGPL) is in files of its own, which you may replace.",
    ]
    for title, parts in kinds:
        width = max(len(f"{one.name} {one.version}") for one in parts)
        lines += ["", title, "-" * len(title)]
        lines += [f"{f'{one.name} {one.version}':{width}}  {one.licence}" for one in parts]
    return "\n".join(lines) + "\n"
