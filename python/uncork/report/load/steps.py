"""A transaction's time by step, from the generator to the server and back, and the steps that are unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from uncork.model.results.load import LoadResult, LoadStep, LoadStepName, StepGap
from uncork.model.units import format_count, format_duration, share_text
from uncork.report.blocks import Table, Value
from uncork.report.cells import duration_cell, header, number, share_cell, table_if_any

_NAMES: Final[Mapping[LoadStepName, str]] = {
    "generator": "in the generator",
    "pool": "waiting for a connection of PgBouncer",
    "network": "network and protocol",
    "parse": "parsing",
    "bind": "binding",
    "plan": "planning",
    "locks": "waiting for locks",
    "storage": "reading and writing",
    "execute": "executing",
    "commit": "waiting for the write-ahead log",
    "server": "in the server otherwise",
    "unknown": "unknown",
}
_NOTES: Final[Mapping[LoadStepName, str]] = {
    "generator": "between statements",
    "pool": "its console",
    "network": "at least: empty statements, without load",
    "parse": "the server's log",
    "plan": "pg_stat_statements",
    "locks": "samples: within statements",
    "storage": "samples: within statements",
    "execute": "pg_stat_statements, without these waits",
    "commit": "samples: commits",
}
_LEAST_SHARE: Final = 0.25
"""Share of a transaction from which on the wait for PgBouncer is worth a sentence."""


def steps_table(result: LoadResult) -> Table | None:
    """Return where the time of a transaction went; None unless the load was watched."""
    notes = {**_NOTES, **dict(_rest_notes({step.name for step in result.steps}))}
    return table_if_any(
        f"Where the time of a transaction went, {format_duration(sum(step.ns for step in result.steps))} on "
        "average, while the load was sent again",
        result.steps,
        header("step", lambda step: Value(_NAMES[step.name], note=notes.get(step.name, ""))),
        number("each", lambda step: duration_cell(step.ns)),
        number("share", lambda step: share_cell(step.share)),
    )


def _rest_notes(names: set[LoadStepName]) -> Iterator[tuple[LoadStepName, str]]:
    """Yield the notes of the steps that contain planning and parsing unless these are steps themselves."""
    planned, parsed = "plan" in names, "parse" in names
    yield "bind", "the server's log, without planning" if planned else "the server's log, with planning"
    inside = (*(() if parsed else ("parsing",)), *(() if planned or parsed else ("planning",)))
    yield "server", f"samples: {', '.join((*inside, 'sending results', 'waiting for a processor'))}"


def waits_for_pool(result: LoadResult) -> LoadStep | None:
    """Return the wait for a connection of PgBouncer if it is the largest step, and a large one."""
    most = max(result.steps, key=lambda step: step.ns, default=None)
    return most if most is not None and most.name == "pool" and most.share >= _LEAST_SHARE else None


def pool_sentence(result: LoadResult) -> str | None:
    """Return how long transactions wait for PgBouncer, if that is where most of their time goes."""
    wait = waits_for_pool(result)
    if wait is None:
        return None
    return (
        f"A transaction waits {format_duration(wait.ns)} for a connection of PgBouncer, "
        f"{share_text(wait.share)} of its time: the pool has fewer connections than the load has clients."
    )


def step_gap_sentences(result: LoadResult) -> tuple[str, ...]:
    """Return which steps are unknown, and how to see them."""
    return tuple(_gap_sentence(step_gap) for step_gap in result.step_gaps)


def _gap_sentence(gap: StepGap) -> str:
    if gap.name == "pool":
        source, step = "PgBouncer counted", "The wait for a connection of the pooler"
    else:
        source, step = "The log has", "The time of parsing"
    part = f"{source} {format_count(gap.seen or 0)} statements, the load sent {format_count(gap.sent or 0)}"
    return {
        (
            "pool",
            "no source",
        ): f"{step} is part of the unknown rest: to see it, add --pooler with the console of "
        "PgBouncer, and --postgres with the server behind it.",
        (
            "pool",
            "incomplete",
        ): f"{step} is part of the unknown rest. {part}: check that the load connects to "
        "the PgBouncer whose console --pooler names.",
        (
            "pool",
            "others",
        ): f"{step} is part of the unknown rest. {part}: repeat the load while no other clients "
        "use this database of PgBouncer.",
        ("parse", "no source"): f"{step} is not a step of its own: to see it, add --logs with "
        "the server's log. It needs log_min_duration_statement = 0, which takes time from the server too.",
        ("parse", "simple protocol"): f"{step} is not a step of its own: with the simple protocol, the "
        "server's log has one duration for parsing and executing. -M extended with "
        "--logs separates them.",
        ("parse", "incomplete"): f"{step} is not a step of its own. {part}: set "
        "log_min_duration_statement = 0 and log_statement_sample_rate = 1.",
        ("parse", "others"): f"{step} is not a step of its own. {part}: repeat the load while no other "
        "clients use the server.",
        ("parse", "unlabelled"): f"{step} is not a step of its own: log_duration does not write what took "
        "the time. Set log_min_duration_statement = 0 instead.",
    }[gap.name, gap.reason]
