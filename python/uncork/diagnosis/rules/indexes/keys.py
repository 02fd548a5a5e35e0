"""Which key of an index serves a predicate, and the fewest indexes that have all wanted keys. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from uncork.diagnosis.evidence import Evidence
from uncork.model.database.catalogue import ColumnFacts
from uncork.model.database.index import IndexKey, IndexShape
from uncork.model.database.statement import Predicate

# ---- which key of which kind of index serves a predicate ----
#
# See "Operator Classes and Operator Families", "GIN Indexes" and "pg_trgm" in PostgreSQL's manual.


_PATTERN_CLASSES: Final = {
    "text": "text_pattern_ops",
    "character varying": "varchar_pattern_ops",
    "character": "bpchar_pattern_ops",
}
_RANGES: Final = ("range", "multirange")
_NETWORKS: Final = ("inet", "cidr")
_SIDES: Final = ("<<", "<<=", ">>", ">>=")
"""Operators that compare networks: one contains the other."""
_STABLE_TYPES: Final = ("timestamp with time zone", "time with time zone")
"""Types whose text and parts depend on the session's time zone: their casts are not immutable."""
_IN_ZONE: Final = re.compile(r"(?P<column>\"?\b\w+\b\"?)\s+AT TIME ZONE\s+'[^']+'", re.IGNORECASE)
"""A column in a constant time zone."""
_ZONED: Final = {
    "timestamp with time zone": "timestamp without time zone",
    "timestamp without time zone": "timestamp with time zone",
    "time with time zone": "time with time zone",
}
"""Types of times in another time zone, by their type before."""
_IMMUTABLE: Final = frozenset(
    [
        *("lower", "upper", "trim", "btrim", "ltrim", "rtrim", "substr", "substring", "left", "right"),
        *("length", "char_length", "md5", "abs", "round", "floor", "ceil", "trunc", "mod", "coalesce"),
        *("replace", "translate", "overlay", "position", "split_part", "reverse", "nullif", "greatest"),
        *("least", "initcap"),
        *("date", "date_trunc", "date_part", "extract", "jsonb_extract_path_text", "jsonb_extract_path"),
        *("json_extract_path_text", "lpad", "rpad", "sha256", "encode", "starts_with", "regexp_replace"),
    ]
)
"""PostgreSQL's immutable functions that statements compare; those on dates are immutable for values
without a time zone only."""
_CALL: Final = re.compile(r'([a-z_][\w.]*)"?\s*\(', re.IGNORECASE)
_CAST: Final = re.compile(r"::\s*([a-z_ ]+)", re.IGNORECASE)
_SEARCH: Final = re.compile(
    r"to_tsvector\s*\(\s*(?:\(?'\w+'(?:::regconfig)?\)?|\w*config\w*)\s*,", re.IGNORECASE
)
_COLLATED: Final = re.compile(
    r'\(*"?(?P<column>[\w$]+)"?\)?\s+COLLATE\s+(?:[\w$"]+\.)?"?(?P<collation>[\w$.-]+)"?\)*', re.IGNORECASE
)
"""A column in another collation than its own."""
_HOLE: Final = re.compile(r"\$\d+|(?<![\w?])\?(?![\w?|&])")
_DATES: Final = frozenset({"date", "timestamp without time zone", "timestamp with time zone", "timestamp"})

Role = Literal["equal", "range", "special"]


@dataclass(frozen=True, slots=True)
class Served:
    """A key that serves a predicate.

    `role` is "equal" if rows with equal keys are wanted, "range" for a part of the order, "special"
    for methods other than B-trees. `many` is true for several values, whose rows come in no common
    order. `rewrite` is what the statement must say instead to use the index, empty if nothing.
    """

    predicate: Predicate
    key: IndexKey
    role: Role
    method: str = "btree"
    extension: str = ""
    many: bool = False
    rewrite: str = ""


