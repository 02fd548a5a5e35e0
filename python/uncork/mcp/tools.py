"""The tools, as clients list them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from uncork.mcp import arguments, experiments, reading
from uncork.mcp.job import Tool

_UNITS: Final = "Times are in nanoseconds and sizes in bytes, unless a name says otherwise."
_TOOLS: Final = (
    Tool(
        "list_runs",
        "List stored runs",
        "List the stored runs, the newest first: experiments, load tests, guards, cures, and profiles of "
        "logs, databases, services and processes. The other tools accept the id in the field run.",
        arguments.ListArguments,
        reading.list_runs,
    ),
    Tool(
        "read_run",
        "Read the result of a run",
        "Read what a stored run found: the answer in a sentence, and the result with all verdicts, "
        "intervals, costs, warnings and plans. plan_hash is equal for plans that differ only in numbers and "
        "values. A long result is shortened; cut lists what was left out, and the argument part reads it. "
        f"{_UNITS}",
        arguments.ReadArguments,
        reading.read_run,
    ),
    Tool(
        "list_tables",
        "List the tables of a run",
        "List the tables of a stored run that have rows, with type, unit and meaning of each column. Call "
        "it before query_run.",
        arguments.TablesArguments,
        reading.list_tables,
    ),
    Tool(
        "query_run",
        "Query a run in SQL",
        "Answer one SELECT in DuckDB's SQL on the tables of a stored run, or of all runs. The query sees "
        f"these tables and nothing else: no files, no network. It may take 60 s. {_UNITS}",
        arguments.QueryArguments,
        reading.query_run,
        limit_s=60.0,
        memory=4 << 30,
    ),
    Tool(
        "compare_runs",
        "Compare stored runs",
        "Compare stored runs: which metrics differ, by how much, and whether that is certain. Intervals "
        "reflect how much comparable stored runs differ from one to the next; with too few of them there is "
        "no verdict.",
        arguments.CompareArguments,
        reading.compare_runs,
    ),
    Tool(
        "advise_run",
        "Find the faults of a database in stored runs",
        "Name what is wrong with a database, from stored profiles of it: each fault with its cause, its "
        "cost, its evidence, and the changes to try as SQL with what speaks against them. It contacts no "
        "server.",
        arguments.AdviseArguments,
        reading.advise_run,
    ),
    Tool(
        "plan_experiment",
        "Plan an experiment",
        "Check an experiment file, and show what a run of it would do: variants, trials, duration, expected "
        "precision and warnings. It starts no server. Mistakes are listed with file, line and key.",
        arguments.PlanArguments,
        experiments.plan_experiment,
    ),
    Tool(
        "run_experiment",
        "Run an experiment",
        "Run an experiment file, and return which variant is faster, by how much, and why. It starts a "
        "temporary PostgreSQL and the programs that the file names as services and metrics, and takes "
        "minutes. If the call is cancelled, they end, and what was measured is kept. Check the file with "
        "plan_experiment first.",
        arguments.RunArguments,
        experiments.run_experiment,
        limit_s=None,
        measures=True,
        starts_programs=True,
    ),
    Tool(
        "advise_database",
        "Watch a database and find its faults",
        "Watch a running PostgreSQL server, and name what is wrong with it: each fault with its cause, its "
        "cost and the changes to try as SQL. It only reads the server, and applies nothing. The watch is "
        "stored as a run.",
        arguments.AdviseDatabaseArguments,
        experiments.advise_database,
        limit_s=None,
        measures=True,
    ),
)
TOOLS: Final[Mapping[str, Tool]] = {tool.name: tool for tool in _TOOLS}
"""The tools by name, in the order in which clients list them."""
