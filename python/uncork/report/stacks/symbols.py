"""Frames without a function's name: how much they take, and what brings the names. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from uncork.model.results.stacks import MeasureFacts
from uncork.report.quantity_words import share_text
from uncork.report.words import series_words

_LEAST: Final = 0.05
"""Smallest share without names that is worth a sentence."""
_NAMED: Final = 0.01
"""Smallest share of a program or library that is named, besides the first."""
_SHOWN: Final = 3
_UNKNOWN: Final = "[unknown]"
_OBJECT: Final = re.compile(r"\[([^\[\] ]+)\]")
"""The frame of a program or library whose function is not known, such as ``[libc.so.6]``."""
_PACKAGES: Final = (
    (r"postgres$", "postgresql-VERSION-dbgsym on Debian, debuginfo-install postgresql-server on Fedora"),
    (r"(libc|libm|libpthread|ld-linux.*)[.-].*so", "libc6-dbg on Debian, debuginfo-install glibc on Fedora"),
    (r"lib(ssl|crypto)\.so", "libssl3-dbgsym on Debian, debuginfo-install openssl-libs on Fedora"),
    (r"(lib)?python3?", "python3-dbg on Debian, debuginfo-install python3 on Fedora"),
)
"""Packages with the debug symbols of a program or library, by its name."""
_OTHER: Final = "the -dbgsym package (Debian) or -debuginfo package (Fedora) of {}"
_OWN: Final = "Build your own programs with -g, and do not strip them."
_GENERATED: Final = (
    "Code generated at run time needs a map for perf: node --perf-basic-prof, python -X perf; in PostgreSQL "
    "set jit = off."
)


def symbol_warning(measure: MeasureFacts, what: str) -> Iterator[str]:
    """Yield how much of a measure is in frames without names, and the packages or flags that bring them.

    `what` is the measure in words. Frames of the kernel always have names, and are left out.
    """
    found = [
        frame for frame in measure.frames if not frame.kernel and _OBJECT.fullmatch(frame.name) and frame.own
    ]
    found.sort(key=lambda one: (-one.own, one.name))
    total = sum(one.own for one in found)
    if total < _LEAST:
        return
    leading = [one for one in found[:_SHOWN] if one is found[0] or one.own >= _NAMED]
    shown = series_words(f"{one.name} {share_text(one.own)}" for one in leading)
    text = f"{share_text(total)} of {what} is in functions without names ({shown})."
    remedies = dict.fromkeys(_package(one.name) for one in leading if one.name != _UNKNOWN)
    if remedies:
        text += f" Install debug symbols: {'; '.join(remedies)}. {_OWN}"
    if any(one.name == _UNKNOWN for one in leading):
        text += f" {_GENERATED}"
    yield text


def _package(name: str) -> str:
    file = name.strip("[]")
    known = (package for pattern, package in _PACKAGES if re.match(pattern, file))
    return next(known, _OTHER.format(file))
