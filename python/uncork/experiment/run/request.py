"""Build the load of one trial from a workload and a variant: fill in the SQL, and draw parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from uncork.experiment.plan.order import texts_for
from uncork.experiment.plan.placement import session_settings
from uncork.experiment.run.parameters import draw
from uncork.experiment.spec.batches import Carried, carry, plain_values
from uncork.experiment.spec.pauses import is_pause, pause_ns, without_pauses
from uncork.experiment.spec.schema import Spec
from uncork.experiment.spec.sqltext import bind, substitute
from uncork.model.request import LoadRequest, Pause, Statement
from uncork.model.server import Target
from uncork.model.trial import Cell, Trial

ANSWER_OPERATIONS = 20
"""Number of operations that the answer check compares by default, unless a trial has fewer."""

FITTED_NS = 250_000_000
"""Length of a trial that is measured alone, if the file does not set it."""

NOTHING_OPERATIONS = 400
"""Number of empty statements sent to measure the client's own overhead."""

ANSWER_ROWS = 1000
"""Number of rows that the answer check compares for a workload with batches, but at least one batch."""

EXPLAINED_ROWS = 1000
"""Maximum number of rows of a batch under EXPLAIN; the plan does not depend on more."""

_DIGEST: dict[str, Literal["none", "multiset", "ordered"]] = {
    "same": "multiset",
    "same order": "ordered",
    "check": "none",
    "may differ": "none",
}

_OPENED_AT_ONCE = 2
"""Connections that a thread of the load engine opens at the same time (``OPENERS`` of its endpoint)."""
_MOST_THREADS = 64

Pools = Mapping[str, Sequence[str | None]]


@dataclass(frozen=True, slots=True)
class _Sent:
    """The statements of an operation, and the number of rows that it takes from the parameter table."""

    statements: tuple[Statement, ...]
    transaction: bool
    rows: int


def batch_of(spec: Spec, cell: Cell, workload: str, variant: str, rows: int | None = None) -> Carried:
    """Return the statements that send a workload's batch for a variant, with `rows` rows if given.

    Raises:
        ValueError: see `carry`; never for the rows of the experiment file, which were checked.
    """
    facts, chosen = spec.workloads[workload], spec.variants[variant]
    assert facts.batch is not None and chosen.batching is not None  # noqa: S101 -- checked with the file
    texts = texts_for(spec, cell, variant)
    return carry(
        workload,
        [substitute(text, texts) for text in spec.statements(workload, variant)],
        facts.batch.columns,
        strategy=chosen.batching,
        rows=spec.batch_rows(workload, dict(cell.levels)) if rows is None else rows,
        chunk=chosen.chunk if rows is None else None,
    )


def queries_for(spec: Spec, cell: Cell, workload: str, variant: str) -> dict[str, str]:
    """Return the queries that provide a workload's parameters, by parameter."""
    texts = texts_for(spec, cell, variant)
    sources = spec.workloads[workload].sources
    return {
        name: substitute(source.query, texts) for name, source in sources.items() if source.query is not None
    }


def undo_for(spec: Spec, cell: Cell, workload: str, variant: str) -> tuple[str, ...]:
    """Return the statements that undo a trial; none if its data is restored or kept."""
    texts = texts_for(spec, cell, variant)
    return tuple(substitute(text, texts) for text in spec.undoing(workload, variant))


def trial_operations(spec: Spec, cell: Cell, workload: str) -> int:
    """Return how many batches a trial of a workload sends, including warm-up."""
    rows = spec.batch_rows(workload, dict(cell.levels))
    operations, warmup = _operations(spec, workload, rows)
    return (operations or 0) + warmup


