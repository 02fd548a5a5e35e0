"""The tools, as clients list them: their arguments, and their answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import Field

import uncork
from uncork.errors import UsageError
from uncork.mcp.job import LIMIT, Job, Result, Tool, about, bounded, opened, part_of, plain, shortened
from uncork.model.stored_run import StoredRun
from uncork.model.tables.register import TABLES
from uncork.model.tables.table import Table
from uncork.model.units import format_duration

_COLUMNS: Final = (
    "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'main' "
    "ORDER BY table_name, ordinal_position"
)
_COMPARISONS: Final = "Verdicts: each variant against the baseline, in each cell and workload."
_CONNINFO: Final = re.compile(r"\s*(postgres(ql)?://|\w+\s*=)")

RunWord = Annotated[
    str,
    Field(
        description='Stored run: its id, the beginning of an id, its name, or "last" (the newest run that '
        "has not failed).",
        max_length=200,
    ),
]
_File = Annotated[
    str,
    Field(
        description="Path of an experiment file (TOML), within the folder in which the server was started.",
        max_length=1000,
    ),
]
_Budget = Annotated[
    str, Field(description='Longest duration of the run, such as "5min". By default the one of the file.')
]


class ListRuns(Tool):
    """List the stored runs, the newest first: experiments, load tests, guards, cures, and profiles of logs,
    databases, services and processes. The other tools accept the id in the field run.
    """

    name = "list_runs"
    title = "List stored runs"
    search: str = Field(
        "", description="Only runs whose id, question, server, names or tags contain this text."
    )
    kind: str = Field(
        "",
        description="Only runs of this kind: experiment, load, sweep, log, database, cpu, service, import, "
        "guard or cure.",
    )
    status: str = Field(
        "", description="Only runs of this status: running, complete, interrupted, failed or killed."
    )
    tag: str = Field("", description="Only runs with this tag or name.")
    last: int = Field(20, ge=1, le=200, description="Only the newest runs, at most this many.")

    def answer(self, job: Job) -> Result:
        """Return the stored runs that match, the newest first."""
        found = uncork.runs(
            search=self.search, kind=self.kind, status=self.status, tag=self.tag, runs=job.runs
        ).stored
        return {"matching": len(found), "runs": [_row(run) for run in reversed(found[-self.last :])]}


class ReadRun(Tool):
    """Read what a stored run found: the answer in a sentence, and the result with all verdicts, intervals,
    costs, warnings and plans. plan_hash is equal for plans that differ only in numbers and values. A long
    result is shortened; cut lists what was left out, and the argument part reads it. Times are in
    nanoseconds and sizes in bytes, unless a name says otherwise.
    """

    name = "read_run"
    title = "Read the result of a run"
    run: RunWord = "last"
    part: str = Field(
        "",
        description='Part of the result, such as "comparisons" or "plans.0.text": names of fields and '
        "numbers of entries, from 0, separated by dots. Default: all of it.",
    )

    def answer(self, job: Job) -> Result:
        """Return a run's answer, and its result or a part of it."""
        run = opened(job, self.run)
        result = part_of(json.loads(run.json()), self.part)
        return {**about(run), "part": self.part, **shortened("result", result)}


class ListTables(Tool):
    """List the tables of a stored run that have rows, with type, unit and meaning of each column. Call it
    before query_run.
    """

    name = "list_tables"
    title = "List the tables of a run"
    run: RunWord = "last"
    table: str = Field("", description="Only this table. By default every table that has rows.")

    def answer(self, job: Job) -> Result:
        """Return a run's tables that have rows, with their columns."""
        run = opened(job, self.run)
        all_names = run.tables
        names = [name for name in all_names if self.table in ("", name)]
        if not names:
            has = ", ".join(all_names) or "none"
            raise UsageError(f'run {run.id} has no table "{self.table}" with rows; it has: {has}')
        columns: dict[str, list[Result]] = {name: [] for name in names}
        for row in run.sql(_COLUMNS):
            name, column = row["table_name"], row["column_name"]
            if name in columns and column != "filename":
                columns[name].append(_column(column, row["data_type"], TABLES.get(name)))
        tables = [
            {
                "table": name,
                "rows": next(iter(run.sql(f'SELECT count(*) AS rows FROM "{name}"')))["rows"],  # noqa: S608 -- our own name
                "meaning": TABLES[name].meaning if name in TABLES else _COMPARISONS,
                "columns": columns[name],
            }
            for name in names
        ]
        return {"run": run.id, **shortened("tables", tables)}


