"""Ask SQL of stored runs: `uncork sql`."""

from __future__ import annotations

import csv
import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from uncork.cli import console, options
from uncork.cli.examples import examples_of
from uncork.cli.pages import check_forms
from uncork.errors import SetupError

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("sql", epilog=examples_of("sql"))(sql)


def sql(
    run_id: Annotated[
        str, typer.Argument(metavar="RUN", help="A stored run: its id, a name, or last; or all.")
    ],
    query: Annotated[
        str | None, typer.Argument(metavar="QUERY", help="A query of the run's tables, in DuckDB's SQL.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a row.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Ask SQL of a stored run, or of all; without a query, list the tables, of a run those that have rows.

    The reference describes every table: docs/reference/tables.md. Of all runs, each table has the column run
    besides, and the table runs has a row a run: its name, kind, status, tags and when it started.
    """
    check_forms(json=as_json, csv=as_csv)
    names, rows = _ask_all(runs, query or "SHOW TABLES") if run_id == "all" else _ask(runs, run_id, query)
    if as_json:
        for row in rows:
            typer.echo(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str))
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    else:
        _draw(names, rows)


def _ask(root: Path, run_id: str, query: str | None) -> tuple[list[str], list[tuple[Any, ...]]]:
    from uncork.store.layout import find_run  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.store.query import RunReader  # noqa: PLC0415

    with closing(RunReader(find_run(root, run_id))) as reader:
        return (["table", "rows"], [*reader.row_counts().items()]) if query is None else reader.ask(query)


def _ask_all(root: Path, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    from uncork.analysis.runs.listing import read_runs  # noqa: PLC0415
    from uncork.store.query_all import AllRunsReader  # noqa: PLC0415 -- as above
    from uncork.store.remote.mirrors import shown  # noqa: PLC0415

    found = read_runs(root)
    if not found.runs and not found.damaged:
        raise SetupError(
            f"there are no runs in {shown(root)}; `uncork run FILE` and `uncork load sql` make some"
        )
    with closing(AllRunsReader(root, found.runs, tell=console.note)) as reader:
        answer = reader.ask(query)
        for error in (*found.damaged, *reader.damaged):
            console.note(str(error))
    return answer


def _draw(names: list[str], rows: list[tuple[Any, ...]]) -> None:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    numbers = [all(isinstance(row[place], int | float | None) for row in rows) for place in range(len(names))]
    for name, number in zip(names, numbers, strict=True):
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if value is None else str(value)) for value in row))
    console.output.print(table)
