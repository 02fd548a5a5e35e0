"""Differences of a server's counters between two snapshots, and which counters were reset. Pure.

uncork never resets counters; it computes differences. Entries are matched by oid, never by name: several
databases can have the same name in turn, and a dropped database has none. If someone else resets a counter in
between, only its later value is known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from uncork.model.results.database import CounterFacts, KernelFacts, StatementFacts

Row = Mapping[str, Any]
Key = tuple[int | str, int | str, int, bool]
Place = tuple[str, int | str]

RESET: Final = "stats_reset"
_FIGURES: Final = tuple(StatementFacts.__dataclass_fields__)
_SQUARES: Final = "squares_ns2"
"""Computed from the server's means, so rounding can make it fall by a trifle."""
_KERNEL: Final = tuple(KernelFacts.__dataclass_fields__)
_GAUGES: Final = frozenset({"numbackends", "op_bytes", "checksum_failures", "stats_reset"})
"""Columns that are not counters: their value says nothing about the time between the snapshots."""


def statement_key(row: Row) -> Key:
    """Return the key of an entry of pg_stat_statements.

    Runs stored by old versions have only names, no oids.
    """
    if row["user_oid"] is None or row["database_oid"] is None:
        return (row["user"], row["database"], row["query_id"], row["toplevel"])
    return (row["user_oid"], row["database_oid"], row["query_id"], row["toplevel"])


def statement_deltas(before: Sequence[Row], after: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the differences of entries of pg_stat_statements that ran between the snapshots.

    Entries with the same key cannot be distinguished and are left out. This happens in runs stored without
    oids, where all dropped databases have the same name.
    """
    earlier = {statement_key(row): row for row in before}
    taken = Counter(statement_key(row) for row in before)
    taken |= Counter(statement_key(row) for row in after)
    alone = (row for row in after if taken[statement_key(row)] == 1)
    found = (statement_delta(earlier.get(statement_key(row)), row) for row in alone)
    return [row for row in found if row is not None]


def statement_delta(before: Row | None, after: Row) -> dict[str, Any] | None:
    """Return the difference of one entry between the snapshots; None if it did not run.

    If an entry counts from another time than before, or any of its counters fell, it was reset, or evicted
    and created again. Then its whole value is new.
    """
    if before is None or _restarted(before, after):
        return dict(after) if after["calls"] or after["plans"] else None
    if after["calls"] == before["calls"] and after["plans"] == before["plans"]:
        return None
    grown = {name: None if after[name] is None else after[name] - (before[name] or 0) for name in _FIGURES}
    return {**after, **grown}


def _restarted(before: Row, after: Row) -> bool:
    since = before.get("since_us"), after.get("since_us")
    if None not in since and since[0] != since[1]:
        return True
    return any((after[name] or 0) < (before[name] or 0) for name in _FIGURES if name != _SQUARES)


def statement_totals(rows: Iterable[Row]) -> StatementFacts:
    """Add up the entries of one template over users and databases."""
    sums: dict[str, Any] = defaultdict(lambda: None)
    for row in rows:
        for name in _FIGURES:
            if row[name] is not None:
                sums[name] = row[name] + (sums[name] or 0)
    counted = {name: sums[name] for name in _FIGURES}
    optional = ("jit_functions", "jit_ns", _SQUARES)
    return StatementFacts(**{n: v if n in optional else v or 0 for n, v in counted.items()})


def kernel_deltas(before: Iterable[Row], after: Iterable[Row]) -> dict[Key, KernelFacts]:
    """Return how much the kernel counted for each entry between the snapshots, by `statement_key`.

    pg_stat_kcache is reset and loses entries apart from pg_stat_statements. If any counter of an entry fell,
    its whole value is new.
    """
    earlier = {statement_key(row): row for row in before}
    keyed = ((statement_key(row), row) for row in after)
    return {key: KernelFacts(**_grown(earlier.get(key, {}), row, _KERNEL)) for key, row in keyed}


def kernel_totals(found: Iterable[KernelFacts]) -> KernelFacts | None:
    """Add up what the kernel counted for the entries of one template; None if it counted none of them."""
    counted = list(found)
    sums = {name: sum(getattr(kernel, name) for kernel in counted) for name in _KERNEL}
    return KernelFacts(**sums) if counted else None


def counter_deltas(
    before: Sequence[Row], after: Sequence[Row], unread: Iterable[str] = ()
) -> tuple[CounterFacts, ...]:
    """Return how much each counter grew, without counters that did not change.

    If a row counts from another time than before, or any of its counters fell, it was reset, and its whole
    value is new. Views that could not be read before (`unread`) have no difference.
    """
    earlier = {(_place(row), row["counter"]): row["value"] for row in before}
    restarted = _reset_places(before, after) | {
        _place(row)
        for row in after
        if row["counter"] not in _GAUGES and row["value"] < earlier.get((_place(row), row["counter"]), 0.0)
    }
    missing = frozenset(unread)
    found = []
    for row in after:
        if row["counter"] in _GAUGES or row["view"] in missing:
            continue
        place = _place(row)
        then = 0.0 if place in restarted else earlier.get((place, row["counter"]), 0.0)
        if row["value"] != then:
            found.append(CounterFacts(row["view"], row["object"], row["counter"], row["value"] - then))
    return tuple(found)


def resets(before: Sequence[Row], after: Sequence[Row]) -> tuple[str, ...]:
    """Return which counters were reset between the snapshots: views, or objects in a view.

    Objects that did not exist before, such as a new database, do not count as reset.
    """
    places = _reset_places(before, after)
    found = [
        f"{row['view']} of {row['object']}" if row["object"] else row["view"]
        for row in after
        if row["counter"] == RESET and _place(row) in places
    ]
    return tuple(sorted({"pg_stat_io" if name.startswith("pg_stat_io of ") else name for name in found}))


def row_deltas(
    before: Sequence[Row], after: Iterable[Row], counters: Sequence[str], *, read: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield rows of tables or indexes, matched by oid, with their counters as differences.

    If any counter of a row fell, it was reset, and its whole value is new. If the earlier rows could not be
    `read`, all differences are 0.
    """
    earlier = {row["oid"]: row for row in before}
    for row in after:
        changed = _grown(earlier.get(row["oid"], {}), row, counters) if read else dict.fromkeys(counters, 0)
        yield {**row, **changed}


def _grown(then: Row, now: Row, counters: Sequence[str]) -> dict[str, Any]:
    """Return how much counters of a row grew; all of their values if one fell, so that they were reset."""
    values = {name: 0 if now[name] is None else now[name] for name in counters}
    grown = {name: value - (then.get(name) or 0) for name, value in values.items()}
    return values if any(difference < 0 for difference in grown.values()) else grown


def _reset_places(before: Sequence[Row], after: Sequence[Row]) -> set[Place]:
    known = {_place(row) for row in before}
    earlier = {_place(row): row["value"] for row in before if row["counter"] == RESET}
    return {
        place
        for row in after
        if row["counter"] == RESET and (place := _place(row)) in known and row["value"] != earlier.get(place)
    }


def _place(row: Row) -> Place:
    oid = row.get("oid")
    return (row["view"], row["object"] if oid is None else oid)
