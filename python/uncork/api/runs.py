"""Stored runs as objects, by kind: their results, tables and reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final, overload

from uncork.analysis.experiment.comparisons import COMPARISONS, comparisons_table
from uncork.api.display import Shown
from uncork.api.tables import Table, drawn
from uncork.errors import ExpectationError, UncorkError, UndecidedError, UsageError
from uncork.model.results.figure import RunFigures
from uncork.model.trial import Cell
from uncork.model.units import format_duration
from uncork.store.layout import read_manifest
from uncork.store.query import RunReader
from uncork.workbench.guard.store import GUARD_FILE

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

    from uncork.api.verdicts import VariantVerdicts
    from uncork.model.results.cure import Change, CureResult
    from uncork.model.results.database import DatabaseResult
    from uncork.model.results.experiment import Comparison, NoiseFloor, RunResult
    from uncork.model.results.guard import GateCheck, GuardResult
    from uncork.model.results.load import LoadResult, TogetherResult
    from uncork.model.results.log import LogResult
    from uncork.model.results.service import ServiceResult
    from uncork.model.results.stacks import StackResult
    from uncork.model.results.sweep import SweepResult
    from uncork.model.stored_run import StoredRun
    from uncork.report.blocks import Document
    from uncork.workbench.documents.run_document import RunDocument, StoredResult


class Run(Shown):
    """A stored run, as it was when it was opened.

    Raises:
        StoreError: from any method, if the run's files are damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._manifest = read_manifest(folder)

    @property
    def id(self) -> str:
        """The name of the run's folder, which every command accepts."""
        return self._manifest.id

    @property
    def kind(self) -> str:
        """The kind of run, such as experiment, load or log."""
        return self._manifest.kind

    @property
    def status(self) -> str:
        """The state of the run: running, complete, interrupted or failed."""
        return self._manifest.status

    @property
    def question(self) -> str:
        """The question of the experiment, or a description of the run."""
        return self._manifest.question

    @cached_property
    def result(self) -> StoredResult:
        """The result with everything that the report shows, as typed values."""
        from uncork.workbench.documents.kinds import kind_of  # noqa: PLC0415 -- keeps `import uncork` fast

        kind = kind_of(self.folder)
        result: StoredResult = kind.result(kind.read(self.folder))
        return result

    @property
    def answer(self) -> str:
        """The first sentences of the report."""
        return self._said.document.answer if isinstance(self.result, RunFigures) else self.result.answer

    # ---- tables ----

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables with rows."""
        with closing(self._reader()) as reader:
            return tuple(reader.tables())

    def table(self, name: str) -> Table:
        """Return one of the run's tables.

        Raises:
            UsageError: if the run has no such table.
        """
        if name not in self.tables:
            raise UsageError(f'run {self.id} has no table "{name}"; it has {", ".join(self.tables)}')
        data = self.sql(f'SELECT * FROM "{name}"').arrow()  # noqa: S608 -- one of our tables
        return Table(data.select([column for column in data.column_names if column != "filename"]))

    def arrow(self, name: str) -> pa.Table:
        """Return one of the run's tables as a `pyarrow.Table`."""
        return self.table(name).arrow()

    def pandas(self, name: str) -> pandas.DataFrame:
        """Return one of the run's tables as a pandas data frame."""
        return self.table(name).pandas()

    def polars(self, name: str) -> polars.DataFrame:
        """Return one of the run's tables as a Polars data frame."""
        return self.table(name).polars()

    def sql(self, query: str) -> Table:
        """Query the run's tables in DuckDB's SQL.

        Raises:
            UsageError: if DuckDB rejects the query; its message says where.
        """
        with closing(self._reader()) as reader:
            return Table(reader.ask_arrow(query))

    def _reader(self) -> RunReader:
        return RunReader(self.folder)

    # ---- reports ----

    def _document(self) -> Document:
        return self._said.document

    def json(self) -> str:
        """Return the result as JSON; its schema is in schemas/."""
        return self._said.json

    def __repr__(self) -> str:
        try:
            return f"<uncork run {self.id}: {self.answer}>"
        except UncorkError as error:
            return f"<uncork run {self.id}, {self.status}: {error}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.folder.resolve() == other.folder.resolve()

    def __hash__(self) -> int:
        return hash(self.folder.resolve())

    @cached_property
    def _said(self) -> RunDocument[StoredResult]:
        from uncork.workbench.documents.run_document import run_document  # noqa: PLC0415 -- as above

        return run_document(self.folder)


