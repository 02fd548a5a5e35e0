"""Find the values of a statement's parameters in a text of it, and write values into a statement. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from uncork.model.records import Record
from uncork.profile.shapes.nodes import kind_of, parsed, tokens_of

Token = tuple[str, str]
"""The text of a token, and its kind."""

_CONSTANTS: Final = frozenset(
    {"SCONST", "USCONST", "ICONST", "FCONST", "BCONST", "XCONST", "TRUE_P", "FALSE_P", "NULL_P"}
)
_NUMBERS: Final = frozenset({"ICONST", "FCONST"})
_SIGNS: Final = frozenset({"+", "-"})
_CLOSING: Final = frozenset({")", "]"})
_ARROWS: Final = frozenset({"->", "->>", "#>", "#>>"})
"""Operators that take a value out of a document by its key or path."""
_NOT_CALLED: Final = frozenset(
    {"all", "and", "any", "array", "as", "by", "case", "distinct", "else", "end", "except", "exists"}
    | {"filter", "from", "group", "having", "in", "intersect", "join", "lateral", "like", "ilike", "limit"}
    | {"not", "offset", "on", "or", "over", "returning", "row", "select", "set", "similar", "some", "then"}
    | {"union", "using", "values", "when", "where", "with"}
)
"""Words before a parenthesis that are not the name of a function."""
_NOT_COLUMNS: Final = _NOT_CALLED | frozenset(
    {"asc", "both", "collate", "desc", "escape", "false", "for", "interval", "is", "leading", "null"}
    | {"order", "symmetric", "time", "trailing", "true", "zone"}
)
"""Words in the arguments of a function that are not the name of a column."""
_WORD: Final = re.compile(r"[A-Za-z_\u0080-\uffff][\w$]*|\"(?:[^\"]|\"\")+\"")
_SHORTENED: Final = re.compile(rb"/\*, \.\.\. \*/")
_IN: Final = re.compile(r"\b(NOT\s+)?IN\s*\(\s*(\$\d+)\s*/\*, \.\.\. \*/\s*\)", re.IGNORECASE)
_ARRAY: Final = re.compile(r"\bARRAY\s*\[\s*(\$\d+)\s*/\*, \.\.\. \*/\s*\]", re.IGNORECASE)


class Constant(Record):
    """A constant in the text of a statement: its value, None for NULL, and how the text writes it."""

    value: str | None
    written: str


FoundValue = Constant | int | tuple[Constant | int, ...]
"""What a text has in place of a parameter: a constant, a parameter with this number, or a list of both."""


def found_values(template: str, text: str) -> Mapping[int, FoundValue] | None:
    """Return what a text has in place of the parameters of a template; None if it is another statement.

    `template` is a statement as pg_stat_statements stores it. From PostgreSQL 18 on, it has ``$1 /*, ... */``
    for a list of values. The texts may differ in comments, spaces, and the case of words.
    """
    whole, spans = template.encode(), tokens_of(template)
    tokens = _tokens(text)
    found: dict[int, FoundValue] = {}
    place = 0
    ends = [start for start, _, _ in spans[1:]] + [len(whole)]
    for (start, end, kind), following in zip(spans, ends, strict=True):
        if kind != "PARAM":
            if place >= len(tokens) or not _alike(whole[start:end].decode(), tokens[place][0]):
                return None
            place += 1
            continue
        taken = _constant(tokens, place) or _field(tokens, place)
        if taken is None:
            return None
        value: FoundValue
        value, place = taken
        if _SHORTENED.search(whole[end:following]):
            values = [value]
            while place < len(tokens) and tokens[place][0] == ",":
                taken = _constant(tokens, place + 1)
                if taken is None:
                    return None
                value, place = taken
                values.append(value)
            value = tuple(values)
        number = int(whole[start + 1 : end])
        if found.setdefault(number, value) != value:
            return None
    return found if place == len(tokens) else None


def as_arrays(template: str) -> str:
    """Return a template with ``= ANY ($1)`` for ``IN ($1 /*, ... */)``, a list of any length."""
    template = _IN.sub(lambda found: f"{'<> ALL' if found[1] else '= ANY'} ({found[2]})", template)
    return _ARRAY.sub(r"\1", template)


def array_text(values: Sequence[str | None]) -> str:
    """Return values as the text of an array."""
    escaped = (
        "NULL" if value is None else '"' + re.sub(r'(["\\])', r"\\\1", value) + '"' for value in values
    )
    return "{" + ",".join(escaped) + "}"


def inlined(statement: str, written: Mapping[int, str]) -> tuple[str, tuple[int, ...]]:
    """Replace parameters by SQL, and number the others from $1; also return the earlier numbers of these."""
    numbers: dict[int, int] = {}

    def replaced(number: int) -> str:
        known = written.get(number)
        return f"${numbers.setdefault(number, len(numbers) + 1)}" if known is None else known

    return _replaced(statement, replaced), tuple(numbers)


def with_keys(template: str, texts: Sequence[str]) -> str:
    """Return a template with the constants of indexable expressions that all texts of it share.

    ``payload ->> $1 = $2`` becomes ``payload ->> 'kind' = $2``, and ``date_trunc($1, at) = $2`` becomes
    ``date_trunc('day', at) = $2``: an index needs the constant. Other parameters keep their numbers.
    """
    whole = template.encode()
    tokens = [(whole[start:end].decode(), kind) for start, end, kind in tokens_of(template)]
    keys = {
        int(text[1:])
        for (before, _), (text, kind) in pairwise(tokens)
        if kind == "PARAM" and before in _ARROWS
    }
    keys |= set(_beside_columns(tokens))
    found = [values for text in texts if (values := found_values(template, text)) is not None] if keys else []
    written = {}
    for number in keys:
        seen = {values.get(number) for values in found}
        key = seen.pop() if len(seen) == 1 else None
        if isinstance(key, Constant) and key.value is not None:
            written[number] = key.written
    return _replaced(template, lambda number: written.get(number, f"${number}")) if written else template


def _beside_columns(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the parameters that are arguments of a function beside a column, and time zones of a column."""
    calls: list[tuple[bool, list[int], bool]] = [(False, [], False)]
    before = last = ""
    for (text, kind), (after, _) in pairwise([*tokens, ("", "")]):
        called, numbers, column = calls[-1]
        if text == "(":
            name = last.lower()
            calls.append((bool(_WORD.fullmatch(last)) and name not in _NOT_CALLED, [], False))
        elif text == ")" and len(calls) > 1:
            if called and column:
                yield from numbers
            calls.pop()
            outer, its, known = calls[-1]
            calls[-1] = (outer, its, known or column)
        elif kind == "PARAM":
            numbers.append(int(text[1:]))
            if last.lower() == "zone" and before.lower() == "time":
                yield int(text[1:])
        elif _WORD.fullmatch(text) and text.lower() not in _NOT_COLUMNS and after != "(" and last != "::":
            in_zone = text.lower() == "at" and after.lower() == "time"
            calls[-1] = (called, numbers, column or not in_zone)
        before, last = last, text


