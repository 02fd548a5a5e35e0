"""Read a run with DuckDB: its trials, and the aggregates that reports need."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypedDict, TypeVar

from uncork.errors import SetupError, StoreError, UsageError
from uncork.model.engine import EngineOverhead
from uncork.model.tables.log import LOG_EVENTS
from uncork.model.tables.register import TABLES, AnswerRow, DataCheckRow, RefusalRow
from uncork.model.tables.stacks import EVIDENCE, STACK_TABLES
from uncork.model.trial import Cell
from uncork.store.documents import read_document
from uncork.store.layout import Manifest, read_manifest, stored_file, unreadable
from uncork.store.remote.mirrors import fetch
from uncork.store.sandbox import Answer, ask_sandboxed


class TrialValue(NamedTuple):
    """The place and value of one trial."""

    round: int
    block: int
    position: int
    cell: str
    workload: str
    variant: str
    again: bool
    value: float | None
    succeeded: int
    started: int
    long_slices: bool | None


class RoundValue(TypedDict):
    """A value of one round."""

    round: int
    value: float


class ArmValues(NamedTuple):
    """One arm's trials, failures, geometric mean of the metric, and share of success, also by round."""

    cell: str
    workload: str
    variant: str
    again: bool
    trials: int
    failed: int
    value: float | None
    rounds: list[RoundValue] | None
    share: float | None
    shares: list[RoundValue] | None


class RequestSums(NamedTuple):
    """One variant's operations; `statuses` and `errors` are counts as JSON, one text for each trial."""

    cell: str
    workload: str
    variant: str
    started: int
    succeeded: int
    failed: int
    statuses: list[str] | None
    errors: list[str]
    throughput: float | None
    mean_ns: float | None
    longest_ns: int | None


class Histograms(NamedTuple):
    """One variant's operation histograms, and how many operations they count."""

    cell: str
    workload: str
    variant: str
    histograms: list[bytes]
    executions: int


class FailedTrials(NamedTuple):
    """How many trials failed alike."""

    cell: str
    workload: str
    variant: str
    outcome: str
    message: str
    trials: int


if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

Built = TypeVar("Built")
Found = TypeVar("Found", TrialValue, ArmValues, RequestSums, Histograms, FailedTrials)