def trial_request(
    spec: Spec, trial: Trial, target: Target, pools: Pools, *, rows: int | None = None
) -> LoadRequest:
    """Build the load of a timed trial. Every arm of a block draws the same positions.

    `rows` is the length of the parameter table if the trial does not set its number of operations.
    """
    facts = spec.workloads[trial.workload]
    clients = spec.clients(trial.workload, dict(trial.cell.levels))
    stream = f"parameters/{trial.round}/{trial.block}/{trial.cell.name}/{trial.workload}"
    sent = _sent(spec, trial.cell, trial.workload, trial.arm.variant)
    operations, warmup = _operations(spec, trial.workload, sent.rows)
    if operations is not None and facts.batch is not None:
        rows = (operations + warmup) * sent.rows
    return LoadRequest(
        target=target,
        statements=sent.statements,
        parameters=draw(facts, pools, seed=spec.experiment.seed, stream=stream, rows=rows),
        transaction=sent.transaction,
        clients=clients,
        threads=_threads(spec, trial.workload, clients),
        protocol=facts.protocol,
        warmup_operations=warmup,
        operations=operations,
        duration_ns=FITTED_NS if facts.fitted else facts.duration,
        deadline_ns=spec.stop.trial_timeout,
        pin_cpu=target.cpu if _shares_processor(spec, trial.workload, clients) else None,
        prepare=_prepare(spec, trial.arm.variant),
        settings=session_settings(spec, trial.arm.variant, trial.workload),
        numbers=_numbers(spec, trial.workload),
        connect_each=spec.variants[trial.arm.variant].connections == "new",
        pauses=_pauses(spec.statements(trial.workload, trial.arm.variant)),
    )


