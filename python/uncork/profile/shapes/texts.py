"""Make a text that the grammar accepts of a template, or of a command with parameters. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from uncork.profile.shapes.nodes import parsed, tokens_of

_PRECISE: Final = frozenset(
    {
        *("BIT", "CHAR_P", "CHARACTER", "NCHAR", "VARCHAR", "VARYING", "FLOAT_P", "INTERVAL", "SECOND_P"),
        *("TIME", "TIMESTAMP", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"),
    }
)
"""Keywords after which brackets have a number, not an expression."""
_ENDS: Final = frozenset({"IDENT", "PARAM", "SCONST", "ICONST", "FCONST", "ASCII_41", "ASCII_93"})
"""Tokens that end an operand."""
_QUESTIONS: Final = frozenset({"?", "?|", "?&", "@?"})
_ROWS: Final = frozenset({"SELECT", "INSERT", "UPDATE", "DELETE_P", "WITH", "MERGE", "VALUES"})
_STANDINS: Final = ("a1", "'1'", "1")
"""An identifier, a string and a number, for parameters of commands in which the grammar has no parameters."""


def accepted(text: str, *, template: bool) -> Any | None:
    """Return the tree of a statement, None if the grammar rejects every form of it.

    With `template`, the text has ``?`` for each value, which becomes ``$1``, ``$2`` and so on.
    """
    found = (parsed(form) for form in _forms(text, template=template))
    return next((tree for tree in found if tree is not None), None)


def numbered(template: str) -> str:
    """Return a template with ``$1``, ``$2`` and so on for its values.

    A ``?`` between two operands is jsonb's operator: ``payload ? ?``.
    """
    whole, tokens = template.encode(), tokens_of(template)
    pieces: list[str] = []
    end, number, value_before = 0, 0, False
    for place, (start, stop, kind) in enumerate(tokens):
        text = whole[start:stop].decode()
        following = whole[tokens[place + 1][0] :].decode()[:1] if place + 1 < len(tokens) else ""
        before = value_before or (place > 0 and tokens[place - 1][2] in _ENDS)
        pieces.append(whole[end:start].decode())
        end, value_before = stop, False
        operator = text in _QUESTIONS and before and (following == "?" or text != "?")
        if kind != "Op" or "?" not in text or operator:
            pieces.append(text)
            continue
        for letter in text:
            if letter == "?":
                number += 1
                pieces.append(f" ${number} ")
            else:
                pieces.append(letter)
        value_before = text.endswith("?")
    return "".join([*pieces, whole[end:].decode()])


def _forms(text: str, *, template: bool) -> Iterator[str]:
    """Yield the texts to try: the statement, without parameters in types, and a command with constants."""
    if template:
        text = numbered(text)
    yield text
    if "$" not in text:
        return
    whole, tokens = text.encode(), tokens_of(text)
    kinds = [kind for _, _, kind in tokens]
    precise = {
        place
        for place in range(2, len(tokens))
        if kinds[place] == "PARAM" and kinds[place - 1] == "ASCII_40" and kinds[place - 2] in _PRECISE
    }
    if precise:
        yield _replaced(whole, tokens, precise, "1")
    if kinds and kinds[0] not in _ROWS:
        every = {place for place, kind in enumerate(kinds) if kind == "PARAM"}
        for one in _STANDINS:
            yield _replaced(whole, tokens, every, one)


def _replaced(whole: bytes, tokens: list[tuple[int, int, str]], places: set[int], text: str) -> str:
    pieces, end = [], 0
    for place in sorted(places):
        start, stop, _ = tokens[place]
        pieces += [whole[end:start].decode(), text]
        end = stop
    return "".join([*pieces, whole[end:].decode()])
