"""pgbench's built-in scripts, and how a command line selects scripts: by a prefix of the name, with a weight.

The texts must be identical to pgbench's, because loads are compared with pgbench's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from uncork.errors import UsageError

LARGEST_WEIGHT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Builtin:
    """A built-in script of pgbench: its name, pgbench's description of it, and its text."""

    name: str
    description: str
    text: str


_KEYS = r"""\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
"""
_ACCOUNT = """BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
"""
_TELLER_AND_BRANCH = """UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
"""
_HISTORY = (
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) "
    "VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\nEND;\n"
)
_LOOK_UP = r"""\set aid random(1, 100000 * :scale)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
"""

SCRIPTS: Final[Mapping[str, Builtin]] = MappingProxyType(
    {
        script.name: script
        for script in (
            Builtin(
                "tpcb-like", "<builtin: TPC-B (sort of)>", _KEYS + _ACCOUNT + _TELLER_AND_BRANCH + _HISTORY
            ),
            Builtin("simple-update", "<builtin: simple update>", _KEYS + _ACCOUNT + _HISTORY),
            Builtin("select-only", "<builtin: select only>", _LOOK_UP),
        )
    }
)
"""The built-in scripts by their names, in pgbench's order."""


def find(prefix: str) -> Builtin:
    """Return the only built-in script whose name begins with `prefix`. Raises UsageError."""
    found = [script for script in SCRIPTS.values() if script.name.startswith(prefix)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(script.name for script in found or SCRIPTS.values())
    if not found:
        raise UsageError(f'there is no built-in script "{prefix}"; the built-in scripts are {names}')
    raise UsageError(f'"{prefix}" matches several built-in scripts: {names}; write more of the name')


def split_weight(text: str) -> tuple[str, int]:
    """Split ``name@weight`` into name and weight; without a weight, the weight is 1.

    The last @ separates the two, so a file name that contains an @ needs a weight. A script with weight 0
    stays in the list but never runs. Raises UsageError if the weight is not a whole number from 0 to
    2147483647, or the name is empty.
    """
    name, at, weight = text.rpartition("@")
    if not at:
        return text, 1
    if not name:
        raise UsageError(f'"{text}" has a weight but no script; write name@weight')
    if not (weight.isascii() and weight.isdigit()) or int(weight) > LARGEST_WEIGHT:
        raise UsageError(
            f'the weight of "{name}" must be a whole number from 0 to {LARGEST_WEIGHT}, not "{weight}" '
            "(a name that contains an @ needs a weight: name@1)"
        )
    return name, int(weight)