def answer_request(
    spec: Spec,
    cell: Cell,
    workload: str,
    variant: str,
    target: Target,
    pools: Pools,
    *,
    deadline_ns: int | None = None,
) -> LoadRequest:
    """Build the load of the answer check: a few operations by one client without pauses, digested.

    For batches, the check compares the data left behind, because the results of their statements depend on
    the strategy.
    """
    facts = spec.workloads[workload]
    sent = _sent(spec, cell, workload, variant)
    batched = facts.batch is not None
    most = max(1, ANSWER_ROWS // sent.rows) if batched else spec.setup.answers
    if batched and facts.answer == "may differ":
        most = 1  # nothing is compared
    operations = min(_operations(spec, workload, sent.rows)[0] or most, most)
    return LoadRequest(
        target=target,
        statements=sent.statements,
        parameters=_first_rows(spec, cell, workload, pools, operations * sent.rows),
        transaction=sent.transaction,
        clients=1,
        threads=1,
        protocol=facts.protocol,
        warmup_operations=0,
        operations=operations,
        duration_ns=None,
        deadline_ns=min(deadline_ns or spec.stop.trial_timeout, spec.stop.trial_timeout),
        digest="none" if batched else _DIGEST[facts.answer],
        prepare=_prepare(spec, variant),
        settings=session_settings(spec, variant, workload),
        numbers=_numbers(spec, workload),
    )


def nothing_request(target: Target, *, deadline_ns: int) -> LoadRequest:
    """Build the load of a statement that does nothing, which measures the client's own overhead."""
    return LoadRequest(
        target=target,
        statements=(Statement("nothing", "SELECT 1", ()),),
        parameters=(),
        transaction=False,
        clients=1,
        threads=1,
        protocol="prepared",
        warmup_operations=NOTHING_OPERATIONS // 4,
        operations=NOTHING_OPERATIONS,
        duration_ns=None,
        deadline_ns=deadline_ns,
        pin_cpu=target.cpu,
    )


def explained_request(
    spec: Spec, cell: Cell, workload: str, variant: str, pools: Pools
) -> list[tuple[Statement, list[str | None]]]:
    """Return the statements to execute under EXPLAIN, with the values of their parameters.

    Statements that cannot be explained alone are left out: COPY, and any that read its temporary table.
    """
    facts = spec.workloads[workload]
    if facts.batch is None:
        statements = _plain_statements(spec, cell, workload, variant)
    elif spec.variants[variant].batching == "copy":
        return []
    else:
        rows = min(spec.batch_rows(workload, dict(cell.levels)), EXPLAINED_ROWS)
        statements = batch_of(spec, cell, workload, variant, rows).statements
    taken = max((statement.batch.rows for statement in statements if statement.batch is not None), default=1)
    parameters = _first_rows(spec, cell, workload, pools, taken)
    values = ((statement, plain_values(statement, parameters)) for statement in statements)
    return [(statement, found) for statement, found in values if found is not None]


# ---- steps ----


def _sent(spec: Spec, cell: Cell, workload: str, variant: str) -> _Sent:
    facts = spec.workloads[workload]
    if facts.batch is None:
        return _Sent(_plain_statements(spec, cell, workload, variant), facts.transaction, 1)
    carried = batch_of(spec, cell, workload, variant)
    return _Sent(carried.statements, carried.transaction, spec.batch_rows(workload, dict(cell.levels)))


def _plain_statements(spec: Spec, cell: Cell, workload: str, variant: str) -> tuple[Statement, ...]:
    """Return the statements of one operation as the server receives them."""
    facts = spec.workloads[workload]
    texts = texts_for(spec, cell, variant)
    columns = {name: column for column, name in enumerate(facts.sources)}
    statements = []
    written = without_pauses(spec.statements(workload, variant))
    for number, text in enumerate(written, start=1):
        bound, used = bind(substitute(text, texts).strip().rstrip(";"), columns)
        name = workload if len(written) == 1 else f"{workload}.{number}"
        statements.append(Statement(name, bound, tuple(used)))
    return tuple(statements)


def _pauses(written: Sequence[str]) -> tuple[Pause, ...]:
    """Return the pauses of an operation, each with the number of the statement that follows it."""
    found, before = [], 0
    for text in written:
        if is_pause(text):
            found.append(Pause(before, pause_ns(text)))
        else:
            before += 1
    return tuple(found)


def _operations(spec: Spec, workload: str, rows: int) -> tuple[int | None, int]:
    """Return the number of measured operations of a trial, and of warm-up operations."""
    facts = spec.workloads[workload]
    if facts.batch is None or facts.operations is None:
        return facts.operations, facts.warmup_operations
    least = facts.batch.least_rows
    return max(facts.operations, -(-least // rows)), min(facts.warmup_operations, least // rows)


def _first_rows(spec: Spec, cell: Cell, workload: str, pools: Pools, rows: int) -> list[list[str | None]]:
    """Draw the parameters of the answer check, the same for every variant."""
    stream = f"answers/{cell.name}/{workload}"
    return draw(spec.workloads[workload], pools, seed=spec.experiment.seed, stream=stream, rows=rows)


def _numbers(spec: Spec, workload: str) -> frozenset[int]:
    """Return the columns of the parameter table that a generator fills with whole numbers."""
    sources = spec.workloads[workload].sources.values()
    return frozenset(number for number, source in enumerate(sources) if source.generator is not None)


def _threads(spec: Spec, workload: str, clients: int) -> int:
    """Return the threads of the generator: enough for all clients to open connections at the same time."""
    given = spec.workloads[workload].threads
    if not spec.opens_connections(workload):
        return given
    return max(given, min(math.ceil(clients / _OPENED_AT_ONCE), _MOST_THREADS))


def _shares_processor(spec: Spec, workload: str, clients: int) -> bool:
    """Return whether generator and backends share one processor, in the trials of all variants alike.

    The backends of new connections cannot be moved to it in time.
    """
    return spec.workloads[workload].shares_processor(clients) and not spec.opens_connections(workload)


def _prepare(spec: Spec, variant: str) -> Literal["ahead", "first use"]:
    """Return when to prepare: statements that read the temporary table of a COPY must wait for it."""
    return "first use" if spec.variants[variant].batching == "copy" else "ahead"
