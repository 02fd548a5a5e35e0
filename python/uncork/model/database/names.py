"""Write names and texts as SQL does."""

from __future__ import annotations

import re
from typing import Final

_KEYWORDS: Final = frozenset(
    [
        *("all", "analyse", "analyze", "and", "any", "array", "as", "asc", "both", "case", "cast", "check"),
        *("collate", "column", "constraint", "create", "default", "desc", "distinct", "do", "else", "end"),
        *("except", "false", "fetch", "for", "foreign", "from", "grant", "group", "having", "in"),
        *("intersect", "into", "lateral", "leading", "limit", "not", "null", "offset", "on", "only", "or"),
        *("order", "placing", "primary", "references", "returning", "select", "some", "symmetric", "table"),
        *("then", "to", "trailing", "true", "union", "unique", "user", "using", "variadic", "when", "where"),
        *("window", "with", "initially"),
    ]
)


def quoted(name: str) -> str:
    """Return an identifier in quotes if it needs them; common words count as needing them."""
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name) is not None
    return name if plain and name not in _KEYWORDS else '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + value.replace("'", "''") + "'"


def sql_name(name: str) -> str:
    """Return a table's or index's name as SQL writes it, from ``schema.name`` or ``name`` without quotes."""
    return ".".join(map(quoted, name.split(".", 1)))


def content_query(table: str, content: str = "sum(hashtextextended(whole::text, 0))") -> str:
    """Return a query of a table's number of rows, and of a sum over their content, in any order."""
    columns = f"{literal(table)} AS name, count(*) AS rows, {content} AS content"
    return f"SELECT {columns} FROM {sql_name(table)} AS whole"  # noqa: S608 -- see sql_name
