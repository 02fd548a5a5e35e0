"""Collect the plans of the statements that took the most time during a watch."""

from __future__ import annotations

import re
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any, Final

from uncork.engines.watch.catalogue import CatalogueScope
from uncork.engines.watch.connection import ServerSnapshot, ServerWatch
from uncork.engines.watch.planner import Explained, Planner
from uncork.model.database.catalogue import RoleSetting
from uncork.model.database.plan import ColumnValues, PlanSource
from uncork.model.database.role_settings import settings_of_role
from uncork.model.tables.catalogue import CATALOGUE_TABLES
from uncork.profile.deltas import Key, statement_key
from uncork.profile.parameter_values import (
    ComparedParameter,
    compared_parameters,
    drawn_values,
    rewrite_typed_parameters,
    with_values,
)
from uncork.profile.plans.tree import plan_hash, plan_shape, plan_tree
from uncork.profile.plans.without_values import message_without_values, plan_without_values
from uncork.profile.server_templates import TemplateBook
from uncork.profile.used_tables import UsedTables, used_tables, words_of

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]

_MOST: Final = 30
_MOST_BY_TIME: Final = 20
"""Statements to plan, of which at most so many are chosen for their execution time."""
_SHAPES: Final = 3
"""Plans with values to keep of each statement, if other values lead to other plans."""
_LONGEST_NS: Final = 2_000_000_000
"""Time after which no further statement is planned."""
_PARAMETER: Final = re.compile(r"\$\d")
_TEMPORARY: Final = re.compile(r"\bpg_temp_\d+\.")
"""The schema of another session's temporary tables, such as those of REFRESH MATERIALIZED VIEW
CONCURRENTLY: only that session could plan the statement, and they are gone after it."""
_CUT: Final = "its text is longer than track_activity_query_size"
_CLIPPED: Final = 3
"""Bytes that the server cuts off in addition, so that the last character stays whole."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A statement to plan: its text, texts of sessions with its values, and the rows of one execution."""

    query_id: int
    text: str
    seen: tuple[str, ...] = ()
    rows: float | None = None


def top_statements(
    changed: Sequence[tuple[Row | None, Row]],
    database: str,
    texts: Mapping[int, str],
    own: Collection[Key],
    sampled: Mapping[tuple[str, int], int],
    seen: Mapping[int, Sequence[str]],
) -> list[Candidate]:
    """Return the statements of a database that took the most time, the costliest first. Pure.

    Those with the most execution time between the snapshots and those in which samples found sessions most
    often take turns, because a statement that has not ended has no execution time yet. Statements about
    temporary tables of other sessions are left out. `sampled` counts the samples by database and query id;
    `seen` are texts of sessions, and `own` the entries of uncork's own statements.
    """
    spent: Counter[int] = Counter()
    calls: Counter[int] = Counter()
    rows: Counter[int] = Counter()
    for before, after in changed:
        if after["database"] == database and statement_key(after) not in own:
            query_id, then = after["query_id"], before or {}
            spent[query_id] += after["execution_ns"] - then.get("execution_ns", 0)
            calls[query_id] += after["calls"] - then.get("calls", 0)
            rows[query_id] += after["rows"] - then.get("rows", 0)
    by_samples = Counter({query_id: many for (of, query_id), many in sampled.items() if of == database})
    by_time = [query_id for query_id, _ in spent.most_common() if query_id in texts]
    sampled_most = [query_id for query_id, _ in by_samples.most_common()]
    order = [*chain.from_iterable(zip_longest(by_time[:_MOST_BY_TIME], sampled_most)), *by_time]
    return [
        Candidate(
            query_id,
            texts[query_id],
            tuple(seen.get(query_id, ())),
            rows[query_id] / calls[query_id] if calls[query_id] else None,
        )
        for query_id in dict.fromkeys(order)
        if query_id is not None and query_id in texts and not _TEMPORARY.search(texts[query_id])
    ]


def statement_settings(
    changed: Sequence[tuple[Row | None, Row]], role_settings: Sequence[Row]
) -> dict[int, dict[str, str]]:
    """Return, by query id, the settings of the role that spent the most time on a statement. Pure."""
    if not role_settings:
        return {}
    spent: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for before, after in changed:
        spent[after["query_id"]][after["user"]] += after["execution_ns"] - (before or {}).get(
            "execution_ns", 0
        )
    settings = [
        RoleSetting(row["role"], row["database"], row["name"], row["value"] or "") for row in role_settings
    ]
    return {
        query_id: settings_of_role(settings, by_role.most_common(1)[0][0])
        for query_id, by_role in spent.items()
    }