class QueryRun(Tool):
    """Answer one SELECT in DuckDB's SQL on the tables of a stored run, or of all runs. The query sees these
    tables and nothing else: no files, no network. It may take 60 s. Times are in nanoseconds and sizes in
    bytes, unless a name says otherwise.
    """

    name = "query_run"
    title = "Query a run in SQL"
    limit_s = 60.0
    memory = 4 << 30
    sql: str = Field(
        description='One query, such as "SELECT variant, median(p50_ns) / 1e6 AS p50_ms FROM trials GROUP BY '
        'variant".',
        max_length=100_000,
    )
    run: str = Field(
        "last",
        description='Stored run: its id, the beginning of an id, its name, or "last"; or "all". With "all", '
        "each table has the additional column run, and the table runs has one row per run.",
        max_length=200,
    )
    max_rows: int = Field(100, ge=1, le=1000, description="Return at most this many rows.")

    def answer(self, job: Job) -> Result:
        """Return the first rows of a query, as many as are short enough."""
        from uncork.api.stored import query_sandboxed  # noqa: PLC0415 -- each call loads what it needs

        run = None if self.run == "all" else opened(job, self.run)
        found = query_sandboxed(self.sql, run=run, runs=job.runs, most=self.max_rows)
        rows: list[Any] = []
        room = LIMIT
        for row in found.rows:
            value = bounded(plain(row), LIMIT // 10).value
            room -= len(json.dumps(value, ensure_ascii=False))
            if room < 0:
                break
            rows.append(value)
        columns = [{"name": name, "type": kind} for name, kind in found.columns]
        left = found.more or len(rows) < len(found.rows)
        more = {"more": "there are more rows; aggregate them, or ask for fewer columns"} if left else {}
        return {"run": "all" if run is None else run.id, "columns": columns, "rows": rows, **more}


class CompareRuns(Tool):
    """Compare stored runs: which metrics differ, by how much, and whether that is certain. Intervals reflect
    how much comparable stored runs differ from one to the next; with too few of them there is no verdict.
    """

    name = "compare_runs"
    title = "Compare stored runs"
    runs: list[RunWord] = Field(
        description='Stored runs to compare with the first of them, or with "against". A single run is '
        'compared with the run named "baseline".',
        min_length=1,
        max_length=10,
    )
    against: str = Field("", description="Stored run to compare them with.", max_length=200)
    practical: str = Field("3%", description="Smallest difference that matters.")
    any_machine: bool = Field(False, description="Include runs of different machines, without verdicts.")

    def answer(self, job: Job) -> Result:
        """Return the comparison of runs with one of them."""
        compared = uncork.compare(
            *(opened(job, run) for run in self.runs),
            against=opened(job, self.against) if self.against else None,
            practical=self.practical,
            any_machine=self.any_machine,
            runs=job.runs,
        )
        return {"answer": compared.answer, **shortened("result", json.loads(compared.json()))}


class AdviseRun(Tool):
    """Name what is wrong with a database, from stored profiles of it: each fault with its cause, its cost,
    its evidence, and the changes to try as SQL with what speaks against them. It contacts no server.
    """

    name = "advise_run"
    title = "Find the faults of a database in stored runs"
    runs: list[RunWord] = Field(
        ["last"],
        description="Stored runs of one database, which are joined: of kind database, service or log.",
        min_length=1,
        max_length=10,
    )

    def answer(self, job: Job) -> Result:
        """Return the findings of stored runs."""
        folders = [opened(job, run) for run in self.runs]
        advice = uncork.advise(*folders, progress=job.tell, runs=job.runs)
        return {"answer": advice.answer, **shortened("result", json.loads(advice.json()))}


class PlanExperiment(Tool):
    """Check an experiment file, and show what a run of it would do: variants, trials, duration, expected
    precision and warnings. It starts no server. Mistakes are listed with file, line and key.
    """

    name = "plan_experiment"
    title = "Plan an experiment"
    file: _File
    budget: _Budget = ""

    def answer(self, job: Job) -> Result:
        """Return what a run of an experiment file would do."""
        plan = uncork.plan(file_within(self.file, Path.cwd()), budget=self.budget or None, runs=job.runs)
        return shortened("plan", asdict(plan))


class RunExperiment(Tool):
    """Run an experiment file, and return which variant is faster, by how much, and why. It starts a
    temporary PostgreSQL and the programs that the file names as services and metrics, and takes minutes.
    If the call is cancelled, they end, and what was measured is kept. Check the file with plan_experiment
    first.
    """

    name = "run_experiment"
    title = "Run an experiment"
    limit_s = None
    measures = True
    starts_programs = True
    file: _File
    budget: _Budget = ""

    def answer(self, job: Job) -> Result:
        """Run an experiment file, and return its verdicts."""
        file = file_within(self.file, Path.cwd())
        run = uncork.run(file, budget=self.budget or None, progress=job.tell, runs=job.runs)
        return {**about(run), **shortened("result", json.loads(run.json()))}


class AdviseDatabase(Tool):
    """Watch a running PostgreSQL server, and name what is wrong with it: each fault with its cause, its cost
    and the changes to try as SQL. It only reads the server, and applies nothing. The watch is stored as a
    run.
    """

    name = "advise_database"
    title = "Watch a database and find its faults"
    limit_s = None
    measures = True
    dsn: str = Field(
        description="Connection string of a PostgreSQL database: a URI or key=value pairs. Leave the "
        'password out: uncork reads ~/.pgpass, PGPASSWORD and service files ("service=staging").',
        max_length=2000,
    )
    seconds: int = Field(60, ge=1, le=3600, description="How long to watch the server.")

    def answer(self, job: Job) -> Result:
        """Watch a server, and return its findings."""
        if not _CONNINFO.match(self.dsn):  # a word alone would be a run or a log
            raise UsageError('dsn: write a connection string, such as "dbname=shop host=/run/postgresql"')
        advice = uncork.advise(self.dsn, lasting=f"{self.seconds}s", progress=job.tell, runs=job.runs)
        found = shortened("result", json.loads(advice.json()))
        return {"run": advice.folder.name, "answer": advice.answer, **found}


TOOLS: Final[Mapping[str, type[Tool]]] = {
    tool.name: tool
    for tool in (
        *(ListRuns, ReadRun, ListTables, QueryRun, CompareRuns, AdviseRun),
        *(PlanExperiment, RunExperiment, AdviseDatabase),
    )
}
"""The tools by name, in the order in which clients list them."""


def _row(run: StoredRun) -> Result:
    return {
        "run": run.id,
        "kind": run.kind,
        "status": run.status,
        "started_at": run.started_at,
        "took": format_duration(run.elapsed_ns) if run.elapsed_ns else "",
        "question": run.question,
        "server": run.server,
        "commit": run.commit,
        "names": list(run.names),
        "tags": list(run.tags),
    }


def _column(name: str, kind: str, table: Table | None) -> Result:
    known = {} if table is None else {column.name: column for column in table.columns}
    if name not in known:
        return {"name": name, "type": kind}
    unit = {"unit": known[name].unit} if known[name].unit else {}
    return {"name": name, "type": kind, **unit, "meaning": known[name].meaning}


def file_within(word: str, folder: Path) -> Path:
    """Return the path of an experiment file. Raises UsageError outside of `folder`."""
    try:
        path = (folder / word).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(f"{word!r} is no path: {error}") from error
    if path.is_symlink():  # Python 3.13 and later return the link itself
        raise UsageError(f"{word} is a link that leads to itself")
    if not path.is_relative_to(folder.resolve()):
        raise UsageError(f"{word} is outside of the folder in which the server was started, {folder}")
    if path.suffix != ".toml":
        raise UsageError(f"{word} is no experiment file: its name must end with .toml")
    return path
