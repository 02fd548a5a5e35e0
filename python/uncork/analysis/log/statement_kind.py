"""Name the kind of a template: SELECT, COPY FROM, EXPLAIN, and so on."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(r'"(?:[^"]|"")*"|[^\W\d][\w$]*|[()]')
_DEPTH = {"(": 1, ")": -1}
_MAIN = {"select", "insert", "update", "delete", "merge", "values", "table"}
"""The first words of statements that may follow WITH."""
_LONGER = {"with", "copy"}
_PLACEHOLDERS = {"(rare statements)", "(empty statement)"}
"""Names that stand for statements without a template of their own."""


def kind_of(text: str) -> str:
    """Name the kind of a template by its first word; a query behind WITH by the main statement's word.

    COPY is "COPY TO" or "COPY FROM", by its direction.
    """
    end = text.find(" ")
    word = text if end < 0 else text[:end]
    if word.isalpha() and word not in _LONGER:
        return word.upper()  # most kinds are known by the first word
    bare = text.lstrip("( ")
    if text in _PLACEHOLDERS or not bare[:1].isalpha():
        return "other"
    words = _outer_words(bare)
    word = next(words)  # a letter begins it
    if word == "with":
        word = next((word for word in words if word in _MAIN), word)
    elif word == "copy":
        # A query, in brackets, can only be copied to somewhere.
        copies_query = bare[len("copy") :].lstrip().startswith("(")
        direction = "to" if copies_query else next((word for word in words if word in {"to", "from"}), "")
        word = f"copy {direction}".rstrip()
    return word.upper()


def _outer_words(text: str) -> Iterator[str]:
    """Return the words and quoted names outside of brackets."""
    depth = 0
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word in _DEPTH:
            depth = max(0, depth + _DEPTH[word])
        elif depth == 0:
            yield word