def find_plans(
    server: ServerWatch, candidates: Sequence[Candidate], settings: Mapping[int, Mapping[str, str]]
) -> list[dict[str, Any]]:
    """Return plans of the costliest statements of the connected database, at most 30 statements.

    Each is planned with the `settings` of its role, by query id.

    The first plan of each statement is generic. Statements with parameters get up to three more
    plans with different nodes: with the values of sessions that were seen, else with values drawn
    from the statistics of the columns. After a statement is refused for a missing privilege,
    further ones are still tried, because others may use other tables.

    On 2 cores under load, 30 joins of four tables with five parameters each took 0.35 s, and 0.14 s
    of the server's processor time: 0.2 % of a processor in a watch of 60 s. Statements of one table
    took a third of that. Raises ServerCrash if the server goes away.
    """
    found: list[dict[str, Any]] = []
    planned: set[int] = set()
    begun = time.monotonic_ns()
    candidates = candidates[: 2 * _MOST]  # some are utility statements, which have no plan
    with server.planning() as planner:
        compared = {
            candidate.query_id: compared_parameters(rewrite_typed_parameters(candidate.text))
            for candidate in candidates
            if not _complete(planner, candidate.seen)
        }
        statistics = _statistics(planner, compared.values())
        for candidate in candidates:
            if len(planned) == _MOST:
                break
            values = drawn_values(compared.get(candidate.query_id, ()), statistics, candidate.rows)
            with planner.using(settings.get(candidate.query_id, {})):
                for row in _plans(planner, candidate, values):
                    planned.add(candidate.query_id)
                    found.append(row)
                    if time.monotonic_ns() - begun > _LONGEST_NS:
                        return found
    return found


def plans_table(book: TemplateBook, plans: Sequence[Row], *, values: bool = True) -> pa.Table:
    """Return plans as a stored table; without `values`, `?` replaces the values in plans and reasons."""
    from uncork.store.tables import rows_table  # noqa: PLC0415 -- not before the first sample

    kept = plans if values else map(_without_values, plans)
    return rows_table(
        "database_plans", [{**row, "template": book.number(row["query_id"], None)} for row in kept]
    )


def _without_values(row: Row) -> Row:
    plans = {name: None if row[name] is None else plan_without_values(row[name]) for name in ("plan", "json")}
    return {**row, **plans, "reason": message_without_values(row["reason"])}


def _statistics(
    planner: Planner, compared: Iterable[Sequence[ComparedParameter]]
) -> Mapping[tuple[str, str], ColumnValues]:
    columns = {
        (table, parameter.column)
        for sequence in compared
        for parameter in sequence
        for table in parameter.tables
    }
    return planner.column_values(sorted(columns)) if columns else {}


def _plans(
    planner: Planner, candidate: Candidate, values: Sequence[Mapping[int, str]]
) -> Iterator[dict[str, Any]]:
    """Yield the plans of a statement, the first one with its reason if there is none.

    `values` are values of its parameters to try unless those of sessions are known.
    """
    if not _PARAMETER.search(candidate.text):
        # Without pg_stat_statements, the only text is a session's, with its values.
        source: PlanSource = "seen" if candidate.text in candidate.seen else "generic"
        texts = _complete(planner, candidate.seen) if candidate.text in candidate.seen else [candidate.text]
        if not texts:
            yield _row(planner, candidate.query_id, source, "", Explained(None, _CUT))
        yield from _distinct(planner, candidate.query_id, source, texts)
        return
    base = candidate.text
    generic = planner.explain(base, as_json=True)
    if generic is None:
        return
    if generic.output is None and not generic.denied:
        base = rewrite_typed_parameters(candidate.text)
        rewritten = planner.explain(base, as_json=True) if base != candidate.text else None
        generic = generic if rewritten is None else rewritten
    yield _row(planner, candidate.query_id, "generic", base, generic)
    if generic.denied:
        return
    seen = _complete(planner, candidate.seen)
    if seen:
        kept = [
            row for row in _distinct(planner, candidate.query_id, "seen", seen) if row["plan"] is not None
        ]
        yield from kept
        if kept:
            return
    drawn = [with_values(base, value, planner.literal) for value in values]
    yield from (
        row for row in _distinct(planner, candidate.query_id, "drawn", drawn) if row["plan"] is not None
    )


def _complete(planner: Planner, texts: Sequence[str]) -> list[str]:
    """Return the texts that have values, and that the server did not cut."""
    return [
        text
        for text in texts
        if not _PARAMETER.search(text) and len(text.encode()) < planner.longest_text - _CLIPPED
    ]