class Queries(ABC):
    """Tables that can be queried with DuckDB's SQL."""

    def ask(self, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the columns and rows of a query.

        The internal column `filename` is left out unless the query names it. Raises UsageError if
        DuckDB rejects the query; the message says where.
        """
        return self._answer(query, _rows_of)

    def ask_arrow(self, query: str) -> pa.Table:
        """Return the result of a query as Arrow. Raises UsageError as `ask` does."""
        return self._answer(query, arrow_of)

    def ask_sandboxed(self, query: str, most: int) -> Answer:
        """Return up to `most` rows of a query that can touch nothing but the tables.

        Raises UsageError if the query is not a single SELECT, or DuckDB rejects it.
        """
        return self._answer(query, lambda connection, text: ask_sandboxed(connection, text, most))

    @abstractmethod
    def _answer(self, query: str, take: Callable[[duckdb.DuckDBPyConnection, str], Built]) -> Built:
        """Return what `take` makes of a query on the tables that it names. Raises UsageError."""


class RunReader(Queries):
    """One stored run. If the run is at an address, its files are fetched first.

    `manifest` is the run's manifest, if the caller has read it already. `needed` lists the tables
    and files to fetch; all by default.

    Raises:
        StoreError: from any method, if the run's files are damaged.
    """

    def __init__(
        self, folder: Path, manifest: Manifest | None = None, needed: Sequence[str] | None = None
    ) -> None:
        self.folder = folder
        for error in fetch([folder], needed):
            raise error
        self.manifest: Manifest = read_manifest(folder) if manifest is None else manifest
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._known: set[str] = set()
        self._computed: dict[str, tuple[pa.Table, Callable[[], pa.Table]]] = {}

    def close(self) -> None:
        """Close the database connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._known.clear()

    def specification(self) -> str:
        """Return the experiment file's text. Raises SetupError if the run is not an experiment."""
        if self.manifest.kind != "experiment":
            raise SetupError(
                f"run {self.manifest.id} is a {self.manifest.kind}, not an experiment; see it with "
                f"`uncork report`, and repeat it with: {self.manifest.options.get('command', '')}"
            )
        return self._text("experiment.toml")

    def read_file(self, name: str) -> str:
        """Return the text of an SQL file that the experiment file names. Raises OSError."""
        return stored_file(self.folder, name).read_text()

    def environment(self) -> dict[str, dict[str, str]]:
        """Return the facts about server and machine; empty if the run ended before they were known."""
        return read_document(self.folder / "environment.json", dict[str, dict[str, str]]) or {}

    def values(self) -> list[TrialValue]:
        """Return the place and value of each trial, in the order they ran."""
        return self._typed(
            TrialValue,
            "SELECT round, block, position, cell, workload, variant, again, value, succeeded, started, "
            "long_slices "
            "FROM trials ORDER BY round, cell, workload, block, position",
        )

    def trials(self) -> list[dict[str, Any]]:
        """Return every trial as stored, except its histogram, in the order they ran."""
        return self._rows(
            "SELECT * EXCLUDE (filename, histogram) FROM trials "
            "ORDER BY round, cell, workload, block, position"
        )

    def last_round(self) -> int:
        """Return the number of the last round with trials; 0 if there are none."""
        return int(self._rows("SELECT coalesce(max(round), 0) AS last FROM trials")[0]["last"])

    def totals(self) -> dict[str, int]:
        """Count trials, and failed trials."""
        return self._rows(
            "SELECT count(*) AS trials, count(*) FILTER (outcome <> 'complete') AS failed FROM trials"
        )[0]

    def metrics(self) -> list[ArmValues]:
        """Return each arm's trials, failures, geometric mean of the metric, and its mean by round."""
        return self._typed(ArmValues, _METRICS)

    def times(self) -> list[dict[str, Any]]:
        """Return the mean time of an operation by cell, workload, variant and round, from complete trials."""
        return self._rows(
            "SELECT cell, workload, variant, round, exp(avg(ln(sum_ns / executions))) AS mean_ns FROM trials "
            "WHERE outcome = 'complete' AND executions > 0 AND sum_ns > 0 GROUP BY ALL ORDER BY ALL"
        )

    def setup_ns(self) -> int | None:
        """Return how long it took until the first trial; None if unknown, or the run was resumed."""
        (row,) = self._rows("SELECT min(begun_us) AS begun_us FROM system_samplings")
        first_us: int | None = row["begun_us"]
        if first_us is None or len(self.manifest.attempts) != 1:
            return None
        started = datetime.fromisoformat(self.manifest.attempts[0].started_at)
        return max(0, first_us * 1000 - round(started.timestamp() * 1e9))

    def costs(self) -> list[dict[str, Any]]:
        """Return resources per operation by cell, workload and variant; the baseline's two arms together."""
        return self._rows(_COSTS)

    def requests(self) -> list[RequestSums]:
        """Return counts of operations by variant."""
        return self._typed(
            RequestSums,
            "SELECT cell, workload, variant, sum(started)::BIGINT AS started, "
            "sum(succeeded)::BIGINT AS succeeded, sum(failed)::BIGINT AS failed, "
            "list(statuses) FILTER (statuses IS NOT NULL) AS statuses, list(errors) AS errors, "
            "1e9 * sum(started) / nullif(sum(elapsed_ns), 0) AS throughput, "
            "sum(sum_ns) / nullif(sum(executions), 0) AS mean_ns, max(max_ns) AS longest_ns "
            "FROM trials WHERE outcome = 'complete' AND started > 0 GROUP BY ALL ORDER BY ALL",
        )

    def answers(self) -> list[AnswerRow]:
        """Return how variants' answers differ from the baseline's, where the experiment allows it."""
        return [AnswerRow(**row) for row in self._latest("answers")]

    def figures(self) -> list[dict[str, Any]]:
        """Return each trial's place, metric and other comparable values, in the order they ran."""
        return self._rows(
            "SELECT round, block, position, cell, workload, variant, again, value, p50_ns, p99_ns, "
            "(server_user_ns + server_system_ns) / nullif(started, 0) AS server_cpu_ns, "
            "(service_user_ns + service_system_ns) / nullif(started, 0) AS service_cpu_ns, observer_ns, "
            "started, elapsed_ns FROM trials ORDER BY round, cell, workload, block, position"
        )

    def figure_rows(self) -> list[dict[str, Any]]:
        """Return the metrics of an imported result, in order."""
        return self._rows("SELECT * EXCLUDE (filename, position) FROM figures ORDER BY position")

    def samplings(self) -> list[dict[str, Any]]:
        """Return the samplings of each variant's trials by cell and workload, and their operations."""
        return self._rows(
            "SELECT cell, workload, variant, list(sampling) AS samplings, sum(started)::BIGINT AS operations "
            "FROM system_samplings JOIN trials USING (round, block, cell, workload, variant, again) "
            "GROUP BY ALL ORDER BY ALL"
        )

    def histograms(self) -> list[Histograms]:
        """Return each variant's operation histograms by cell and workload, from complete trials."""
        return self._typed(
            Histograms,
            "SELECT cell, workload, variant, list(histogram) AS histograms, "
            "sum(executions)::BIGINT AS executions FROM trials "
            "WHERE outcome = 'complete' AND histogram IS NOT NULL GROUP BY ALL ORDER BY ALL",
        )

    def disturbances(self) -> dict[str, int]:
        """Count trials by disturbance."""
        rows = self._rows(
            "SELECT unnest(string_split(disturbances, ',')) AS name, count(*) AS trials FROM trials "
            "WHERE disturbances <> '' GROUP BY name ORDER BY name"
        )
        return {row["name"]: row["trials"] for row in rows}

    def failures(self) -> list[FailedTrials]:
        """Return failed trials by message, most frequent first."""
        return self._typed(
            FailedTrials,
            "SELECT cell, workload, variant, outcome, coalesce(message, '') AS message, count(*) AS trials "
            "FROM trials WHERE outcome <> 'complete' GROUP BY ALL ORDER BY trials DESC LIMIT 20",
        )

    def plans(self) -> list[dict[str, Any]]:
        """Return executed plans; for a resumed run, the newest."""
        return self._latest("plans")

    def relations(self) -> list[dict[str, Any]]:
        """Return sizes; for a resumed run, the newest."""
        return self._latest("relations")

    def refusals(self) -> list[RefusalRow]:
        """Return the refused variants."""
        return [RefusalRow(**row) for row in self._latest("refusals")]

    def data_checks(self) -> list[DataCheckRow]:
        """Return the results of data checks; for a resumed run, the newest."""
        return [DataCheckRow(**row) for row in self._latest("data_checks")]

    def overheads(self) -> list[EngineOverhead]:
        """Return the overhead of each engine's client; for a resumed run, the newest."""
        return [EngineOverhead(**row) for row in self._latest("overheads")]

    def row_counts(self) -> dict[str, int]:
        """Return the number of rows of each table that has rows."""
        return {
            name: int(self._rows(f'SELECT count(*) AS rows FROM "{name}"')[0]["rows"])  # noqa: S608 -- our own names
            for name in self.tables()
        }

    def tables(self) -> list[str]:
        """Return the names of the tables that have rows."""
        views = "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY view_name"
        connection = self._open(views)  # tables without rows are empty tables, not views of files
        return [name for (name,) in connection.execute(views).fetchall()]

    # ---- steps ----

    def _answer(self, query: str, take: Callable[[duckdb.DuckDBPyConnection, str], Built]) -> Built:
        import duckdb  # noqa: PLC0415 -- loading it takes 70 ms, and many runs are read without it

        connection = self._open(query)
        try:
            return take(connection, query)
        except duckdb.Error as error:
            raise UsageError(f"{error}") from error

    def _text(self, name: str) -> str:
        path = self.folder / name
        try:
            return path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise unreadable(path, error) from error

    def _document(self, name: str, build: Callable[[Any], Built]) -> Built:
        """Return what `build` makes of a JSON file of the run."""
        try:
            return build(json.loads(self._text(name)))
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{self.folder / name}: damaged: {error}") from error

    def _latest(self, name: str) -> list[dict[str, Any]]:
        key = ", ".join(f'"{column}"' for column in TABLES[name].key)
        return self._rows(
            f"SELECT * EXCLUDE (filename) FROM {name} "  # noqa: S608 -- names from our own tables
            f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY filename DESC) = 1 ORDER BY ALL"
        )

    def _typed(self, kind: type[Found], query: str) -> list[Found]:
        """Return rows as tuples of `kind`, whose fields are the columns of the query in their order."""
        return [kind(*row) for row in self._fetch(query)[1]]

    def _rows(self, query: str) -> list[dict[str, Any]]:
        names, rows = self._fetch(query)
        return [dict(zip(names, row, strict=True)) for row in rows]

    def _fetch(self, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        import duckdb  # noqa: PLC0415 -- as in `_answer`

        try:
            cursor = self._open(query).execute(query)
            return [column[0] for column in cursor.description or ()], cursor.fetchall()
        except duckdb.Error as error:
            raise StoreError(f"{self.folder}: damaged: {error}") from error

    def _open(self, query: str) -> duckdb.DuckDBPyConnection:
        """Return a connection with the tables that a query names; with all tables if it names none.

        Raises StoreError if a file of these tables is damaged.
        """
        import duckdb  # noqa: PLC0415 -- as in `_answer`

        try:
            if self._connection is None:
                self._connection = duckdb.connect()
                _add_events(self._connection, self.folder)
                self._known |= set(add_evidence(self._connection, self.folder))
            words = set(re.findall(r"\w+", query.lower()))
            known = TABLES.keys() | self._computed.keys()
            for name in known & words or known:
                if name in self._known:
                    continue
                if name in self._computed and name not in words:  # SHOW TABLES needs its columns only
                    self._connection.register(name, self._computed[name][0])
                    continue
                self._add(self._connection, name)
                self._known.add(name)
        except duckdb.Error as error:
            raise StoreError(f"{self.folder}: damaged: {error}") from error
        return self._connection

    def add_computed(self, name: str, empty: pa.Table, compute: Callable[[], pa.Table]) -> None:
        """Add a table that is computed when a query names it; `empty` has its columns."""
        self._computed[name] = (empty, compute)

    def _add(self, connection: duckdb.DuckDBPyConnection, name: str) -> None:
        if name in self._computed:
            connection.register(name, self._computed[name][1]())
            return
        files = sorted(str(path) for path in (self.folder / name).glob("*.parquet"))
        if name == LOG_EVENTS.name and not files:
            return
        if files:
            connection.read_parquet(files, filename=True).create_view(name)
            return
        columns = ", ".join(f'"{column.name}" {DUCKDB_TYPES[column.type]}' for column in TABLES[name].columns)
        connection.execute(f"CREATE TABLE {name} ({columns}, filename VARCHAR)")


def _rows_of(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    cursor = connection.execute(query)
    names, rows = [column[0] for column in cursor.description or ()], cursor.fetchall()
    if "filename" in names and "filename" not in query.lower():
        kept = [place for place, name in enumerate(names) if name != "filename"]
        return [names[place] for place in kept], [tuple(row[place] for place in kept) for row in rows]
    return names, rows


def arrow_of(connection: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    """Return the result of a query as Arrow. Raises UsageError if the query is empty, or duckdb.Error."""
    found = connection.sql(query)
    if found is None:
        raise UsageError("the query is empty; write one, such as SHOW TABLES")
    return found.to_arrow_table()


DUCKDB_TYPES: Final = {
    "text": "VARCHAR",
    "integer": "BIGINT",
    "real": "DOUBLE",
    "flag": "BOOLEAN",
    "bytes": "BLOB",
    "time": "TIMESTAMP",
}


def _add_events(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Add the entries of a log, if they were stored and still exist."""
    import duckdb  # noqa: PLC0415 -- as in `_answer`

    facts = folder / "facts.json"
    if not facts.is_file():
        return
    try:
        path = json.loads(facts.read_text()).get("events")
    except (OSError, ValueError, AttributeError) as error:
        raise StoreError(f"{facts}: damaged: {error}") from error
    files = sorted(str(one) for one in Path(path).glob("events-*.parquet")) if path else []
    if not files:
        return
    events, statements = (
        ", ".join("'" + name.replace("'", "''") + "'" for name in names)
        for names in (files, [f"{path}/statements.parquet"])
    )
    try:
        columns = ", ".join(f'"{column.name}"' for column in LOG_EVENTS.columns)
        connection.execute(
            f"CREATE VIEW {LOG_EVENTS.name} AS SELECT {columns} "  # noqa: S608 -- quoted above
            f"FROM read_parquet([{events}]) AS event "
            f"LEFT JOIN read_parquet([{statements}]) AS statement USING (statement_id)"
        )
    except duckdb.Error as error:
        raise StoreError(f"{path}: damaged: {error}") from error


_METRICS = """
WITH by_round AS (
  SELECT cell, workload, variant, again, round, count(*) AS trials,
         count(*) FILTER (value IS NULL) AS failed, avg(ln(value)) FILTER (value > 0) AS log_value,
         sum(succeeded) FILTER (value IS NOT NULL) AS succeeded,
         sum(started) FILTER (value IS NOT NULL) AS started
    FROM trials GROUP BY ALL)
SELECT cell, workload, variant, again, sum(trials)::BIGINT AS trials, sum(failed)::BIGINT AS failed,
       exp(list_avg(list(log_value ORDER BY round))) AS value,
       list({'round': round, 'value': exp(log_value)} ORDER BY round)
         FILTER (log_value IS NOT NULL) AS rounds,
       sum(succeeded) / nullif(sum(started), 0) AS share,
       list({'round': round, 'value': succeeded / started} ORDER BY round) FILTER (started > 0) AS shares
  FROM by_round GROUP BY ALL ORDER BY ALL
"""

_COSTS = """
SELECT cell, workload, variant, sum(started)::BIGINT AS operations,
       sum(server_user_ns) / sum(started) FILTER (server_user_ns IS NOT NULL) AS server_user_ns,
       sum(server_system_ns) / sum(started) FILTER (server_system_ns IS NOT NULL) AS server_system_ns,
       sum(client_user_ns) / sum(started) FILTER (client_user_ns IS NOT NULL) AS client_user_ns,
       sum(client_system_ns) / sum(started) FILTER (client_system_ns IS NOT NULL) AS client_system_ns,
       sum(shared_hit) / sum(counted_operations) FILTER (shared_hit IS NOT NULL) AS shared_hit,
       sum(shared_read) / sum(counted_operations) FILTER (shared_read IS NOT NULL) AS shared_read,
       sum(shared_dirtied) / sum(counted_operations) FILTER (shared_dirtied IS NOT NULL) AS shared_dirtied,
       sum(temp_bytes) / sum(counted_operations) FILTER (temp_bytes IS NOT NULL) AS temp_bytes,
       sum(wal_bytes) / sum(counted_operations) FILTER (wal_bytes IS NOT NULL) AS wal_bytes,
       sum(wal_records) / sum(counted_operations) FILTER (wal_records IS NOT NULL) AS wal_records,
       sum(queries) / sum(counted_operations) FILTER (queries IS NOT NULL) AS queries,
       sum(hot_updated) / nullif(sum(updated) FILTER (hot_updated IS NOT NULL), 0) AS hot_share,
       sum("rows") / sum(started) AS "rows",
       sum(sent_bytes) / sum(started) FILTER (sent_bytes IS NOT NULL) AS sent_bytes,
       sum(received_bytes) / sum(started) FILTER (received_bytes IS NOT NULL) AS received_bytes,
       sum(service_user_ns) / sum(counted_operations) FILTER (service_user_ns IS NOT NULL) AS service_user_ns,
       sum(service_system_ns) / sum(counted_operations) FILTER (service_user_ns IS NOT NULL)
         AS service_system_ns
  FROM trials WHERE outcome = 'complete' AND started > 0 GROUP BY ALL ORDER BY ALL
"""


# ---- evidence views ----


def add_evidence(connection: duckdb.DuckDBPyConnection, folder: Path) -> frozenset[str]:
    """Add the evidence of a run's variants to a connection; if collected twice, the newest.

    Returns the names of the tables and views that were created; empty if the run has no evidence.
    Raises StoreError if the run's files are damaged.
    """
    import duckdb  # noqa: PLC0415 -- see `store.query`

    places = list(_newest(folder / "evidence"))
    if not places:
        return frozenset()
    try:
        listed = ", ".join(f'"{column.name}"' for column in EVIDENCE.columns)
        rows = _values([_row(number, facts) for number, _, facts in places])
        view = f"SELECT * FROM (VALUES {rows}) AS seen({listed})"  # noqa: S608 -- quoted
        connection.execute(f"CREATE VIEW {EVIDENCE.name} AS {view}")
        made = {EVIDENCE.name}
        for table in STACK_TABLES:
            files = [
                (str(path), number, *_place(facts))
                for number, seen, facts in places
                for path in sorted((seen / table.name).glob("*.parquet"))[-1:]
            ]
            if files:
                connection.execute(_joined(table.name, files))
                made.add(table.name)
    except duckdb.Error as error:
        raise StoreError(f"{folder}: damaged: {error}") from error
    return frozenset(made)


def _newest(folder: Path) -> Iterator[tuple[int, Path, Mapping[str, Any]]]:
    found: dict[tuple[str, str, str], tuple[int, Path, Mapping[str, Any]]] = {}
    for path in sorted(folder.glob("*/facts.json")):
        try:
            facts = json.loads(path.read_text())
            found[_place(facts)] = (int(path.parent.name), path.parent, facts)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path}: damaged: {error}") from error
    yield from sorted(found.values(), key=lambda one: one[0])


def _place(facts: Mapping[str, Any]) -> tuple[str, str, str]:
    place = facts["place"]
    return Cell.of(place["cell"]).name, place["workload"], place["variant"]


def _row(number: int, facts: Mapping[str, Any]) -> tuple[Any, ...]:
    method, calls = facts["method"], facts["syscalls"]
    user, system = facts["cpu_ns"] or (None, None)
    load = (facts["load"]["operations"], facts["load"]["elapsed_ns"])
    watched = (method["watched_ns"], method["tool"], user, system)
    missing = json.dumps(method["cannot_see"], ensure_ascii=False)
    return (number, *_place(facts), *load, *watched, calls["by"], calls["watched_ns"], missing)


def _joined(name: str, files: Sequence[tuple[Any, ...]]) -> str:
    listed = ", ".join(_literal(path) for path, *_ in files)
    values = _values(files)
    return (
        f"CREATE VIEW {name} AS SELECT evidence, cell, workload, variant, seen.* "  # noqa: S608 -- quoted
        f"FROM read_parquet([{listed}], filename = true) AS seen "
        f"JOIN (VALUES {values}) AS place(filename, evidence, cell, workload, variant) USING (filename)"
    )


def _values(rows: Iterable[Sequence[Any]]) -> str:
    return ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)


def _literal(value: str | int | None) -> str:
    if value is None:
        return "NULL::BIGINT"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
