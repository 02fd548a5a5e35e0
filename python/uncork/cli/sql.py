"""Query stored runs in SQL: `uncork sql`."""

from __future__ import annotations

import csv
import json
import re
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from uncork.analysis.runs.listing import read_runs
from uncork.cli import console
from uncork.cli.pages import check_forms
from uncork.cli.runs.last_run import note_skipped
from uncork.errors import SetupError
from uncork.requests.stored_options import QueryOptions
from uncork.store.layout import find_run
from uncork.store.query_all import AllRunsReader
from uncork.store.remote.mirrors import shown
from uncork.workbench.documents.run_tables import run_tables

_LAST: Final = "last"
_QUERY: Final = re.compile(
    r"\s*(?:select|from|with|show|describe|summarize|values|table|pivot|unpivot|explain)[\s(*]", re.IGNORECASE
)


def sql(options: QueryOptions) -> None:
    """Run the query, and print its rows."""
    check_forms(json=options.as_json, csv=options.as_csv)
    run, query = query_words(options.run, options.query)
    if run == "all":
        names, rows = _ask_all(options.runs, query or "SHOW TABLES")
    else:
        note_skipped(options.runs, run)
        names, rows = _ask(options.runs, run, query)
    if options.as_json:
        for row in rows:
            typer.echo(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False, default=str))
    elif options.as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
    else:
        _draw(names, rows)


def query_words(run: str, query: str | None) -> tuple[str, str | None]:
    """Return the run and its query; a query that stands alone is about the newest run."""
    return (_LAST, run) if query is None and _QUERY.match(run) else (run, query)


def _ask(root: Path, run_id: str, query: str | None) -> tuple[list[str], list[tuple[Any, ...]]]:
    with closing(run_tables(find_run(root, run_id))) as reader:
        return (["table", "rows"], [*reader.row_counts().items()]) if query is None else reader.ask(query)


def _ask_all(root: Path, query: str) -> tuple[list[str], list[tuple[Any, ...]]]:
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
