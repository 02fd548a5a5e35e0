"""Answers from stored runs: nothing is measured, and nothing is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from uncork.errors import UsageError
from uncork.mcp.bounded import LIMIT, bounded, part_of, plain
from uncork.mcp.job import Job, Result, about, opened, shortened

if TYPE_CHECKING:
    from uncork.model.stored_run import StoredRun
    from uncork.model.tables.table import Table

_COLUMNS: Final = (
    "SELECT table_name, column_name, data_type FROM information_schema.columns WHERE table_schema = 'main' "
    "ORDER BY table_name, ordinal_position"
)
_COMPARISONS: Final = "Verdicts: each variant against the baseline, in each cell and workload."


def list_runs(job: Job) -> Result:
    """Return the stored runs that match, the newest first."""
    import uncork  # noqa: PLC0415 -- each call loads what it needs

    asked = job.arguments
    words = {"search": asked.search, "kind": asked.kind, "status": asked.status, "tag": asked.tag}
    found = uncork.runs(**words, runs=job.runs).stored
    return {"matching": len(found), "runs": [_row(run) for run in reversed(found[-asked.last :])]}


def _row(run: StoredRun) -> Result:
    from uncork.model.units import format_duration  # noqa: PLC0415 -- as above

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


def read_run(job: Job) -> Result:
    """Return a run's answer, and its result or a part of it."""
    asked = job.arguments
    run = opened(job, asked.run)
    result = part_of(json.loads(run.json()), asked.part)
    return {**about(run), "part": asked.part, **shortened("result", result)}


def list_tables(job: Job) -> Result:
    """Return a run's tables that have rows, with their columns."""
    from uncork.model.tables.register import TABLES  # noqa: PLC0415 -- as above

    asked = job.arguments
    run = opened(job, asked.run)
    all_names = run.tables
    names = [name for name in all_names if asked.table in ("", name)]
    if not names:
        has = ", ".join(all_names) or "none"
        raise UsageError(f'run {run.id} has no table "{asked.table}" with rows; it has: {has}')
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


def _column(name: str, kind: str, table: Table | None) -> Result:
    known = {} if table is None else {column.name: column for column in table.columns}
    if name not in known:
        return {"name": name, "type": kind}
    unit = {"unit": known[name].unit} if known[name].unit else {}
    return {"name": name, "type": kind, **unit, "meaning": known[name].meaning}


def query_run(job: Job) -> Result:
    """Return the first rows of a query, as many as are short enough."""
    from uncork.api.stored import query_sandboxed  # noqa: PLC0415 -- as above

    asked = job.arguments
    run = None if asked.run == "all" else opened(job, asked.run)
    found = query_sandboxed(asked.sql, run=run, runs=job.runs, most=asked.max_rows)
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


def compare_runs(job: Job) -> Result:
    """Return the comparison of runs with one of them."""
    import uncork  # noqa: PLC0415 -- as above

    asked = job.arguments
    compared = uncork.compare(
        *(opened(job, run) for run in asked.runs),
        against=opened(job, asked.against) if asked.against else None,
        practical=asked.practical,
        any_machine=asked.any_machine,
        runs=job.runs,
    )
    return {"answer": compared.answer, **shortened("result", _document(compared.json()))}


def advise_run(job: Job) -> Result:
    """Return the findings of stored runs."""
    import uncork  # noqa: PLC0415 -- as above

    folders = [opened(job, run) for run in job.arguments.runs]
    advice = uncork.advise(*folders, progress=job.tell, runs=job.runs)
    return {"answer": advice.answer, **shortened("result", _document(advice.json()))}


def _document(text: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(text)
    return found
