"""Variants of a workload that opens a connection for each request: the same requests over kept ones. Pure.

An operation of the experiment is a request: the statements that the server executed for each connection on
average. One variant opens a connection for each operation, as the client does, and the other keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from uncork.experiment.cure.arms import Arm
from uncork.experiment.cure.text import (
    BASELINE,
    as_one,
    experiment_file,
    parameters_of,
    statement_texts,
    usable_sets,
    uses_up,
    workload_name,
)
from uncork.experiment.draft_text import multiline, settings_lines, toml
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.model.results.cure import PRACTICAL, Net, StatementEffect
from uncork.model.units import count_words

POOL: Final = "pool"
"""The name of the change, and of its variant."""
_MOST_STATEMENTS: Final = 20
"""Statements of a request at most."""
_MOST_CLIENTS: Final = 8
_CONNECTING_NS: Final = 3e6
"""About how long a connection takes to open, to choose how many writing requests a trial sends."""
_TRIAL_NS: Final = 250e6
_MOST_REQUESTS: Final = 400
_HOUR_S: Final = 3600.0
_NS: Final = 1e9

_LOOPBACK: Final = (
    "Client and server were on one machine. The time that a network, TLS and a password add to a new "
    "connection is left out, so the gain on your server is larger."
)
_NOT_PREPARED: Final = (
    "Statements were not prepared. A kept connection can also keep prepared statements, which saves more."
)


@dataclass(frozen=True, slots=True)
class Request:
    """What the server executes for one connection, as an operation of a trial.

    `statements` are captured ones, one for each execution. `per_hour` is how many connections are opened,
    `source_ns` the time on the source of all that is executed for one, `clients` how many sessions send
    requests at once.
    """

    statements: tuple[CapturedStatement, ...]
    per_hour: float
    source_ns: float
    clients: int

    @property
    def whole(self) -> CapturedStatement:
        """The request as a statement, which stands for its workload and its effect."""
        return as_one(self.statements, self.per_hour, self.source_ns)


def connecting_habit(finding: Finding) -> Candidate | None:
    """Return the change that keeps connections open, if the finding is about clients that do not."""
    found = (each for each in finding.candidates if each.habit == "connects" and each.per_hour)
    return next(found, None)


def request_of(workload: CapturedWorkload, finding: Finding, candidate: Candidate) -> Request | None:
    """Return what the server executes for a connection on average; None if no captured statement can be sent.

    Each statement occurs in proportion to its calls. A statement that finds no rows when it is repeated, such
    as a DELETE, is left out, but its time on the source counts.
    """
    per_hour = candidate.per_hour
    usable = [
        statement
        for statement in workload.statements
        if usable_sets(statement) and not (statement.changes and uses_up(statement))
    ]
    calls = sum(statement.calls_per_hour for statement in usable)
    if not per_hour or not calls:
        return None
    number = min(max(round(calls / per_hour), 1), _MOST_STATEMENTS)
    # The sessions that are starting are not among the busy ones of the samples.
    starting = 0.0 if finding.bill is None else finding.bill.seconds_per_hour / _HOUR_S
    return Request(
        statements=tuple(_apportioned(usable, number)),
        per_hour=per_hour,
        source_ns=sum(statement.calls_per_hour * statement.mean_ns for statement in workload.statements)
        / per_hour,
        clients=min(max(round(workload.sessions + starting), 1), _MOST_CLIENTS),
    )


def _apportioned(statements: Sequence[CapturedStatement], number: int) -> Iterator[CapturedStatement]:
    calls = sum(statement.calls_per_hour for statement in statements)
    exact = [number * statement.calls_per_hour / calls for statement in statements]
    counts = [math.floor(value) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda place: counts[place] - exact[place])
    for place in by_remainder[: number - sum(counts)]:
        counts[place] += 1
    for statement, count in zip(statements, counts, strict=True):
        yield from [statement] * count


def pool_arm(candidate: Candidate, request: Request) -> tuple[Arm, tuple[str, ...]]:
    """Return the change as a variant, and sentences about what its measurement rests on."""
    sent = f"{request.whole.sql};"
    arm = Arm(
        name=POOL,
        kind="client",
        text="Keep connections open in a pool of the application.",
        sql="-- When the application starts: open connections, and keep them in a pool.\n"
        f"-- For each request: take a connection from the pool, and send\n{sent}\n"
        "-- Then give the connection back to the pool.",
        undo=f"-- For each request: open a connection, and send\n{sent}\n-- Then close the connection.",
        against=candidate.against,
        templates=tuple(dict.fromkeys(statement.template for statement in request.statements)),
    )
    statements = count_words(len(request.statements), "captured statement")
    sessions = count_words(request.clients, "session")
    assumed = (
        f"A request sends {statements}, as many as the server executed for each connection on average.",
        f"{sessions[:1].upper()}{sessions[1:]} sent requests at the same time, as in the watch."
        if request.clients > 1
        else "One session sent requests, as in the watch.",
        _NOT_PREPARED,
        _LOOPBACK,
    )
    return arm, assumed


def pooling_experiment(question: str, copy_dsn: str, request: Request, arm: Arm, *, budget_s: float) -> str:
    """Return an experiment file that compares new connections with kept ones, by throughput."""
    variants = [
        f'[variants.{BASELINE}]\nbaseline = true\ntitle = "a new connection for each request"\n'
        'connections = "new"\n',
        f'[variants.{arm.name}]\ntitle = {toml(arm.text)}\nconnections = "keep"\n',
    ]
    return experiment_file("pooling", question, copy_dsn, variants, [_workload(request)], budget_s=budget_s)


def _workload(request: Request) -> str:
    lines = [f"[workloads.{workload_name(request.whole.template)}]", 'title = "a request"']
    lines += ["sql = [", *(f"{multiline(text)}," for text in statement_texts(request.statements)), "]"]
    lines += ['metric = "throughput"', f"clients = {request.clients}", 'protocol = "extended"']
    lines += settings_lines(request.statements[0].settings)
    if request.whole.changes:  # every variant changes as many rows
        each_ns = _CONNECTING_NS + request.source_ns
        many = round(request.clients * _TRIAL_NS / each_ns)
        lines.append(f"operations = {min(max(many, 10 * request.clients), _MOST_REQUESTS)}")
        lines.append(f"warmup_operations = {request.clients}")
    lines += ['state = "keep"', 'answer = "may differ"', *parameters_of(request.statements)]
    return "\n".join(lines) + "\n"


def times_known(effects: Mapping[str, Sequence[StatementEffect]]) -> set[tuple[str, int]]:
    """Return the comparisons of throughput that need no more trials: the time saved is known to 3 %."""
    return {
        (name, effect.template)
        for name, found in effects.items()
        for effect in found
        if effect.low and effect.high and (1 / effect.low - 1 / effect.high) / 2 <= PRACTICAL
    }


def net_of_requests(effect: StatementEffect, request: Request) -> Net | None:
    """Return the sessions' time saved per hour, by an effect on the time of a request; None if it is unknown.

    The server does not count how long connections take to open, so the difference is that on the copy. The
    statements may take longer on the source than on the copy. The time before then counts the time on the
    source, so that the part saved is not overstated.
    """
    before_ns, ratio = effect.before_ns, effect.ratio
    if before_ns is None or ratio is None or effect.low is None or effect.high is None:
        return None

    def saved(value: float) -> float:
        return request.per_hour * before_ns * (1 - value) / _NS

    rest_ns = max(before_ns * ratio, request.source_ns)
    before = saved(ratio) + request.per_hour * rest_ns / _NS
    return Net(saved(ratio), saved(effect.high), saved(effect.low), before)
