"""From a workload and a variant to the load of one trial: SQL with its texts in place, parameters drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from uncork.experiment.parameters import draw
from uncork.experiment.plan import texts_for
from uncork.experiment.spec import Spec
from uncork.experiment.sqltext import bind, substitute
from uncork.model.request import LoadRequest, Statement
from uncork.model.server import Target
from uncork.model.trial import Cell, Trial

__all__ = ["ANSWER_OPERATIONS", "answer_request", "statements_for", "trial_request"]

ANSWER_OPERATIONS = 20
"""How many operations the answer check compares, unless a trial has fewer."""

_DIGEST: dict[str, Literal["none", "multiset", "ordered"]] = {
    "same": "multiset",
    "same order": "ordered",
    "may differ": "none",
}

Pools = Mapping[str, Sequence[str | None]]


def statements_for(spec: Spec, cell: Cell, workload: str, variant: str) -> tuple[Statement, ...]:
    """Return the statements of one operation as the server will see them."""
    facts = spec.workloads[workload]
    texts = texts_for(spec, cell, variant)
    columns = {name: column for column, name in enumerate(facts.parameters)}
    statements = []
    for number, text in enumerate(facts.statements, start=1):
        bound, used = bind(substitute(text, texts).strip().rstrip(";"), columns)
        name = workload if len(facts.statements) == 1 else f"{workload}.{number}"
        statements.append(Statement(name, bound, tuple(used)))
    return tuple(statements)


def trial_request(spec: Spec, trial: Trial, target: Target, pools: Pools) -> LoadRequest:
    """Make the load of a timed trial. Every arm of a block draws the same positions."""
    facts = spec.workloads[trial.workload]
    stream = f"parameters/{trial.round}/{trial.block}/{trial.cell.name}/{trial.workload}"
    return LoadRequest(
        target=target,
        statements=statements_for(spec, trial.cell, trial.workload, trial.arm.variant),
        parameters=draw(facts, pools, seed=spec.experiment.seed, stream=stream),
        transaction=facts.transaction,
        clients=facts.clients,
        threads=facts.threads,
        protocol=facts.protocol,
        warmup_operations=facts.warmup_operations,
        operations=facts.operations,
        duration_ns=facts.duration,
        deadline_ns=spec.stop.trial_timeout,
        pin_cpu=target.cpu if facts.shares_processor else None,
    )


def answer_request(
    spec: Spec, cell: Cell, workload: str, variant: str, target: Target, pools: Pools
) -> LoadRequest:
    """Make the load that shows what a variant answers: a few operations by one client, digested."""
    facts = spec.workloads[workload]
    operations = min(facts.operations or ANSWER_OPERATIONS, ANSWER_OPERATIONS)
    stream = f"answers/{cell.name}/{workload}"
    return LoadRequest(
        target=target,
        statements=statements_for(spec, cell, workload, variant),
        parameters=draw(facts, pools, seed=spec.experiment.seed, stream=stream, rows=operations),
        transaction=facts.transaction,
        clients=1,
        threads=1,
        protocol=facts.protocol,
        warmup_operations=0,
        operations=operations,
        duration_ns=None,
        deadline_ns=spec.stop.trial_timeout,
        digest=_DIGEST[facts.answer],
    )
