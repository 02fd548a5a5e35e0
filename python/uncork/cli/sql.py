"""Ask SQL of a stored run: `uncork sql`."""

from __future__ import annotations

import csv
import json
import sys
from contextlib import closing
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from uncork.cli import console, options

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("sql")(sql)


def sql(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="A stored run: its id, a name, or last.")],
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="A query of the run's tables, in DuckDB's SQL.")
    ] = "SHOW TABLES",
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a row.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values.")] = False,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Ask SQL of a stored run; without a query, list its tables.

    The reference describes every table: docs/reference/tables.md.
    """
    from uncork.store.layout import find_run  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.store.query import RunReader  # noqa: PLC0415

    with closing(RunReader(find_run(runs, run_id))) as reader:
        names, rows = reader.ask(query)
    if as_json:
        for row in rows:
            typer.echo(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str))
    elif as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    else:
        _draw(names, rows)


def _draw(names: list[str], rows: list[tuple[Any, ...]]) -> None:
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    numbers = [all(isinstance(row[place], int | float | None) for row in rows) for place in range(len(names))]
    for name, number in zip(names, numbers, strict=True):
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text("" if value is None else str(value)) for value in row))
    console.output.print(table)
