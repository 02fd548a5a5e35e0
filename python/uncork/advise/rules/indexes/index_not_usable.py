"""A column that has an index, in a condition that keeps statements from using it. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule
from uncork.advise.rules.indexes.conditions import also_as_stored, also_in_day, as_range, with_type
from uncork.advise.rules.indexes.merging import merge
from uncork.advise.rules.indexes.obstacles import INTEGERS, Obstacle, Obstruction
from uncork.advise.rules.indexes.or_across_tables import across_tables
from uncork.advise.rules.indexes.problems import Problem, fractions_of, problems, read_sentences
from uncork.advise.rules.indexes.proposals import bare, columns_text, index_candidate, index_candidates
from uncork.advise.rules.indexes.variants import contained
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.index import IndexKey

if TYPE_CHECKING:
    from uncork.model.database.statement import Predicate

_SHORTENED: Final = frozenset({"character", "bit"})
"""Types that a cast without a length shortens to one."""
_DAY_TEXT: Final = re.compile(r'[("]*[\w$]+[)"]*::date\)?::(?:text|varchar|charactervarying)')
"""The day of a column as text, without spaces: ``created_at::date::text``."""
_PROOF: Final = "Compare the statements with each candidate and without in uncork run."


def _find(evidence: Evidence) -> Iterator[Finding]:
    groups: dict[tuple[str, str, str, str], list[Problem]] = {}
    for problem in problems(evidence):
        if problem.obstacle is not None and problem.obstacle.kind != "invalid":
            side = problem.obstacle.predicate.column or problem.obstacle.predicate.expression
            key = (problem.use.table.name, problem.obstacle.kind, problem.obstacle.index, side)
            groups.setdefault(key, []).append(problem)
    for mine in groups.values():
        fractions = fractions_of(mine)
        first, why = mine[0], mine[0].obstacle
        if why is None:
            continue
        yield Finding(
            RULE.name,
            _headline(first, why),
            objects=(first.use.table.name, *((why.index,) if why.index else ()), *_columns(why.predicate)),
            bill=evidence.bill_of(fractions),
            templates=tuple(fractions),
            statement=first.statement.text,
            evidence=tuple(_evidence(first, why, evidence)),
            candidates=tuple(_candidates(mine, why, evidence)),
            proof=_PROOF,
        )
    yield from across_tables(evidence, RULE.name)


def _headline(problem: Problem, why: Obstacle) -> str:
    table, column, index = problem.use.table.name, why.predicate.column, f"index {why.index}"
    keys = columns_text(problem.want.wanted.shape.keys)
    texts: dict[Obstruction, str] = {
        "cast": f"The cast of {column} to {why.predicate.cast} keeps {index} of {table} from use",
        "expression": f"Index {why.index} of {table} does not serve {bare(why.predicate.expression)}",
        "type": f"Comparing {column} with {why.type or 'another type'} keeps {index} of {table} from use",
        "pattern": f"Index {why.index} of {table} serves no LIKE on {column}",
        "wildcard": f"Patterns that begin with a wildcard cannot use {index} of {table}",
        "not leading": f"Index {why.index} of {table} does not begin with {keys}",
        "operator": f"= ANY ({column}) cannot use {index} of {table}, which has the operator @>",
        "or": f"Patterns in an OR cannot use the indexes of {table}"
        if why.predicate.operator in ("like", "ilike", "~", "~*")
        else f"The OR in a condition keeps statements from using an index of {table}",
    }
    return texts[why.kind]


def _columns(predicate: Predicate) -> tuple[str, ...]:
    return (predicate.column,) if predicate.column else predicate.columns


def _evidence(problem: Problem, why: Obstacle, evidence: Evidence) -> Iterator[str]:
    yield from read_sentences(problem, evidence)
    column = evidence.column(problem.use.table.name, why.predicate.column) if why.predicate.column else None
    if why.kind == "type" and column is not None:
        yield (
            f"Column {column.name} has the type {column.type}. PostgreSQL converts each of its values to "
            f"{why.type or 'the type of the parameter'} before it compares them, so the index does not apply."
        )
    if why.kind == "pattern":
        yield (
            "A B-tree in a collation other than C is not in the order of characters, which LIKE needs to "
            "search for a prefix."
        )
    if why.kind == "not leading":
        yield "A B-tree on several columns is in the order of its first column."


def _candidates(mine: Sequence[Problem], why: Obstacle, evidence: Evidence) -> Iterator[Candidate]:
    first = mine[0]
    if why.kind == "type":
        yield from _types(why, first, evidence)
        return
    if why.kind == "or":
        yield from _for_or(first, evidence)
        return
    if why.kind == "operator":
        yield contained(first, evidence)
        return
    rewritten = _rewritten(why.predicate, first, evidence)
    if rewritten:
        sql = _rewritten_sql(why.predicate, first, evidence)
        yield Candidate(
            "statement",
            rewritten,
            sql=sql,
            undo=first.statement.sql if sql else "",
            against=("The statement has to be changed wherever it is sent.", *_strict(why.predicate)),
        )
    if not first.want.served:  # no index on the expression is possible
        if not rewritten:
            yield Candidate(
                "statement",
                f"Compare {' and '.join(_columns(why.predicate))} itself: an index on the expression is "
                "impossible, because its value depends on settings of the session.",
            )
        return
    if why.kind == "pattern" and first.want.wanted.extension:
        key = IndexKey(why.predicate.column, opclass="text_pattern_ops")
        plain = replace(first.want.wanted.shape, keys=(key,), method="btree")
        text = f"If no pattern begins with a wildcard, index {key.column} in the order of characters."
        yield index_candidate(plain, text, evidence)
    for merged in merge([problem.want.wanted for problem in mine]):
        yield from index_candidates(merged.index, evidence, merged.extension)


def _types(why: Obstacle, problem: Problem, evidence: Evidence) -> Iterator[Candidate]:
    column = evidence.column(problem.use.table.name, why.predicate.column)
    kind = "bigint" if column is None else column.type
    text = f"Cast the parameter, not the column: {why.predicate.column} {_sign(why.predicate)} $1::{kind}."
    before, sql = _typed(why, problem, kind)
    if sql:
        known = "" if why.type else " The type that the client gives to the parameter is assumed."
        yield Candidate(
            "statement",
            f"{text} The old condition stays, because a rounded value could match another row.{known}",
            sql=sql,
            undo=before,
            against=(f"A value outside of the range of {kind} becomes an error.",),
        )
    else:
        yield Candidate(
            "statement",
            text,
            against=("A value that is no whole number is rounded, and can then match a row.",),
            same_answers=not kind.startswith(("small", "int", "big")) or why.predicate.value == "constant",
        )
    yield Candidate(
        "client",
        f"Send the parameter as {kind} from the client: declare its type in the code or the mapping.",
    )


def _typed(why: Obstacle, problem: Problem, kind: str) -> tuple[str, str]:
    """Return the statement with the type of its parameter, and its rewritten form; empty if there is none.

    Only the client knows the type of a parameter without a cast. All types that a client may give and that
    keep the index from use make PostgreSQL convert the column, so one of them stands for the others.
    """
    column, given = why.predicate.column, why.predicate.value_cast
    if why.predicate.operator != "=" or kind not in INTEGERS:
        return "", ""
    before, given = (problem.statement.sql, given) if given else _as_sent(why, problem)
    return before, also_as_stored(before, column, kind, value_cast=given)


def _as_sent(why: Obstacle, problem: Problem) -> tuple[str, str]:
    kind = why.type or "numeric"
    return with_type(problem.statement.sql, why.predicate.column, kind), kind


def _sign(predicate: Predicate) -> str:
    return "= ANY" if predicate.operator == "in" else predicate.operator


def _for_or(problem: Problem, evidence: Evidence) -> Iterator[Candidate]:
    if not problem.use.alone:
        yield Candidate(
            "statement",
            "Write the statement as a UNION with a part of the OR in each arm, so that each can use its own "
            "index.",
            against=("UNION removes duplicate rows: select a key of each table, or exclude the other part.",),
            same_answers=False,
        )
    found = [
        list(index_candidates(merged.index, evidence, merged.extension))
        for merged in merge([want.wanted for want in problem.arms])
    ]
    if len(found) > 1:
        yield _all_of([each[0] for each in found])
    yield from itertools.chain.from_iterable(found)


def _all_of(indexes: Sequence[Candidate]) -> Candidate:
    """Return the candidate of several indexes: an OR uses none as long as one of its parts has none."""
    lines = dict.fromkeys(line for index in indexes for line in index.sql.splitlines())
    return Candidate(
        "index",
        f"Create an index for each of the {len(indexes)} parts of the OR.",
        sql="\n".join(lines),
        undo="\n".join(index.undo for index in reversed(indexes)),
        against=tuple(dict.fromkeys(text for index in indexes for text in index.against)),
    )


def _rewritten(predicate: Predicate, problem: Problem, evidence: Evidence) -> str:
    """Return the condition that means the same and compares the column itself; empty if there is none."""
    column = predicate.column or (predicate.columns[0] if len(predicate.columns) == 1 else "")
    facts = evidence.column(problem.use.table.name, column)
    text = predicate.expression.lower().replace(" ", "")
    dated = facts is not None and facts.type.startswith("timestamp")
    if predicate.operator == "=" and dated and (predicate.cast == "date" or text == f"date({column})"):
        return f"Compare the column with a range: {column} >= $1::date AND {column} < $1::date + 1."
    if predicate.operator == "=" and dated and _DAY_TEXT.fullmatch(text):
        day = "$1::text::date"
        return (
            f"Compare the column with the bounds of the day, too: {column} >= {day} AND {column} < {day} + 1."
            " The old condition stays, because a text in another format of dates could match another row."
        )
    if predicate.operator == "=" and dated and text.startswith("date_trunc('"):
        unit = text.split("'")[1]
        zone = re.search(r" AT TIME ZONE '[^']+'", predicate.expression, re.IGNORECASE)
        first, end = "$1", f"$1 + interval '1 {unit}'"
        if zone is not None:
            first, end = f"($1{zone[0]})", f"(({end}){zone[0]})"
        return f"Compare the column with a range: {column} >= {first} AND {column} < {end}."
    if (
        predicate.cast in ("text", "character varying")
        and facts is not None
        and facts.type not in ("text", "json")
    ):
        return f"Cast the value instead of the column: {column} {_sign(predicate)} $1::{facts.type}."
    if predicate.cast in ("numeric", "double precision", "bigint") and facts is not None:
        return f"Cast the value instead of the column: {column} {_sign(predicate)} $1::{facts.type}."
    return ""


def _rewritten_sql(predicate: Predicate, problem: Problem, evidence: Evidence) -> str:
    """Return the statement with the condition of `_rewritten`; empty if its text is not recognised."""
    column = predicate.column or (predicate.columns[0] if len(predicate.columns) == 1 else "")
    facts = evidence.column(problem.use.table.name, column)
    text = predicate.expression.lower().replace(" ", "")
    if facts is None or predicate.operator != "=":
        return ""
    if facts.type.startswith("timestamp"):
        if _DAY_TEXT.fullmatch(text):
            return also_in_day(problem.statement.sql, column)
        dated = predicate.cast == "date" or text == f"date({column})"
        return as_range(problem.statement.sql, column) if dated else ""
    if predicate.cast and facts.type not in _SHORTENED:
        return also_as_stored(problem.statement.sql, column, facts.type, cast=predicate.cast)
    return ""


def _strict(predicate: Predicate) -> Iterator[str]:
    day_text = _DAY_TEXT.fullmatch(predicate.expression.lower().replace(" ", ""))
    if day_text or (predicate.cast and predicate.cast != "date"):
        yield "A value that the column's type cannot have becomes an error instead of finding no row."


RULE: Final = Rule("index-not-usable", _find, depth=2)