def served_by(predicate: Predicate, table: str, evidence: Evidence) -> Served | None:
    """Return the key that an index needs to serve a predicate; None if none can.

    A predicate that compares nothing known (``<>``, NOT LIKE) is served by none, nor is a barred one.
    """
    facts = evidence.column(table, predicate.column) if predicate.column else None
    plain = bool(predicate.column) and not predicate.cast
    key = IndexKey(predicate.column) if plain else collated_key(_expression(predicate), table, evidence)
    if predicate.negated or predicate.barred or not (predicate.column or predicate.expression):
        return None
    if not plain and (_HOLE.search(key.expression) or not can_be_indexed(predicate, table, evidence)):
        return None
    if predicate.operator in ("=", "in") or (
        plain and predicate.operator in ("is null", "is true", "is false")
    ):
        return Served(
            predicate, key, "equal", many=predicate.operator == "in" and predicate.value != "subquery"
        )
    if predicate.operator in ("<", "<=", ">", ">=", "between"):
        return Served(predicate, key, "range")
    if predicate.operator in ("like", "ilike", "~", "~*"):
        return _pattern(predicate, key, facts)
    return _special(predicate, key, facts)


def collated_key(expression: str, table: str, evidence: Evidence) -> IndexKey:
    """Return the key for an expression; a column in another collation is a key on the column.

    An index serves comparisons and orders in its own collation only.
    """
    found = _COLLATED.fullmatch(expression.strip())
    facts = None if found is None else evidence.column(table, found["column"])
    if found is None or facts is None:
        return IndexKey("", expression)
    other = found["collation"] != facts.collation
    return IndexKey(facts.name, collation=found["collation"] if other else "")


def pattern_kind(predicate: Predicate) -> Literal["prefix", "infix", ""]:
    """Return whether a pattern begins with plain text or with a wildcard; empty if it is unknown."""
    if predicate.operator in ("ilike", "~", "~*"):
        return "infix"
    if not predicate.literal:
        return ""
    return "infix" if predicate.literal.startswith(("%", "_")) else "prefix"


def can_be_indexed(predicate: Predicate, table: str, evidence: Evidence) -> bool:
    """Return whether the side of a predicate that belongs to a table is immutable, as an index requires."""
    names = (predicate.column,) if predicate.column else predicate.columns
    facts = [found for found in (evidence.column(table, name) for name in names) if found is not None]
    types = {found.type for found in facts}
    if predicate.column:
        return not predicate.cast or _immutable_cast(types, predicate.cast)
    text = predicate.expression
    zoned = [found["column"].strip('"') for found in _IN_ZONE.finditer(text)]
    if zoned and set(zoned) == set(names):
        types = {_ZONED.get(kind, kind) for kind in types}
        text = _IN_ZONE.sub(lambda found: found["column"], text)
    if "to_tsvector" in text.lower():
        return _SEARCH.search(text) is not None
    for name in called_functions(text):
        known = [
            function for function in evidence.catalogue.functions if function.name.rpartition(".")[2] == name
        ]
        if known:
            if any(found.volatility != "immutable" for found in known):
                return False
        elif name not in _IMMUTABLE:
            return False
    if types & set(_STABLE_TYPES) and (_CALL.search(text) or "::" in text):
        return False
    return all(_immutable_cast(types, cast.strip()) for cast in _CAST.findall(text))


def called_functions(expression: str) -> tuple[str, ...]:
    """Return the functions that an expression calls, in lower case, without schemas and quotes."""
    return tuple(name.lower().rpartition(".")[2] for name in _CALL.findall(expression))


def _immutable_cast(types: set[str], cast: str) -> bool:
    """Return whether a cast depends on no setting: to and from dates most casts do."""
    target = cast.lower()
    if types & set(_STABLE_TYPES):
        return False
    dated = bool(types & _DATES)
    if target in ("date", "timestamp", "timestamp without time zone"):
        return dated
    return not (dated or target in _DATES or target.startswith(("time", "interval")))


def _expression(predicate: Predicate) -> str:
    return f"({predicate.column}::{predicate.cast})" if predicate.column else predicate.expression


