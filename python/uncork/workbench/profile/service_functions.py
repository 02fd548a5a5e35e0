"""Record the functions of a service while only one kind of request is sent, one kind after the other.

Samplers do not know which request a stack worked for, unless the program labels it. While only one kind of
request is sent, every stack of the service belongs to it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from uncork.errors import UncorkError
from uncork.load.http import run_http
from uncork.model.http import HttpSpec, Request
from uncork.model.load import LoadTimes
from uncork.model.results.service import WorkerFacts
from uncork.workbench.profile.service_code import record_code
from uncork.workbench.profile.service_slices import only_request
from uncork.workbench.profile.stack_recording import Recorded

_ALL: Final = 0.25
"""Fraction of a profile for recording functions if they are recorded for all requests together only."""
_SHARED: Final = 0.15
"""Fraction for all requests together, and again for each alone."""
_LONGEST_S: Final = 15.0
_LEAST_S: Final = 1.5
"""The shortest recording of one kind of request; py-spy and pprof round it to two seconds."""
_LEAD_S: Final = 0.5
"""How much longer requests are sent than recorded."""


@dataclass(frozen=True, slots=True)
class CodeTimes:
    """How long functions are recorded: of all requests together, and of each alone (`apart_s` in all)."""

    together_s: float
    apart_s: float


def code_times(seconds: float, kinds: int) -> CodeTimes:
    """Divide a profile of some seconds; with one kind of request, all are together anyway."""
    if kinds < 2:
        return CodeTimes(min(_LONGEST_S, _ALL * seconds), 0.0)
    return CodeTimes(min(_LONGEST_S, _SHARED * seconds), min(_LONGEST_S, _SHARED * seconds))


def costliest_requests(spec: HttpSpec, times: Sequence[LoadTimes]) -> tuple[Request, ...]:
    """Return the requests, those first that took most time in a load of all of them."""
    spent = {row.script: row.sum_ns for row in times if row.kind == "script"}
    return tuple(sorted(spec.requests, key=lambda one: -spent.get(one.name, 0)))


def has_routes(recorded: Recorded) -> bool:
    """Return whether labels of the program name the route of stacks."""
    return any(recorded.tables["stacks"]["route"].to_pylist())


@contextmanager
def sent_for(seconds: float, spec: HttpSpec) -> Iterator[None]:
    """Send requests while the block runs, somewhat longer than `seconds`; then wait for the last answers."""
    load = replace(spec, operations=None, warmup_ns=0, duration_ns=round((seconds + _LEAD_S) * 1e9))
    sending = threading.Thread(target=run_http, args=(load,), daemon=True)
    sending.start()
    try:
        yield
    finally:
        sending.join()


def record_apart(
    spec: HttpSpec,
    requests: Sequence[Request],
    workers: Sequence[WorkerFacts],
    seconds: float,
    told: Callable[[str], None],
) -> tuple[Recorded | None, str]:
    """Record as many requests as fit into some seconds, at least two, each alone, in the order given.

    Returns what was recorded, with the name of the request as each stack's route, and why nothing was.
    """
    chosen = requests[: max(2, int(seconds / _LEAST_S))]
    each = max(_LEAST_S, seconds / len(chosen))
    found: list[pa.Table] = []
    last, trouble = None, ""
    for request in chosen:
        told(f"functions while only {request.name} is sent")
        try:
            with sent_for(each, only_request(spec, request, duration_ns=0, operations=None)):
                last, _ = record_code(workers, spec.server, each, lambda _: None)
        except UncorkError as error:  # such as a profile without samples, because the service hardly works
            trouble = trouble or str(error)
            continue
        stacks = last.tables["stacks"]
        names = pa.repeat(pa.scalar(request.name, pa.string()), len(stacks))
        found.append(stacks.set_column(stacks.schema.get_field_index("route"), "route", names))
        if last.status == "interrupted":
            break
    if last is None:
        return None, trouble
    return replace(last, tables={**last.tables, "stacks": pa.concat_tables(found)}), ""
