"""Merge the indexes that several statements want into the fewest that serve all of them. Pure.

A B-tree serves a statement if its first columns are the ones that the statement compares with ``=``, in any
order, followed by its range or its order. So what a statement wants is a list of steps: a set of columns in
any order, then columns one by one. Two lists agree if one of them, with its sets divided suitably, is a
prefix of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from uncork.model.database.index import IndexKey, IndexShape

_PATTERN: Final = "pattern_ops"
"""Operator classes in the order of characters, for LIKE. They have the usual operator for equality."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An index that a statement wants.

    `equal` are keys whose order is free, the preferred one first; `rest` are keys whose order is fixed: a
    range or an order. `extension` is an extension that the index needs, empty if none.
    """

    table: str
    equal: tuple[IndexKey, ...]
    rest: tuple[IndexKey, ...] = ()
    method: str = "btree"
    predicate: str = ""
    included: tuple[str, ...] = ()
    extension: str = ""

    @property
    def shape(self) -> IndexShape:
        """The index, with its columns in the preferred order."""
        return IndexShape(
            self.table, (*self.equal, *self.rest), self.method, self.included, predicate=self.predicate
        )


@dataclass(frozen=True, slots=True)
class Merged:
    """An index, and which of the wanted ones it serves, by their place in the list."""

    index: IndexShape
    members: tuple[int, ...]
    extension: str = ""


@dataclass(frozen=True, slots=True)
class _Step:
    """Keys in any order; `fixed` if their direction matters to the keys after them."""

    keys: tuple[IndexKey, ...]
    fixed: bool = False


Steps = tuple[_Step, ...]


def merge(wanted: Sequence[Wanted]) -> tuple[Merged, ...]:
    """Return the fewest indexes that serve all wanted ones, those of the first ones first.

    Put the keys that save most first: they decide the order of columns where it is free.
    """
    groups: list[tuple[Wanted, Steps, list[int]]] = []
    for place, with_pattern in enumerate(_with_patterns(wanted)):
        steps = _steps(with_pattern)
        for number, (first, known, members) in enumerate(groups):
            joined = _joined(known, steps) if _alike(first, with_pattern) else None
            if joined is not None:
                groups[number] = (_with_included(first, with_pattern), joined, [*members, place])
                break
        else:
            groups.append((with_pattern, steps, [place]))
    return tuple(
        Merged(
            replace(first.shape, keys=tuple(key for step in steps for key in step.keys)),
            tuple(members),
            first.extension,
        )
        for first, steps, members in groups
    )


def serves(index: IndexShape, wanted: Wanted) -> bool:
    """Return whether an index serves what a statement wants: its first keys are the wanted ones.

    The index must have the predicate that is wanted, or the column of the predicate among its keys.
    """
    if wanted.predicate and not index.predicate:
        tested = IndexKey(wanted.predicate.rpartition(" IS ")[0].strip('"'))
        rest = wanted.rest if wanted.equal else ()
        wanted = replace(wanted, equal=(*wanted.equal, tested), rest=rest, predicate="")
    if index.method != wanted.method or index.predicate not in ("", wanted.predicate):
        return False
    if index.method != "btree":
        return {_same(key) for key in wanted.equal} <= {_same(key) for key in index.keys}
    number = len(wanted.equal)
    first, then = index.keys[:number], index.keys[number : number + len(wanted.rest)]
    if len(first) < number or {_equal(key) for key in first} != {_equal(key) for key in wanted.equal}:
        return False
    return [_ordered(key) for key in then] in (
        [_ordered(key) for key in wanted.rest],
        [_ordered(key, backward=True) for key in wanted.rest],
    )


def key_name(key: IndexKey) -> str:
    """Return a key as a reader knows it: its column, or its expression."""
    return key.column or key.expression


def _with_patterns(wanted: Sequence[Wanted]) -> list[Wanted]:
    """Give keys that are searched for equal values the operator class that a pattern on them needs."""
    classes = {
        (one.table, key.column, key.expression, key.collation): key.opclass
        for one in wanted
        for key in one.rest
        if key.opclass.endswith(_PATTERN)
    }

    def known(wanted: Wanted, key: IndexKey) -> IndexKey:
        found = classes.get((wanted.table, key.column, key.expression, key.collation), "")
        return replace(key, opclass=found) if found and not key.opclass else key

    return [
        replace(one, equal=tuple(known(one, key) for key in one.equal)) if one.method == "btree" else one
        for one in wanted
    ]


def _steps(wanted: Wanted) -> Steps:
    equal = (_Step(wanted.equal),) if wanted.equal else ()
    fixed = len(wanted.rest) > 1 or any(key.nulls_first is not None for key in wanted.rest)
    return (*equal, *(_Step((key,), fixed) for key in wanted.rest))


def _alike(wanted: Wanted, other: Wanted) -> bool:
    same = (wanted.table, wanted.method, wanted.predicate) == (other.table, other.method, other.predicate)
    return same and (wanted.method == "btree" or wanted.equal == other.equal)


def _with_included(wanted: Wanted, other: Wanted) -> Wanted:
    return replace(wanted, included=tuple(dict.fromkeys((*wanted.included, *other.included))))


def _joined(one: Steps, other: Steps) -> Steps | None:
    """Return the steps that both agree on, then the other steps of the longer; None if they disagree."""
    found: list[_Step] = []
    left, right = list(one), list(other)
    while left and right:
        mine, its = left.pop(0), right.pop(0)
        names, others = {_same(key) for key in mine.keys}, {_same(key) for key in its.keys}
        clash = mine.fixed and its.fixed and _ordered(mine.keys[0]) != _ordered(its.keys[0])
        if clash or not (names <= others or others <= names):
            return None
        source = its if its.fixed and not mine.fixed else mine
        common = tuple(key for key in source.keys if _same(key) in names & others)
        found.append(_Step(common, mine.fixed or its.fixed))
        for steps, step, gone in ((left, mine, others), (right, its, names)):
            rest = tuple(key for key in step.keys if _same(key) not in gone)
            if rest:
                steps.insert(0, _Step(rest))
    return (*found, *left, *right)


def _same(key: IndexKey) -> tuple[str, str, str, str]:
    return (
        key.column,
        _squeezed(key.expression),
        key.opclass.rpartition(".")[2],
        key.collation.rpartition(".")[2],
    )


def _equal(key: IndexKey) -> tuple[str, str, str, str]:
    """Return what an index must have to find equal keys: the order of characters does that too."""
    column, expression, opclass, collation = _same(key)
    return column, expression, "" if opclass.endswith(_PATTERN) else opclass, collation


def _squeezed(expression: str) -> str:
    """Return an expression without the spaces, parentheses and casts of texts that PostgreSQL adds."""
    text = expression.lower().replace("::text", "").replace("character varying", "varchar")
    return "".join(sign for sign in text if sign not in " ()").replace("::varchar", "")


def _ordered(key: IndexKey, *, backward: bool = False) -> tuple[tuple[str, str, str, str], bool, bool]:
    first = key.descending if key.nulls_first is None else key.nulls_first
    return _same(key), key.descending != backward, first != backward
