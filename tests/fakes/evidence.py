"""Evidence for rules, built by hand: tables, indexes, columns, statements and where sessions' time went."""

from collections.abc import Iterable, Mapping, Sequence

from fakes.database_results import database_result
from uncork.diagnosis.evidence import Evidence, Existing, Piece, Statement, known_shape
from uncork.model.database.catalogue import Catalogue, ColumnFacts, FunctionFacts, ServerSetting
from uncork.model.database.wait_classes import CPU
from uncork.model.results.database import (
    BlockerFacts,
    CounterFacts,
    IndexFacts,
    StatementFacts,
    TableFacts,
    TemplateActivity,
    TimeNode,
)
from uncork.profile.statement_shape import index_shape, statement_shape

BLOCK = 8192
SECONDS = 60


def a_table(name: str = "item", rows: int = 300_000, **facts) -> TableFacts:
    """Return a table that nothing reads or changes, unless the facts say so."""
    blank = dict.fromkeys(TableFacts.__dataclass_fields__, 0)
    known = {"name": name, "kind": "table", "bytes": rows * 100, "rows": float(rows), "live": rows}
    times = {"vacuumed_us": None, "analysed_us": None, "autovacuum": True, "island": None}
    return TableFacts(**{**blank, **known, **times, "bloat_bytes": None, **facts})


def an_index(definition: str, table: str = "item", **facts) -> Existing:
    """Return an index by its definition, as pg_get_indexdef writes it."""
    name = definition.partition("INDEX ")[2].split()[0]
    known = {"oid": 1, "bytes": 8_000_000, "scans": 0, "scans_ever": 0, "bloat_bytes": None}
    found = IndexFacts(
        name=name, table=table, definition=definition, **{**known, "warning": "", "same_as": "", **facts}
    )
    return Existing(found, lambda index: index_shape(index.definition, index.name, index.table))


def a_column(name: str, kind: str = "integer", table: str = "item", **facts) -> ColumnFacts:
    """Return a column without statistics, unless the facts have them."""
    known = {"not_null": True, "default": "", "generated": "", "collation": "", "storage_type": kind}
    return ColumnFacts(
        **{"table": table, "table_oid": 1, "number": 1, "name": name, "type": kind, **known, **facts}
    )


def a_function(name: str, source: str, **facts) -> FunctionFacts:
    """Return a function in PL/pgSQL that may change rows."""
    known = {"language": "plpgsql", "volatility": "volatile", "parallel": "unsafe", "strict": False}
    return FunctionFacts(name, **{**known, "returns_set": False, "cost": 100.0, "source": source, **facts})


def a_statement(
    sql: str, number: int = 0, columns: Mapping[str, Sequence[str]] | None = None, **facts
) -> Statement:
    """Return a statement that is called 6000 times in a minute, taken apart."""
    shape = statement_shape(sql, columns or {"item": ["id"]})
    known = {"calls": 6_000, "mean_ns": 10e6, "rows": 6_000, "blocks": 60_000, "blocks_read": 0}
    return Statement(
        **{
            "number": number,
            "text": sql.lower(),
            "sql": sql,
            "shape_of": known_shape(shape),
            **known,
            **facts,
        }
    )


def a_blocker(mean_ms: float = 20.0, **facts) -> BlockerFacts:
    """Return sessions that block those in `waiters`, in transactions of `mean_ms` on average."""
    known = {"application": "shop", "user": "app", "state": "IO", "template": 0, "most": 7, "chain": 7}
    times = {"transaction_ns": round(3e6 * mean_ms), "transaction_mean_ns": mean_ms * 1e6, "idle_ns": None}
    waiting = sum(one.sessions for one in facts.get("waiters", ()))
    return BlockerFacts(**{**known, **times, "processes": 3, "waiters": (), "sessions": waiting, **facts})


def spent(
    template: int | None = 0, sessions: float = 1.0, wait: str = CPU, application: str = "shop"
) -> Piece:
    """Return time of sessions; `wait` is a class, or a class and an event such as IO:WalSync."""
    of_class, _, event = wait.partition(":")
    return Piece(template, of_class, event, application, "app", (sessions,) * 20)


def by_table(found: Iterable[ColumnFacts] | Iterable[Existing]) -> dict[str, tuple]:
    """Return columns or indexes by their table."""
    groups: dict[str, tuple] = {}
    for one in found:
        table = getattr(one, "facts", one).table
        groups[table] = (*groups.get(table, ()), one)
    return groups


def evidence(
    pieces: Sequence[Piece],
    statements: Sequence[Statement] = (),
    *,
    tables: Sequence[TableFacts] = (),
    indexes: Sequence[Existing] = (),
    columns: Sequence[ColumnFacts] = (),
    settings: Mapping[str, str] | None = None,
    counters: Mapping[str, float] | None = None,
    full_pages: Mapping[int, int] | None = None,
    catalogue: Mapping[str, object] | None = None,
    **database,
) -> Evidence:
    """Return the evidence of a minute on a watched server.

    `counters` have names such as ``pg_stat_wal.wal_bytes``; `full_pages` are those of each statement.
    """
    empty = dict.fromkeys(StatementFacts.__dataclass_fields__, 0)
    none = ("transactions", "writers", "blockers", "settings", "resets", "tables", "indexes", "foreign_keys")
    usual = {**dict.fromkeys((*none, "plans"), ()), "background": TimeNode("all", "", 0, 1, None, ())}
    usual["templates"] = tuple(
        TemplateActivity(
            one.number, one.text, None, 0, 0, (), (), StatementFacts(**{**empty, "wal_fpi": pages}), 0
        )
        for one in statements
        for pages in [(full_pages or {}).get(one.number, 0)]
    )
    usual["counters"] = tuple(
        CounterFacts(view, "", counter, value)
        for name, value in (counters or {}).items()
        for view, _, counter in [name.partition(".")]
    )
    return Evidence(
        seconds=SECONDS,
        pieces=tuple(pieces),
        statements={one.number: one for one in statements},
        tables={one.name: one for one in tables},
        indexes=by_table(indexes),
        catalogue=Catalogue(
            **{
                "columns": by_table(columns),
                "settings": {
                    name: ServerSetting(name, value, "configuration file")
                    for name, value in (settings or {}).items()
                },
                **(catalogue or {}),
            }
        ),
        database=database_result(**{**usual, **database}),
    )
