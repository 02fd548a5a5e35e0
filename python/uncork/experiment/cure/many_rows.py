"""Rewrite a statement that a client sends for each row into one that takes all rows as arrays. Pure.

Each parameter becomes an array with a value for each execution. INSERT, UPDATE and DELETE read the arrays as
a table. A lookup by one key compares it with the array, and any other SELECT is evaluated for each set of
values, as a lateral subquery, which returns the rows of the single executions whatever it contains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from uncork.experiment.cure.rewrites import RewriteRefused
from uncork.experiment.spec.sqltext import masked, numbers_in, renumbered

_WORD: Final = re.compile(r"[A-Za-z_][\w$]*|[()]")
_PER_STATEMENT: Final = frozenset(
    "GROUP HAVING LIMIT FETCH OFFSET DISTINCT UNION INTERSECT EXCEPT WINDOW OR WITH".split()  # noqa: SIM905 -- words
)
"""Clauses whose result for many keys differs from the results for single keys."""
_AGGREGATE: Final = re.compile(
    r"\b(?:count|sum|avg|min|max|every|bool_\w+|bit_\w+|\w+_agg|\w+_agg_\w+|percentile_\w+|mode|stddev\w*"
    r"|var\w*|corr|regr_\w+)\s*\(|\bover\s*\(",
    re.IGNORECASE,
)
_KEY: Final = re.compile(
    r"(?P<column>[A-Za-z_][\w$.]*)\s*=\s*\$(?P<number>\d+)(?!\d)(?!\s*(?:::|[.+*/|%^-]))"
)
_UPDATES: Final = re.compile(r"\bDO\s+UPDATE\b", re.IGNORECASE)
_CONFLICT: Final = re.compile(r"\bON\s+CONFLICT\s*\(([^()]*)\)", re.IGNORECASE)

_ONCE: Final = "Each key is in a batch at most once."


@dataclass(frozen=True, slots=True)
class ManyRows:
    """A statement for many rows.

    `$n` in `sql` is the array of the values of the captured statement's `$n`. The values of the parameters
    `keys` must be different in each row of a batch. The first `added` columns of the result are not in the
    result of the captured statement: they say to which key a row belongs. `assumed` are sentences.
    """

    sql: str
    keys: frozenset[int] = frozenset()
    added: int = 0
    assumed: tuple[str, ...] = ()


def many_rows(sql: str, types: Mapping[int, str]) -> tuple[ManyRows, ...]:
    """Return statements that do for many sets of values what a statement does for one, the best first.

    Args:
        sql: the statement, with ``$1``, ``$2``, ....
        types: the types of its parameters.

    Raises:
        RewriteRefused: with the reason, as a sentence.
    """
    text = sql.strip().rstrip(";").rstrip()
    numbers = sorted(numbers_in(text))
    if not numbers:
        raise RewriteRefused("The statement has no parameter, so each execution does the same.")
    unknown = [number for number in numbers if number not in types]
    if unknown:
        raise RewriteRefused(f"The server does not know the type of parameter ${unknown[0]}.")
    if any(types[number].endswith("[]") for number in numbers):
        raise RewriteRefused("A parameter is an array already, so its values cannot become an array.")
    words = list(_top_words(text))
    verb = words[0][0] if words else ""
    if verb == "INSERT":
        return (_insert(text, words, types),)
    if verb == "UPDATE":
        return (_changed(text, words, types, "FROM"),)
    if verb == "DELETE":
        return (_changed(text, words, types, "USING"),)
    if verb in {"SELECT", "WITH"}:
        return tuple(_selects(text, words, types))
    raise RewriteRefused("uncork cannot write it for many rows.")


# ---- statements that change rows ----


def _insert(text: str, words: list[tuple[str, int, int]], types: Mapping[int, str]) -> ManyRows:
    values = next((word for word in words if word[0] == "VALUES"), None)
    if values is None:
        raise RewriteRefused("The INSERT takes its rows from a query, not from VALUES.")
    opens = masked(text).find("(", values[2])
    closes = _closing(text, opens)
    row, rest = text[opens + 1 : closes], text[closes + 1 :].strip()
    if rest.startswith(",") or opens < 0:
        raise RewriteRefused("The INSERT has several rows already.")
    if re.search(r"\bDEFAULT\b", masked(row), re.IGNORECASE):
        raise RewriteRefused(
            "The INSERT asks for a default in VALUES, which a query cannot; name the columns."
        )
    if numbers_in(rest):
        raise RewriteRefused("The part after VALUES has parameters, which differ from row to row.")
    alias, source = _source(text, types)
    prefix = text[: values[1]].rstrip()
    sql = f"{prefix}\nSELECT {_taken(row, alias).strip()}\nFROM {source}"
    keys: frozenset[int] = frozenset()
    if _UPDATES.search(masked(rest)):
        keys = _conflicting(prefix, row, rest) or frozenset(numbers_in(row))
    return ManyRows(f"{sql}\n{rest}".rstrip(), keys, assumed=(_ONCE,) if keys else ())


def _conflicting(prefix: str, row: str, rest: str) -> frozenset[int]:
    """Return the parameters of the columns of ON CONFLICT; empty if they are not known."""
    named = re.search(r"\(([^()]*)\)\s*$", prefix)
    conflict = _CONFLICT.search(rest)
    if named is None or conflict is None:
        return frozenset()
    columns = [word.strip().strip('"').lower() for word in named[1].split(",")]
    expressions = list(_split(row))
    if len(columns) != len(expressions):
        return frozenset()
    by_column = dict(zip(columns, expressions, strict=True))
    wanted = [word.strip().strip('"').lower() for word in conflict[1].split(",")]
    return frozenset(number for text in wanted for number in numbers_in(by_column.get(text, "")))


def _changed(text: str, words: list[tuple[str, int, int]], types: Mapping[int, str], joins: str) -> ManyRows:
    """Return an UPDATE or a DELETE that joins its table with the rows of the arrays."""
    where = next((word for word in words if word[0] == "WHERE"), None)
    if where is None:
        raise RewriteRefused("It has no WHERE, so each execution changes all rows.")
    returning = next((word[1] for word in words if word[0] == "RETURNING"), len(text))
    keys = frozenset(numbers_in(text[where[1] : returning]))
    if not keys:
        raise RewriteRefused("Its WHERE has no parameter, so each execution changes the same rows.")
    alias, source = _source(text, types)
    joined = any(word[0] == joins and word[1] < where[1] for word in words)
    head, tail = text[: where[1]].rstrip(), text[where[1] :]
    link = "," if joined else f"\n{joins}"
    sql = f"{_taken(head, alias)}{link} {source}\n{_taken(tail, alias)}"
    assumed = [_ONCE]
    if re.search(r"(\w+)\s*=\s*(?:\w+\.)?\1\s*[+-]", masked(head)):
        assumed.append("What is added to the same row several times has to be summed up first.")
    return ManyRows(sql, keys, assumed=tuple(assumed))


# ---- statements that read ----


def _selects(text: str, words: list[tuple[str, int, int]], types: Mapping[int, str]) -> Iterator[ManyRows]:
    plain = masked(text)
    if re.search(r"\bFOR\s+(?:NO\s+KEY\s+|KEY\s+)?(?:UPDATE|SHARE)\b", plain, re.IGNORECASE):
        raise RewriteRefused("It locks rows, and one statement would lock all of them from the beginning on.")
    simple = _lookup(text, words)
    if simple is not None:
        yield simple
    alias, source = _source(text, types)
    single = _free("one", text)
    yield ManyRows(
        f"SELECT {alias}.*, {single}.*\nFROM {source}\n"
        f"CROSS JOIN LATERAL (\n{_taken(text, alias)}\n) AS {single}",
        added=len(numbers_in(text)),
    )


def _lookup(text: str, words: list[tuple[str, int, int]]) -> ManyRows | None:
    """Return a lookup by the only parameter that compares it with an array; None if it is more than that."""
    plain = masked(text)
    names = {word[0] for word in words}
    places = [match for match in _KEY.finditer(text) if plain[match.start()] != " "]
    if names & _PER_STATEMENT or _AGGREGATE.search(plain) or len(places) != 1 or plain.count("$") != 1:
        return None
    (place,) = places
    where = next((word for word in words if word[0] == "WHERE"), None)
    came = next((word for word in words if word[0] == "FROM"), None)
    at_top = any(word[1] <= place.start("column") < word[2] for word in words)
    if where is None or came is None or place.start() < where[1] or not at_top:
        return None
    number, column = int(place["number"]), place["column"]
    listed = text[words[0][2] : came[1]]
    name = column.rpartition(".")[2]
    known = re.search(rf"(?:^|[\s,.])(?:{re.escape(name)}\s*(?:,|$)|\*\s*(?:,|$))", listed.strip(), re.I)
    added = "" if known else f" {column},"
    sql = (
        f"{text[: words[0][2]]}{added}{text[words[0][2] : place.start()]}{column} = ANY (${number})"
        f"{text[place.end() :]}"
    )
    return ManyRows(sql, frozenset([number]), 1 if added else 0, (_ONCE,))


# ---- parts of a statement ----


def _source(text: str, types: Mapping[int, str]) -> tuple[str, str]:
    """Return the alias of the rows of the arrays, and the table expression."""
    alias = _free("batch", text)
    numbers = sorted(numbers_in(text))
    arrays = ", ".join(f"${number}::{types[number]}[]" for number in numbers)
    return alias, f"unnest({arrays}) AS {alias} ({', '.join(f'p{number}' for number in numbers)})"


def _taken(text: str, alias: str) -> str:
    return renumbered(text, {number: f"{alias}.p{number}" for number in numbers_in(text)})


def _free(name: str, text: str) -> str:
    """Return a name that a text does not contain."""
    taken = {word.lower() for word in re.findall(r"\w+", text)}
    return (
        name
        if name not in taken
        else next(free for number in range(2, 1000) if (free := f"{name}{number}") not in taken)
    )


def _top_words(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the words outside of parentheses in upper case, with their places."""
    depth = 0
    for match in _WORD.finditer(masked(text)):
        if match[0] in "()":
            depth += 1 if match[0] == "(" else -1
        elif depth == 0:
            yield match[0].upper(), match.start(), match.end()


def _closing(text: str, opens: int) -> int:
    """Return the place of the parenthesis that closes another one."""
    depth = 0
    for place, sign in enumerate(masked(text)[opens:], start=opens):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth == 0:
            return place
    raise RewriteRefused("The statement is not complete.")


def _split(row: str) -> Iterator[str]:
    """Yield the expressions of a row of values."""
    depth = begun = 0
    for place, sign in enumerate(masked(row)):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            yield row[begun:place]
            begun = place + 1
    yield row[begun:]