def _distinct(
    planner: Planner, query_id: int, source: PlanSource, texts: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Yield the plans of texts that have different nodes, or a row with the reason if there is none."""
    shapes: set[tuple[Any, ...]] = set()
    refused: Explained | None = None
    for text in texts[:_SHAPES]:
        explained = planner.explain(text, as_json=True)
        tree = None if explained is None or explained.output is None else plan_tree(explained.output)
        if explained is None or tree is None:
            refused = explained
        elif (shape := plan_shape(tree)) not in shapes:
            yield _row(planner, query_id, source, text, explained, len(shapes))
            shapes.add(shape)
    if not shapes and refused is not None:
        yield _row(planner, query_id, source, "", refused)


def _row(
    planner: Planner, query_id: int, source: PlanSource, text: str, explained: Explained, number: int = 0
) -> dict[str, Any]:
    shown = None if explained.output is None else planner.explain(text, as_json=False)
    tree = None if explained.output is None else plan_tree(explained.output)
    above = planner.compiled_above
    return {
        "query_id": query_id,
        "source": source,
        "number": number,
        "plan": None if shown is None else shown.output,
        "json": explained.output,
        "plan_hash": None if explained.output is None else plan_hash(explained.output),
        "jit": tree is not None and above is not None and tree.cost > above,
        "reason": explained.reason,
        "denied": explained.denied,
        "sqlstate": explained.sqlstate or None,
    }


# ---- the catalogue, as far as the watched statements use it ----


_MOST_STATEMENTS: Final = 200
"""Statements whose texts are searched for names: those with the most execution time, then sampled ones."""
_FUNCTIONS: Final = "database_functions"


@dataclass(frozen=True, slots=True)
class FoundCatalogue:
    """Rows by stored table, and facts: what could not be read, and how much was left out."""

    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UsedObjects:
    """The tables that the watched statements use, and the words of these statements."""

    tables: UsedTables
    words: Collection[str]


def find_used(
    before: ServerSnapshot, after: ServerSnapshot, top: Collection[str], sampled: Iterable[str]
) -> UsedObjects:
    """Return what the watched statements use.

    `top` are the texts of the costliest statements, the costliest first; `sampled` those of samples.
    """
    texts = [*islice(top, _MOST_STATEMENTS), *islice(sampled, max(0, _MOST_STATEMENTS - len(top)))]
    words = words_of(texts)
    used = used_tables(
        before.tables["database_relations"],
        after.tables["database_relations"],
        after.tables["database_foreign_keys"],
        words,
        read="tables" not in before.failed,
    )
    return UsedObjects(used, words)


def find_catalogue(
    server: ServerWatch,
    before: ServerSnapshot,
    after: ServerSnapshot,
    objects: UsedObjects,
    roles: Collection[str],
    *,
    values: bool,
) -> FoundCatalogue:
    """Read the catalogue of the tables, functions and views that the watched statements use.

    `roles` ran the statements. Without `values`, no values of columns are read. Raises ServerCrash
    if the server goes away.
    """
    used = objects.tables
    names = {row["oid"]: (row["schema"], row["name"]) for row in used.rows}
    found = server.catalogue(CatalogueScope(names, objects.words, values, roles))
    counted = {row["oid"]: row for row in after.tables[_FUNCTIONS]}
    functions = [
        {**counted.get(row["oid"], {}), **row, "moment": "after"} for row in found.tables[_FUNCTIONS]
    ]
    wanted = {row["oid"] for row in functions}
    earlier = [{**row, "moment": "before"} for row in before.tables[_FUNCTIONS] if row["oid"] in wanted]
    analysed = {row["oid"] for row in used.rows if row["analysed_us"] is not None}
    hidden = {
        row["table_oid"]
        for row in found.tables["database_columns"]
        if not row["readable"] and row["table_oid"] in analysed
    }
    facts = {
        "tables": len(used.rows),
        "tables_left_out": used.more,
        "tables_hidden": len(hidden),
        "values": values,
        "failed": dict(found.failed),
    }
    return FoundCatalogue({**found.tables, _FUNCTIONS: [*earlier, *functions]}, facts)


def catalogue_tables(found: FoundCatalogue) -> dict[str, pa.Table]:
    """Return the catalogue as stored tables."""
    from uncork.store.tables import rows_table  # noqa: PLC0415 -- not before the first sample

    return {
        table.name: rows_table(table.name, found.tables.get(table.name, ())) for table in CATALOGUE_TABLES
    }
