"""Stored runs from Python: open, runs, compare, history, sql, name."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from uncork.analysis.runs.listing import check_filter, read_runs
from uncork.api.display import Shown
from uncork.api.runs import Run, Runs, open_folder
from uncork.api.tables import Table
from uncork.api.words import Place, calling, runs_folder
from uncork.errors import SetupError, UsageError
from uncork.model.stored_run import RunFilter, select
from uncork.requests.moments import since_of
from uncork.requests.stored_options import LEAST_WINDOW
from uncork.store.layout import find_run, name_run

if TYPE_CHECKING:
    from pathlib import Path

    from uncork.model.results.history import History, HistoryChange
    from uncork.report.blocks import Document
    from uncork.store.query import RunReader
    from uncork.store.query_all import AllRunsReader
    from uncork.store.sandbox import Answer
    from uncork.workbench.documents.run_document import ComparedResult, RunDocument


def open(run: str = "last", *, runs: Place | None = None) -> Run:
    """Open a stored run by its id, the beginning of an id, its name, its folder, or ``"last"``.

    Raises:
        SetupError: if no run matches, or several do.
        StoreError: if it is damaged.
    """
    return open_folder(find_run(runs_folder(runs), run))


def runs(
    *,
    search: str = "",
    kind: str = "",
    status: str = "",
    tag: str = "",
    last: int | None = None,
    runs: Place | None = None,
) -> Runs:
    """List the stored runs, oldest first, filtered by words, kind, status and tag; `last` limits the number.

    Damaged runs are left out; `uncork runs` reports what is wrong with them.

    Raises:
        UsageError: if the kind or status does not exist.
        StoreError: if the folder cannot be listed.
    """
    check_filter("kind", kind)
    check_filter("status", status)
    wanted = RunFilter(text=search, kind=kind, status=status, tag=tag)
    found = select(read_runs(runs_folder(runs)).runs, wanted)
    return Runs(found if last is None else found[-last:] if last > 0 else [])


def name(run: str | Run, called: str, *, runs: Place | None = None) -> None:
    """Name a run, so that every command finds it; `compare` with one run uses the run named ``"baseline"``.

    Raises:
        UsageError: if the name is invalid or reserved.
        SetupError: if there is no such run.
    """
    with calling():
        name_run(runs_folder(runs), _word(run), called)


class Compared(Shown):
    """A comparison of stored runs; `result` holds every metric with its ratio, interval and verdict."""

    def __init__(self, document: RunDocument[ComparedResult]) -> None:
        self._found, self.result = document, document.result

    def _document(self) -> Document:
        return self._found.document

    def __repr__(self) -> str:
        return f"<uncork comparison: {self.answer}>"


def compare(
    *wanted: str | Run,
    against: str | Run | None = None,
    practical: str = "3%",
    any_machine: bool = False,
    runs: Place | None = None,
) -> Compared:
    """Compare stored runs with the first of them, or with `against`.

    A single run is compared with the run named ``"baseline"``. `practical` is the smallest
    difference that matters. `any_machine` includes runs of different machines, without verdicts.

    Raises:
        UsageError: if they cannot be compared.
        SetupError: if one is not stored.
        StoreError: if one is damaged.
    """
    from uncork.analysis.runs.compared import compared_runs, practical_share  # noqa: PLC0415 -- only here
    from uncork.workbench.documents.run_document import comparison_document  # noqa: PLC0415

    root = runs_folder(runs)
    with calling():
        if not wanted:
            raise UsageError("name the runs to compare")
        other = None if against is None else _word(against)
        before, folders = compared_runs(root, [_word(run) for run in wanted], other)
        share = practical_share(practical)
        made = comparison_document(root, before, folders, practical=share, any_machine=any_machine)
        return Compared(made)


class FigureHistory(Shown):
    """The history of a metric over comparable runs, and its changes."""

    result: History

    def __init__(self, result: History) -> None:
        self.result = result

    @property
    def changes(self) -> tuple[HistoryChange, ...]:
        """The changes of level, with their confidence; a suspected change comes last."""
        return self.result.changes

    def table(self) -> Table:
        """Return one row per run: its value, and the level of its segment."""
        import pyarrow as pa  # noqa: PLC0415 -- only here

        names = ("number", "id", "started_at", "commit", "value", "level")
        rows = [{name: getattr(run, name) for name in names} for run in self.result.runs]
        return Table(pa.Table.from_pylist(rows))

    def _document(self) -> Document:
        from uncork.report.runs.history import build_history_document  # noqa: PLC0415 -- charts take long to load

        return build_history_document(self.result)

    def __repr__(self) -> str:
        return f"<uncork history: {self.answer}>"


def history(
    metric: str,
    *,
    of: str | None = None,
    like: str | Run | None = None,
    any_machine: bool = False,
    since: str | datetime | None = None,
    branch: str | None = None,
    window: int | None = None,
    everything: bool = False,
    runs: Place | None = None,
) -> FigureHistory:
    """Show how a metric, such as ``"p99"``, changed over comparable stored runs, and when.

    `of` names the statement, variant or command, where several have the metric. `like` is the run that the
    others must be comparable to; the default is the newest run with the metric. `any_machine` includes runs
    of different machines. `since` (such as ``"30d"`` or ``"2026-05-31"``) and `branch` select runs. `window`
    judges the newest run against that many runs before it: see ``result.newest``. `everything` includes runs
    in which a guard found a broken gate.

    Raises:
        UsageError: if no run has the metric, or several subjects have it.
        SetupError: if there are no runs.
    """
    from uncork.analysis.runs.history import RunSelection, stored_history  # noqa: PLC0415 -- only here
    from uncork.report.runs.history import answer_history  # noqa: PLC0415 -- as above

    other = None if like is None else _word(like)
    if window is not None and window < LEAST_WINDOW:
        raise UsageError(f"window={window}: at least {LEAST_WINDOW} runs are needed to judge the newest")
    with calling():
        found = stored_history(
            runs_folder(runs),
            metric,
            subject=of,
            like=other,
            any_machine=any_machine,
            everything=everything,
            selection=RunSelection(_since(since), branch or ""),
            window=window,
        )
    return FigureHistory(answer_history(found))


def _since(since: str | datetime | None) -> datetime | None:
    if isinstance(since, datetime):
        return since if since.tzinfo is not None else since.replace(tzinfo=UTC)
    return since_of(since, "since", datetime.now(UTC))


def sql(query: str = "SHOW TABLES", *, run: str | Run | None = None, runs: Place | None = None) -> Table:
    """Query all stored runs, or one, in DuckDB's SQL.

    Across all runs, each table has the additional column run, and the table runs has one row per
    run. Damaged runs are left out; `uncork sql` reports them.

    Raises:
        UsageError: if DuckDB rejects the query; its message says where.
        SetupError: if there are no runs.
    """
    root = runs_folder(runs)
    folder = None if run is None else find_run(root, _word(run))
    with _tables(root, folder, "; uncork.run(FILE) and uncork.load_sql() make some") as reader:
        return Table(reader.ask_arrow(query))


def query_sandboxed(query: str, *, run: Run | None, runs: Place | None = None, most: int) -> Answer:
    """Return up to `most` rows of a query that can touch nothing but the tables of a run, or of all runs.

    For queries that a program wrote; see `uncork.store.sandbox`.

    Raises:
        UsageError: if the query is not a single SELECT, or DuckDB rejects it.
        SetupError: if there are no runs.
    """
    with _tables(runs_folder(runs), None if run is None else run.folder) as reader:
        return reader.ask_sandboxed(query, most)


def _tables(root: Path, folder: Path | None, remedy: str = "") -> closing[RunReader | AllRunsReader]:
    """Return a reader of the tables of a run, or of all runs; `remedy` is for a folder without runs."""
    from uncork.store.query_all import AllRunsReader  # noqa: PLC0415 -- only here
    from uncork.workbench.documents.run_tables import run_tables  # noqa: PLC0415

    if folder is not None:
        return closing(run_tables(folder))
    found = read_runs(root)
    if not found.runs:
        raise SetupError(f"there are no runs in {root}{remedy}")
    return closing(AllRunsReader(root, found.runs))


def _word(run: str | Run) -> str:
    return str(run.folder) if isinstance(run, Run) else run
