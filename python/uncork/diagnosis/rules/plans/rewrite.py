"""Rewrite the text of simple statements. Pure.

A rewrite that does not recognise its statement returns an empty text: then the candidate is a sentence only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

_PARAMETER: Final = re.compile(r"\$(\d+)")
_NAME: Final = r'(?:"(?:[^"]|"")+"|[A-Za-z_][\w$]*)'
_QUALIFIED: Final = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_TAIL: Final = re.compile(
    r"\s+LIMIT\s+(?P<limit>\S+)\s+OFFSET\s+\S+\s*;?\s*$|"
    r"\s+OFFSET\s+\S+(?:\s+ROWS?)?\s+(?:LIMIT\s+(?P<later>\S+)|FETCH\s+(?:FIRST|NEXT)\s+(?P<rows>\S+)\s+"
    r"ROWS?\s+ONLY)\s*;?\s*$",
    re.IGNORECASE,
)
_ORDER: Final = re.compile(r"\s*\bORDER\s+BY\b", re.IGNORECASE)
_WHERE: Final = re.compile(r"\bWHERE\b", re.IGNORECASE)
_NOT_IN: Final = re.compile(
    rf"(?P<side>{_QUALIFIED})\s+NOT\s+IN\s*\(\s*SELECT\s+(?P<column>{_QUALIFIED})\s+FROM\s+"
    rf"(?P<table>{_QUALIFIED})(?:\s+(?:AS\s+)?(?P<alias>(?!WHERE\b){_NAME}))?"
    r"(?P<where>\s+WHERE\s+[^()]*)?\s*\)",
    re.IGNORECASE,
)
_WORDS: Final = re.compile(r"\b(?:ORDER|GROUP|LIMIT|UNION|EXCEPT|INTERSECT|HAVING|OR)\b", re.IGNORECASE)
_STAR: Final = re.compile(r"^(\s*SELECT\s+)\*(?=\s)", re.IGNORECASE)

_COUNT: Final = re.compile(
    rf"(?P<head>\s*SELECT\s+count\s*\(\s*\*\s*\)(?:\s+AS\s+{_NAME})?)\s+(?P<rest>FROM\b.*?)\s*;?\s*",
    re.IGNORECASE | re.DOTALL,
)


_VALUES: Final = re.compile(
    rf"\s*SELECT\s+(?:DISTINCT\s+)?(?:{_NAME}\s*\.\s*)?(?P<column>{_NAME})\s+FROM\s+{_QUALIFIED}"
    rf"(?:\s+(?:AS\s+)?(?!(?:GROUP|ORDER)\b){_NAME})?(?:\s+GROUP\s+BY\s+(?:{_NAME}\s*\.\s*)?(?P=column))?"
    rf"(?P<order>\s+ORDER\s+BY\s+(?:{_NAME}\s*\.\s*)?(?:(?P=column)|1)(?P<way>\s+ASC|\s+DESC)?)?\s*;?\s*",
    re.IGNORECASE,
)
"""A query for nothing but the values of one column."""
_OF_ROW: Final = re.compile(
    rf"\(\s*SELECT\s+(?P<aggregate>count|sum|min|max|avg)\s*\(\s*(?P<value>\*|[^()*]+?)\s*\)\s+FROM\s+"
    rf"(?P<table>{_QUALIFIED})(?:\s+(?:AS\s+)?(?P<alias>(?!WHERE\b){_NAME}))?\s+WHERE\s+"
    rf"(?P<left>{_QUALIFIED})\s*=\s*(?P<right>{_QUALIFIED})(?P<more>\s+AND\s+[^()]+)?\s*\)"
    rf"(?P<named>\s+(?:AS\s+)?(?!FROM\b){_NAME})?(?=\s*,|\s+FROM\b)",
    re.IGNORECASE,
)
"""A subquery in the list of outputs that aggregates the rows of a table that belong to the row."""
_ENDS: Final = re.compile(r"\b(?:WHERE|GROUP|ORDER|LIMIT|OFFSET|FETCH|HAVING|WINDOW)\b|;?\s*$", re.IGNORECASE)
_NOT_JOINED: Final = re.compile(
    r"\b(?:FOR|UNION|EXCEPT|INTERSECT|WITH|INTO|INSERT|UPDATE|DELETE|DISTINCT|GROUP|HAVING|OVER)\b|--|/\*|\$[a-z_$]",
    re.IGNORECASE,
)
"""What makes it uncertain that a join returns the same rows."""
_LITERAL: Final = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_NOT_SPLIT: Final = re.compile(
    r"\b(?:ORDER|GROUP|LIMIT|OFFSET|FETCH|FOR|UNION|EXCEPT|INTERSECT|HAVING|WINDOW|OVER|DISTINCT|WITH|INTO|CASE|"
    r"BETWEEN)\b|--|/\*|\$\$|\$[a-z_]",
    re.IGNORECASE,
)
"""What makes it uncertain where a condition ends, or what UNION ALL changes."""
_ESCAPED: Final = re.compile(r"\b[eu]&?['\"]", re.IGNORECASE)


def capped_count(sql: str, most: int) -> str:
    """Return a ``SELECT count(*)`` that stops after so many rows."""
    found = _COUNT.fullmatch(sql)
    return f"{found['head']} FROM (SELECT {found['rest']} LIMIT {most}) AS counted" if found else ""


def next_parameter(sql: str) -> int:
    """Return the number after that of the last parameter of a statement."""
    return max((int(found) for found in _PARAMETER.findall(sql)), default=0) + 1


def keyset(sql: str, keys: Sequence[str], *, descending: bool) -> str:
    """Return a page's statement that continues after the last row of the page before, instead of OFFSET.

    `keys` are the columns that order the rows, as SQL. The last parameters are the values of that last row.
    """
    tail = _TAIL.search(sql)
    orders = list(_ORDER.finditer(sql))
    if tail is None or len(orders) != 1 or len(_WHERE.findall(sql)) > 1:
        return ""
    first = next_parameter(sql)
    values = ", ".join(f"${first + place}" for place in range(len(keys)))
    condition = f"({', '.join(keys)}) {'<' if descending else '>'} ({values})"
    head = sql[: orders[0].start()]
    where = _WHERE.search(head)
    if where is None:
        head = f"{head} WHERE {condition}"
    else:
        head = f"{head[: where.end()]} ({head[where.end() :].strip()}) AND {condition}"
    direction = " DESC" if descending else ""
    limit = tail["limit"] or tail["later"] or tail["rows"]
    return f"{head} ORDER BY {', '.join(f'{key}{direction}' for key in keys)} LIMIT {limit}"


def not_exists(sql: str, table: str = "") -> str:
    """Return a statement with NOT EXISTS in place of its only NOT IN (SELECT ...).

    `table` qualifies the compared column if the statement does not.
    """
    found = list(_NOT_IN.finditer(sql))
    if len(found) != 1 or _WORDS.search(found[0]["where"] or ""):
        return ""
    match = found[0]
    side = match["side"] if "." in match["side"] else f"{table}.{match['side']}" if table else ""
    inner = match["alias"] or match["table"]
    column = match["column"] if "." in match["column"] else f"{inner}.{match['column']}"
    outer = side.rpartition(".")[0]
    if not side or outer == inner:
        return ""
    where = (match["where"] or "").strip()
    rest = f" AND {where[5:].strip()}" if where else ""
    alias = f" AS {match['alias']}" if match["alias"] else ""
    new = f"NOT EXISTS (SELECT FROM {match['table']}{alias} WHERE {column} = {side}{rest})"
    return sql[: match.start()] + new + sql[match.end() :]


def joined_aggregate(sql: str) -> str:
    """Return a statement that aggregates a table once and joins it, in place of a subquery for each row.

    ``(SELECT sum(x) FROM b WHERE b.a = a.id)`` becomes a column of a LEFT JOIN with the sums by
    ``b.a``. A row without a partner has no sum; its count is 0.
    """
    found = list(_OF_ROW.finditer(sql))
    selects = re.findall(r"\bSELECT\b", sql, re.IGNORECASE)
    if len(found) != 1 or len(selects) != 2 or _NOT_JOINED.search(sql) or _ESCAPED.search(sql):
        return ""
    match = found[0]
    inner = match["alias"] or match["table"].rpartition(".")[2]
    sides = {side.rpartition(".")[0]: side for side in (match["left"], match["right"])}
    outer = next((name for name in sides if name not in (inner, "")), "")
    conditions = (match["more"] or "").strip()[3:].strip()
    if inner not in sides or not outer or re.search(rf"\b{re.escape(outer)}\s*\.", conditions):
        return ""
    head, rest = sql[: match.start()], sql[match.end() :]
    after = re.match(r"\s*(?:,[^()]*?)?\s*\bFROM\b", rest, re.IGNORECASE)
    if after is None:
        return ""
    end = _ENDS.search(rest, after.end())
    source = rest[after.end() : None if end is None else end.start()]
    if "," in source or "(" in source or not re.search(rf"(?<![\w.]){re.escape(outer)}\b", source):
        return ""
    key, value = sides[inner], f"{match['aggregate']}({match['value']})"
    where = f" WHERE {conditions}" if conditions else ""
    alias = f" AS {match['alias']}" if match["alias"] else ""
    table = f"{match['table']}{alias}{where} GROUP BY {key}"
    grouped = f"{key} AS joined_key, {value} AS joined_value FROM {table}"
    joined = f" LEFT JOIN (SELECT {grouped}) AS joined "
    joined += f"ON joined.joined_key = {sides[outer]} "
    output = (
        "joined.joined_value" if match["aggregate"].lower() != "count" else "coalesce(joined.joined_value, 0)"
    )
    named = match["named"] or f" AS {match['aggregate'].lower()}"
    place = after.end() + len(source.rstrip())
    return f"{head}{output}{named}{rest[:place]}{joined}{rest[place:].lstrip()}".rstrip()


def not_materialized(sql: str, name: str) -> str:
    """Return a statement whose common table `name` is planned together with the rest."""
    pattern = re.compile(
        rf'((?<![\w$"])"?{re.escape(name)}"?\s*(?:\([^)]*\)\s*)?AS\s+)(?:MATERIALIZED\s+)?(?=\()',
        re.IGNORECASE,
    )
    return pattern.sub(r"\1NOT MATERIALIZED ", sql, count=1) if pattern.search(sql) else ""


def union_of_parts(sql: str, parts: int) -> str:
    """Return a SELECT with an OR of so many parts as a UNION ALL with one part in each SELECT.

    Each SELECT excludes the rows of the ones before it, so that the result has the same rows.
    """
    text = sql.strip().removesuffix(";").rstrip()
    hidden = _LITERAL.sub(lambda found: "_" * len(found[0]), text)
    clauses = list(_WHERE.finditer(hidden))
    selects = re.findall(r"\bSELECT\b", hidden, re.IGNORECASE)
    if len(clauses) != 1 or len(selects) != 1 or not hidden.upper().startswith("SELECT"):
        return ""
    if _NOT_SPLIT.search(hidden) or _ESCAPED.search(text):
        return ""
    head, condition = text[: clauses[0].start()].rstrip(), text[clauses[0].end() :]
    others = _split_at("AND", condition)
    alone = len(_split_at("OR", condition)) > 1
    if alone:
        found, rest = condition, []
    else:
        chosen = [part for part in others if len(_split_at("OR", _inside(part))) > 1]
        if len(chosen) != 1:
            return ""
        found, rest = _inside(chosen[0]), [part for part in others if part is not chosen[0]]
    pieces = _split_at("OR", found)
    if len(pieces) != parts:
        return ""
    selected = []
    for place, piece in enumerate(pieces):
        before = [f"({piece}) IS NOT TRUE" for piece in pieces[:place]]
        selected.append(f"{head} WHERE {' AND '.join([*rest, f'({piece})', *before])}")
    return "\nUNION ALL\n".join(selected)


def _inside(condition: str) -> str:
    text = condition.strip()
    while text.startswith("(") and _end_of_first(text) == len(text):
        text = text[1:-1].strip()
    return text


def _end_of_first(condition: str) -> int:
    """Return where the parentheses end with which a condition begins; 0 if they do not."""
    depth = 0
    for token in re.finditer(r"[()]", _LITERAL.sub(lambda found: "_" * len(found[0]), condition)):
        depth += 1 if token[0] == "(" else -1
        if depth == 0:
            return token.end()
    return 0


def _split_at(word: str, condition: str) -> list[str]:
    """Return the parts of a condition between a word, outside of parentheses and literals."""
    hidden = _LITERAL.sub(lambda found: "_" * len(found[0]), condition)
    parts, depth, begin = [], 0, 0
    for token in re.finditer(rf"[()]|\b{word}\b", hidden, re.IGNORECASE):
        if token[0] in "()":
            depth += 1 if token[0] == "(" else -1
        elif depth == 0:
            parts.append(condition[begin : token.start()].strip())
            begin = token.end()
    return [*parts, condition[begin:].strip()]


def with_columns(sql: str, columns: Sequence[str]) -> str:
    """Return a statement that selects some columns in place of all."""
    return _STAR.sub(lambda found: found[1] + ", ".join(columns), sql, count=1) if _STAR.search(sql) else ""


def values_order(sql: str) -> str | None:
    """Return ``ORDER BY 1`` in the direction of a query for the values of one column; empty without an order.

    None for any other query.
    """
    found = _VALUES.fullmatch(sql)
    if found is None:
        return None
    return f" ORDER BY 1{found['way'] or ''}" if found["order"] else ""


# ---- a condition that compares a column as it is stored: the same for all values of the column's type ----


_TYPE: Final = (
    r"[A-Za-z_]\w*(?:\s+(?:precision|varying|with(?:out)?\s+time\s+zone))?"
    r"(?:\s*\(\s*\d+(?:\s*,\s*\d+)?\s*\))?"
)
_OPERAND: Final = rf"\$\d+(?:\s*::\s*{_TYPE})?"
_DAY: Final = re.compile(
    r"\$\d+(?:\s*::\s*date)?(?:\s*[+-]\s*\$\d+(?:\s*::\s*(?:int[248]?|integer|smallint|bigint))?)*",
    re.IGNORECASE,
)
"""A value that is a date and not a time."""
_VALUE: Final = rf"(?P<value>{_OPERAND}(?:\s*[+-]\s*{_OPERAND})*)"
_AFTER: Final = (
    r"(?=\s*(?:$|;|\)|(?:AND|OR|ORDER|GROUP|LIMIT|OFFSET|HAVING|FOR|UNION|EXCEPT|INTERSECT|RETURNING|FETCH|"
    r"WINDOW)\b))"
)
_WRITTEN: Final = {
    "character varying": r"(?:character\s+varying|varchar)",
    "double precision": r"(?:double\s+precision|float8|float)",
    "numeric": r"(?:numeric|decimal)",
    "bigint": r"(?:bigint|int8)",
    "integer": r"(?:integer|int4|int)",
}


def as_range(sql: str, column: str) -> str:
    """Return a statement that compares a timestamp with the bounds of a day, without a cast."""

    def bounds(match: re.Match[str]) -> str:
        if _DAY.fullmatch(match["value"]) is None:
            return ""
        side, day = match["side"], _as(match["value"], "date")
        return f"({side} >= {day} AND {side} < {day} + 1)"

    called = rf"(?<![\w$.])date\s*\(\s*{_side(column)}\s*\)"
    return _once(sql, [called, *_casts(column, "date")], bounds)


def also_in_day(sql: str, column: str) -> str:
    """Return a statement that also compares a timestamp with the bounds of the day whose text it compares.

    The old condition stays, so that a text in another format of dates finds no other row.
    """

    def both(match: re.Match[str]) -> str:
        side, text = match["side"], _as(match["value"], "text")
        old = match[0][: match.start("value") - match.start()].rstrip()
        return f"({side} >= ({text})::date AND {side} < ({text})::date + 1 AND {old} {text})"

    kinds = rf"\s*::\s*(?:text|varchar|{_WRITTEN['character varying']})"
    sides = [
        form for days in _casts(column, "date") for form in (f"{days}{kinds}", rf"\(\s*{days}\s*\){kinds}")
    ]
    return _once(sql, sides, both)


def also_as_stored(sql: str, column: str, stored: str, *, cast: str = "", value_cast: str = "") -> str:
    """Return a statement that also compares a column with the value in the column's own type.

    The old condition stays, so that a value that is rounded on the way finds no other row. `cast` is the type
    to which the statement casts the column, `value_cast` the type to which it casts the value; one is given.
    """

    def both(match: re.Match[str]) -> str:
        value = _as(match["value"], cast or value_cast)
        old = match[0][: match.start("value") - match.start()].rstrip()
        return f"({match['side']} = {value}::{stored} AND {old} {value})"

    if cast:
        return _once(sql, _casts(column, cast), both)
    written = _WRITTEN.get(value_cast, re.escape(value_cast))
    return _once(sql, [_side(column)], both, rf"(?P<value>\$\d+\s*::\s*{written})")


def as_containment(sql: str, column: str, kind: str) -> str:
    """Return a statement that searches arrays for a value with ``@>``, which a GIN index serves.

    `kind` is the column's type: an array of a parameter without a cast would have the type text[].
    The result is empty if `kind` is unknown.
    """
    pattern = rf"(?P<value>{_OPERAND})\s*=\s*ANY\s*\(\s*{_side(column)}\s*\)"
    found = list(re.finditer(pattern, sql, re.IGNORECASE))
    if len(found) != 1 or not kind.endswith("[]"):
        return ""
    (match,) = found
    return f"{sql[: match.start()]}{match['side']} @> ARRAY[{match['value']}]::{kind}{sql[match.end() :]}"


def with_type(sql: str, column: str, kind: str) -> str:
    """Return a statement with the type that a client gives to the parameter compared with a column."""
    return _once(sql, [_side(column)], lambda match: f"{match[0]}::{kind}", r"(?P<value>\$\d+)")


def _side(column: str) -> str:
    plain = re.escape(column)
    return rf'(?<![\w$".])(?P<side>(?:{_NAME}\s*\.\s*)?(?:"{plain}"|{plain}(?![\w$])))'


def _casts(column: str, kind: str) -> list[str]:
    written, side = _WRITTEN.get(kind, re.escape(kind)), _side(column)
    return [
        rf"{side}\s*::\s*{written}\b",
        rf"\(\s*{side}\s*\)\s*::\s*{written}\b",
        rf"(?<![\w$.])CAST\s*\(\s*{side}\s+AS\s+{written}\s*\)",
    ]


def _once(sql: str, sides: Sequence[str], new: Callable[[re.Match[str]], str], value: str = _VALUE) -> str:
    """Return a statement with its only condition of this form replaced; empty without exactly one."""
    found = [
        match for side in sides for match in re.finditer(rf"{side}\s*=\s*{value}{_AFTER}", sql, re.IGNORECASE)
    ]
    if len(found) != 1:
        return ""
    (match,) = found
    text = new(match)
    return sql[: match.start()] + text + sql[match.end() :] if text else ""


def _as(value: str, kind: str) -> str:
    """Return a value with a cast to a type, unless it has that cast."""
    if re.fullmatch(r"\$\d+", value):
        return f"{value}::{kind}"
    written = _WRITTEN.get(kind, re.escape(kind))
    if re.fullmatch(rf"\$\d+\s*::\s*{written}", value, re.IGNORECASE):
        return value
    return f"({value})::{kind}"
