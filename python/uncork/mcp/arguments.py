"""The arguments of each tool, as a language model reads them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from uncork.errors import UsageError


class Arguments(BaseModel):
    """Arguments of a tool; unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


RunWord = Annotated[
    str,
    Field(
        description='Stored run: its id, the beginning of an id, its name, or "last" (the newest run that '
        "has not failed).",
        max_length=200,
    ),
]


class ListArguments(Arguments):
    """Arguments of `list_runs`."""

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


class ReadArguments(Arguments):
    """Arguments of `read_run`."""

    run: RunWord = "last"
    part: str = Field(
        "",
        description='Part of the result, such as "comparisons" or "plans.0.text": names of fields and '
        "numbers of entries, from 0, separated by dots. Default: all of it.",
    )


class TablesArguments(Arguments):
    """Arguments of `list_tables`."""

    run: RunWord = "last"
    table: str = Field("", description="Only this table. By default every table that has rows.")


class QueryArguments(Arguments):
    """Arguments of `query_run`."""

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


class CompareArguments(Arguments):
    """Arguments of `compare_runs`."""

    runs: list[RunWord] = Field(
        description='Stored runs to compare with the first of them, or with "against". A single run is '
        'compared with the run named "baseline".',
        min_length=1,
        max_length=10,
    )
    against: str = Field("", description="Stored run to compare them with.", max_length=200)
    practical: str = Field("3%", description="Smallest difference that matters.")
    any_machine: bool = Field(False, description="Include runs of different machines, without verdicts.")


class AdviseArguments(Arguments):
    """Arguments of `advise_run`."""

    runs: list[RunWord] = Field(
        ["last"],
        description="Stored runs of one database, which are joined: of kind database, service or log.",
        min_length=1,
        max_length=10,
    )


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


class PlanArguments(Arguments):
    """Arguments of `plan_experiment`."""

    file: _File
    budget: _Budget = ""


class RunArguments(Arguments):
    """Arguments of `run_experiment`."""

    file: _File
    budget: _Budget = ""


class AdviseDatabaseArguments(Arguments):
    """Arguments of `advise_database`."""

    dsn: str = Field(
        description="Connection string of a PostgreSQL database: a URI or key=value pairs. Leave the "
        'password out: uncork reads ~/.pgpass, PGPASSWORD and service files ("service=staging").',
        max_length=2000,
    )
    seconds: int = Field(60, ge=1, le=3600, description="How long to watch the server.")


def read_arguments(kind: type[Arguments], given: dict[str, Any]) -> Arguments:
    """Return the arguments that a client gave.

    Raises:
        UsageError: if some are wrong; the message names each, without its value.
    """
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise UsageError("; ".join(map(_sentence, error.errors(include_input=False)))) from None


def schema_of(kind: type[Arguments]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments, without titles, which only repeat the names."""
    schema: dict[str, Any] = _untitled(kind.model_json_schema())
    del schema["description"]
    return schema


def _sentence(error: Any) -> str:
    name, kind = ".".join(map(str, error["loc"])), error["type"]
    if kind == "missing":
        return f"{name} is required"
    if kind == "extra_forbidden":
        return f"there is no argument {name}"
    return f"{name}: {error['msg'][:1].lower()}{error['msg'][1:]}"


def _untitled(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            name: _untitled(one)
            for name, one in schema.items()
            if not (name == "title" and isinstance(one, str))
        }
    return [_untitled(part) for part in schema] if isinstance(schema, list) else schema