class ExperimentRun(Run):
    """The run of an experiment: variants compared with their baseline, with verdicts."""

    @cached_property
    def result(self) -> RunResult:
        """The result with everything that the report shows, as typed values."""
        from uncork.workbench.documents.experiments import read_experiment  # noqa: PLC0415 -- as above

        return read_experiment(self.folder)

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Each variant against the baseline, by cell and workload: ratio, interval, verdict, reason."""
        return self.result.comparisons

    @property
    def noise(self) -> NoiseFloor:
        """The noise floor: the baseline compared with itself."""
        return self.result.noise

    @property
    def variants(self) -> tuple[str, ...]:
        """The names of the variants, in the order of the experiment."""
        return tuple(variant.name for variant in self.result.variants)

    def _reader(self) -> RunReader:
        """Return a reader of the stored tables, and of `comparisons`, which holds the verdicts."""
        reader = super()._reader()
        reader.add_computed(COMPARISONS, comparisons_table(()), lambda: comparisons_table(self.comparisons))
        return reader

    def expect(self, *expectations: str) -> None:
        """Check expectations of variants, such as ``"uuid=not-slower"``.

        Raises:
            ExpectationError: if one is contradicted; the message shows the evidence. It is an AssertionError.
            UndecidedError: if the evidence does not decide; it is an ExpectationError.
            UsageError: if an expectation is invalid.
        """
        from uncork.api.verdicts import met  # noqa: PLC0415 -- as above
        from uncork.api.words import calling  # noqa: PLC0415

        with calling():
            met(self.result, expectations)

    def __getitem__(self, variant: str) -> VariantVerdicts:
        from uncork.api.verdicts import VariantVerdicts  # noqa: PLC0415 -- as above

        names = [variant.name for variant in self.result.variants if not variant.baseline]
        if variant not in names:
            raise KeyError(f'run {self.id} does not compare "{variant}"; it compares: {", ".join(names)}')
        return VariantVerdicts(self.result, variant)


class LoadRun(Run):
    """A load over SQL or HTTP."""

    result: LoadResult

    @property
    def ok(self) -> bool:
        """Whether nothing failed during the load."""
        from uncork.analysis.load.result import went_wrong  # noqa: PLC0415 -- as above

        return not went_wrong(self.result)


class SweepRun(Run):
    """A sweep of loads over levels."""

    result: SweepResult


class LogRun(Run):
    """A profile of logs."""

    result: LogResult


class DatabaseRun(Run):
    """A profile of a running server."""

    result: DatabaseResult


class CpuRun(Run):
    """A profile of CPU time by stack."""

    result: StackResult


class ServiceRun(Run):
    """A profile of a service with its database."""

    result: ServiceResult


class ImportedRun(Run):
    """A result of another tool."""

    result: RunFigures


class GuardRun(Run):
    """A guard: every gate, and its outcome."""

    result: GuardResult

    @property
    def passed(self) -> bool:
        """Whether all gates pass; if one is undecided, this is false and `undecided` is true."""
        return self.result.status == 0

    @property
    def undecided(self) -> bool:
        """Whether no gate is broken, but one is undecided."""
        return self.result.status == 4

    @property
    def checks(self) -> tuple[GateCheck, ...]:
        """Each gate in each cell and workload, with its outcome and reason."""
        return self.result.checks

    def check(self) -> None:
        """Raise an error unless all gates pass.

        Raises:
            ExpectationError: if one is broken; the message names each gate that does not pass, and why.
            UndecidedError: if one is undecided.
        """
        if self.passed:
            return
        lines = [self.answer]
        for gate_check in self.checks:
            if gate_check.outcome.value in ("broken", "not decided"):
                where = f"{gate_check.workload}{Cell(gate_check.cell).at}"
                lines.append(
                    f"  {gate_check.gate.text} on {where}: {gate_check.outcome.value}: {gate_check.reason}"
                )
        lines.append(f"full report: uncork report {self.id}")
        raise (UndecidedError if self.undecided else ExpectationError)("\n".join(lines))


class Runs(Sequence[Run]):
    """Stored runs, oldest first; each is opened on access."""

    def __init__(self, stored: Sequence[StoredRun]) -> None:
        self.stored = tuple(stored)

    @overload
    def __getitem__(self, place: int) -> Run: ...
    @overload
    def __getitem__(self, place: slice) -> Runs: ...
    def __getitem__(self, place: int | slice) -> Run | Runs:
        return (
            Runs(self.stored[place]) if isinstance(place, slice) else open_folder(self.stored[place].folder)
        )

    def __len__(self) -> int:
        return len(self.stored)

    def __iter__(self) -> Iterator[Run]:
        return (open_folder(run.folder) for run in self.stored)

    def table(self) -> Table:
        """Return a table with one row per run."""
        import pyarrow as pa  # noqa: PLC0415 -- as above

        return Table(pa.Table.from_pylist([_facts(run) for run in self.stored], schema=_schema()))

    def __repr__(self) -> str:
        many = "1 run" if len(self) == 1 else f"{len(self)} runs"
        ids = [run.id for run in self.stored[-3:]]
        dots = "..., " if len(self) > len(ids) else ""
        return f"<uncork: {many}{': ' if ids else ''}{dots}{', '.join(ids)}>"

    def _repr_html_(self) -> str:
        newest = list(reversed(self.stored[-_SHOWN:]))
        columns = ("run", "kind", "status", "took", "server", "question")
        return drawn(columns, [_facts(run) for run in newest], len(self))


class CureRun(Run):
    """A cure: the findings, and which changes were proven on a copy."""

    result: CureResult

    @property
    def chosen(self) -> Change | None:
        """The changes that are proposed together, with their SQL and what they save; None without any."""
        return self.result.chosen


class TogetherRun(Run):
    """Loads that started at the same instant; each is in `result.loads`."""

    result: TogetherResult


_SHOWN: Final = 30
_KINDS: Final[dict[str, type[Run]]] = {
    "experiment": ExperimentRun,
    "load": LoadRun,
    "sweep": SweepRun,
    "log": LogRun,
    "database": DatabaseRun,
    "cpu": CpuRun,
    "service": ServiceRun,
    "import": ImportedRun,
    "guard": GuardRun,
    "cure": CureRun,
    "together": TogetherRun,
}


def open_folder(folder: Path) -> Run:
    """Return the run in a folder, as an object of its kind.

    Raises:
        StoreError: if its manifest cannot be read.
    """
    kind = read_manifest(folder).kind
    if kind == "experiment" and (folder / GUARD_FILE).is_file():
        kind = "guard"  # an experiment run by a guard
    return _KINDS.get(kind, Run)(folder)


def _facts(run: StoredRun) -> dict[str, object]:
    return {
        "run": run.id,
        "kind": run.kind,
        "status": run.status,
        "started_at": run.started(),
        "elapsed_ns": run.elapsed_ns,
        "took": format_duration(run.elapsed_ns),
        "server": run.server,
        "question": run.question,
        "commit": run.commit,
        "names": list(run.names),
        "tags": list(run.tags),
    }


def _schema() -> pa.Schema:
    import pyarrow as pa  # noqa: PLC0415 -- as above

    texts = [(name, pa.string()) for name in ("server", "question", "commit")]
    lists = [(name, pa.list_(pa.string())) for name in ("names", "tags")]
    return pa.schema(
        [
            *((name, pa.string()) for name in ("run", "kind", "status")),
            ("started_at", pa.timestamp("us", tz="UTC")),
            ("elapsed_ns", pa.int64()),
            *texts,
            *lists,
        ]
    )