def with_values(
    statement: str, values: Sequence[str | None], literal: Callable[[str], str] | None = None
) -> str:
    """Return a statement with its values in place of $1, $2, ...; `literal` quotes a value."""

    def replaced(number: int) -> str:
        value = values[number - 1]
        return "NULL" if value is None else (literal or quoted)(value)

    return _replaced(statement, replaced)


def quoted(value: str) -> str:
    """Return a value as a literal of SQL."""
    return "'" + value.replace("'", "''") + "'"


def _replaced(statement: str, replaced: Callable[[int], str]) -> str:
    whole, end, pieces = statement.encode(), 0, []
    for start, stop, kind in tokens_of(statement):
        if kind == "PARAM":
            pieces += [whole[end:start].decode(), replaced(int(whole[start + 1 : stop]))]
            end = stop
    return "".join([*pieces, whole[end:].decode()])


def _tokens(text: str) -> list[Token]:
    whole = text.encode()
    found = [(whole[start:end].decode(), kind) for start, end, kind in tokens_of(text)]
    while found and found[-1][0] == ";":
        found.pop()
    return found


def _alike(one: str, other: str) -> bool:
    return one == other or (not one.startswith(('"', "'")) and one.lower() == other.lower())


def _constant(tokens: Sequence[Token], place: int) -> tuple[Constant | int, int] | None:
    """Return the constant or the parameter at a place, and the place after it."""
    if place >= len(tokens):
        return None
    text, kind = tokens[place]
    if kind == "PARAM":
        return int(text[1:]), place + 1
    if text in _SIGNS and place + 1 < len(tokens) and tokens[place + 1][1] in _NUMBERS:
        number = tokens[place + 1][0]
        return Constant(f"{text}{number}".lstrip("+"), f"{text}{number}"), place + 2
    if kind not in _CONSTANTS:
        return None
    value = {"TRUE_P": "true", "FALSE_P": "false", "NULL_P": None}.get(kind, text)
    if kind not in _NUMBERS and value == text:
        value = _string(text)
        if value is None:
            return None
    return Constant(value, text), place + 1


def _field(tokens: Sequence[Token], place: int) -> tuple[Constant, int] | None:
    """Return the word that ``extract(hour FROM at)`` has as a constant, and the place after it."""
    if place < 2 or place >= len(tokens):
        return None
    (name, _), (bracket, _), (text, _) = tokens[place - 2 : place + 1]
    if name.lower() != "extract" or bracket != "(" or not _WORD.fullmatch(text):
        return None
    return Constant(text.lower(), text), place + 1


def _string(literal: str) -> str | None:
    """Return the value of a string or of a string of bits; None if the grammar rejects it."""
    if literal.startswith("'"):
        return literal[1:-1].replace("''", "'")
    tree = parsed(f"SELECT {literal}")
    if tree is None:
        return None
    value = tree.stmts[0].stmt.select_stmt.target_list[0].res_target.val
    if kind_of(value) != "a_const":
        return None
    inner = value.a_const
    return str(inner.sval.sval) if inner.WhichOneof("val") == "sval" else None


def opener_words(statement: str) -> dict[int, tuple[str, str]]:
    """Return the two words before each parameter's innermost parenthesis, or before the parameter itself.

    ``IN ($1, $2)`` gives ``("", "IN")`` style pairs: the word before the parenthesis, and the word directly
    before the parameter.
    """
    whole = statement.encode()
    stack: list[str] = []
    found: dict[int, tuple[str, str]] = {}
    words = [(whole[start:end].decode().upper(), kind) for start, end, kind in tokens_of(statement)]
    for (before, _), (text, kind) in pairwise([("", ""), *words]):
        if text in ("(", "["):
            stack.append(before)
        elif text in _CLOSING and stack:
            stack.pop()
        elif kind == "PARAM":
            found.setdefault(int(text[1:]), (stack[-1] if stack else "", before))
    return found
