"""Find the values of a statement's parameters in a text of it, and write values into a statement. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from uncork.model.records import Record
from uncork.profile.shapes.nodes import Token, kind_of, only_statement, rewritten, tokens_of

CONSTANTS: Final = frozenset(
    {"SCONST", "USCONST", "ICONST", "FCONST", "BCONST", "XCONST", "TRUE_P", "FALSE_P", "NULL_P"}
)
"""Tokens that are constants."""
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
    whole, spans, tokens = template.encode(), tokens_of(template), tokens_of(text)
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    found: dict[int, FoundValue] = {}
    place = 0
    ends = [span.start for span in spans[1:]] + [len(whole)]
    for span, following in zip(spans, ends, strict=True):
        if span.kind != "PARAM":
            found_text = tokens[place].text if place < len(tokens) else ""
            quoted = span.text.startswith(('"', "'"))
            if span.text != found_text and (quoted or span.text.lower() != found_text.lower()):
                return None
            place += 1
            continue
        taken = _constant(tokens, place) or _field(tokens, place)
        if taken is None:
            return None
        value: FoundValue
        value, place = taken
        if _SHORTENED.search(whole[span.end : following]):
            values = [value]
            while place < len(tokens) and tokens[place].text == ",":
                taken = _constant(tokens, place + 1)
                if taken is None:
                    return None
                value, place = taken
                values.append(value)
            value = tuple(values)
        number = int(span.text[1:])
        if found.setdefault(number, value) != value:
            return None
    return found if place == len(tokens) else None


def as_arrays(template: str) -> str:
    """Return a template with ``= ANY ($1)`` for ``IN ($1 /*, ... */)``, a list of any length."""
    template = _IN.sub(lambda found: f"{'<> ALL' if found[1] else '= ANY'} ({found[2]})", template)
    return _ARRAY.sub(r"\1", template)


def array_text(values: Sequence[str | None]) -> str:
    """Return values as the text of an array."""
    known = (None if value is None else re.sub(r'(["\\])', r"\\\1", value) for value in values)
    return "{" + ",".join("NULL" if value is None else f'"{value}"' for value in known) + "}"


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
    tokens = tokens_of(template)
    after_arrows = (token for before, token in pairwise(tokens) if before.text in _ARROWS)
    keys = {int(token.text[1:]) for token in after_arrows if token.kind == "PARAM"}
    keys.update(_beside_columns(tokens))
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
    for (_, _, kind, text), following in pairwise([*tokens, Token(0, 0, "", "")]):
        after = following.text
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


def _replaced(statement: str, replaced: Callable[[int], str]) -> str:
    parameters = [token for token in tokens_of(statement) if token.kind == "PARAM"]
    changes = ((token.start, token.end, replaced(int(token.text[1:]))) for token in parameters)
    return rewritten(statement, changes)


def _constant(tokens: Sequence[Token], place: int) -> tuple[Constant | int, int] | None:
    if place >= len(tokens):
        return None
    text, kind = tokens[place].text, tokens[place].kind
    if kind == "PARAM":
        return int(text[1:]), place + 1
    if text in _SIGNS and place + 1 < len(tokens) and tokens[place + 1].kind in _NUMBERS:
        number = tokens[place + 1].text
        return Constant(f"{text}{number}".lstrip("+"), f"{text}{number}"), place + 2
    if kind not in CONSTANTS:
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
    name, bracket, text = (token.text for token in tokens[place - 2 : place + 1])
    if name.lower() != "extract" or bracket != "(" or not _WORD.fullmatch(text):
        return None
    return Constant(text.lower(), text), place + 1


def _string(literal: str) -> str | None:
    """Return the value of a string or of a string of bits; None if the grammar rejects it."""
    if literal.startswith("'"):
        return literal[1:-1].replace("''", "'")
    node = only_statement(f"SELECT {literal}")
    value = None if node is None else node.select_stmt.target_list[0].res_target.val
    if value is None or kind_of(value) != "a_const":
        return None
    inner = value.a_const
    return str(inner.sval.sval) if inner.WhichOneof("val") == "sval" else None


def opener_words(statement: str) -> dict[int, tuple[str, str]]:
    """Return the two words before each parameter's innermost parenthesis, or before the parameter itself.

    ``IN ($1, $2)`` gives ``("", "IN")`` style pairs: the word before the parenthesis, and the word directly
    before the parameter.
    """
    stack: list[str] = []
    found: dict[int, tuple[str, str]] = {}
    before = ""
    for _, _, kind, text in tokens_of(statement):
        if text in ("(", "["):
            stack.append(before)
        elif text in _CLOSING and stack:
            stack.pop()
        elif kind == "PARAM":
            found.setdefault(int(text[1:]), (stack[-1] if stack else "", before))
        before = text.upper()
    return found