def _pattern(predicate: Predicate, key: IndexKey, facts: ColumnFacts | None) -> Served:
    """Return the key for a pattern: a B-tree's if it begins with plain text, trigrams otherwise."""
    if pattern_kind(predicate) == "prefix" and predicate.operator == "like":
        collation = "" if facts is None else facts.collation
        kind = "text" if facts is None or not key.column else facts.type
        opclass = "" if collation in ("C", "POSIX", "ucs_basic") else _PATTERN_CLASSES.get(kind, "")
        return Served(predicate, IndexKey(key.column, key.expression, opclass=opclass), "range")
    return Served(
        predicate, IndexKey(key.column, key.expression, opclass="gin_trgm_ops"), "special", "gin", "pg_trgm"
    )


def _special(predicate: Predicate, key: IndexKey, facts: ColumnFacts | None) -> Served | None:
    """Return the key of a GIN or GiST index, by the type of the column; the default one if it is unknown."""
    kind = "" if facts is None else facts.type
    document = kind == "jsonb" or "->" in key.expression
    array = kind.endswith("[]") or kind.startswith("_")
    network = kind in _NETWORKS or predicate.value_cast in _NETWORKS
    method, rewrite = "gin", ""
    if predicate.operator == "@>" and document:
        key = IndexKey(key.column, key.expression, opclass="jsonb_path_ops")
    elif predicate.operator == "any" and key.column:
        rewrite = f"{key.column} @> ARRAY[value]"
    elif network and key.column and predicate.operator in (*_SIDES, "&&"):
        method, key = "gist", IndexKey(key.column, opclass="inet_ops")
    elif predicate.operator in ("@>", "<@", "&&"):
        method = "gist" if kind.endswith(_RANGES) else "gin"
        if kind and not array and method == "gin":
            return None
    elif predicate.operator not in ("?", "?|", "?&", "@@"):
        return None
    return Served(predicate, key, "special", method, rewrite=rewrite)


# ---- merge the indexes that several statements want into the fewest that serve all of them ----
#
# A B-tree serves a statement if its first columns are the ones that the statement compares with
# ``=``, in any order, followed by its range or its order. So what a statement wants is a list of
# steps: a set of columns in any order, then columns one by one. Two lists agree if one of them,
# with its sets divided suitably, is a prefix of the other.


_PATTERN_OPS: Final = "pattern_ops"
"""Operator classes in the order of characters, for LIKE. They have the usual operator for equality."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An index that a statement wants.

    `equal` are keys whose order is free, the preferred one first; `rest` are keys whose order is
    fixed: a range or an order. `extension` is an extension that the index needs, empty if none.
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
                included = tuple(dict.fromkeys((*first.included, *with_pattern.included)))
                groups[number] = (replace(first, included=included), joined, [*members, place])
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
        (index.table, key.column, key.expression, key.collation): key.opclass
        for index in wanted
        for key in index.rest
        if key.opclass.endswith(_PATTERN_OPS)
    }

    def searched(index: Wanted, key: IndexKey) -> IndexKey:
        found = classes.get((index.table, key.column, key.expression, key.collation), "")
        return replace(key, opclass=found) if found and not key.opclass and index.method == "btree" else key

    return [replace(index, equal=tuple(searched(index, key) for key in index.equal)) for index in wanted]


def _steps(wanted: Wanted) -> Steps:
    equal = (_Step(wanted.equal),) if wanted.equal else ()
    fixed = len(wanted.rest) > 1 or any(key.nulls_first is not None for key in wanted.rest)
    return (*equal, *(_Step((key,), fixed) for key in wanted.rest))


def _alike(wanted: Wanted, other: Wanted) -> bool:
    same = (wanted.table, wanted.method, wanted.predicate) == (other.table, other.method, other.predicate)
    return same and (wanted.method == "btree" or wanted.equal == other.equal)


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
    return column, expression, "" if opclass.endswith(_PATTERN_OPS) else opclass, collation


def _squeezed(expression: str) -> str:
    """Return an expression without the spaces, parentheses and casts of texts that PostgreSQL adds."""
    text = expression.lower().replace("::text", "").replace("character varying", "varchar")
    return "".join(sign for sign in text if sign not in " ()").replace("::varchar", "")


def _ordered(key: IndexKey, *, backward: bool = False) -> tuple[tuple[str, str, str, str], bool, bool]:
    first = key.descending if key.nulls_first is None else key.nulls_first
    return _same(key), key.descending != backward, first != backward
