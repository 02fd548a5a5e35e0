"""Send each kind of request to a service on its own for short times, and count the statements of each.

The input is what to send; the output is rows of slices and of counters. Slices come in rounds: each
round has one slice of every kind of request and one without requests, in random order, so that a
slow drift of the server or of other work falls on all kinds alike.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from uncork.engines.watch.connection import ServerWatch, StatementCount
from uncork.engines.watch.session import own_queries
from uncork.errors import UncorkError
from uncork.load.http import run_http
from uncork.model.http import HttpSpec, Request
from uncork.model.load import LoadMeasurement, LoadOutcome
from uncork.model.tables.service import NONE
from uncork.profile.server_templates import TemplateBook, own_texts

_ROUNDS: Final = 3
_SHORTEST_S: Final = 0.3
_OPENED: Final = 0.5
"""Connections for each request from which on a service does not keep them."""
_LATE: Final = 1.25
"""How much longer than planned all slices may take before rounds are left out."""
_ENDED: Final = frozenset({LoadOutcome.INTERRUPTED, LoadOutcome.REFUSED})


@dataclass(frozen=True, slots=True)
class SlicePlan:
    """How many rounds of slices to measure, and the length of a slice."""

    rounds: int
    slice_s: float

    def allows_another(self, done: int, spent_s: float, kinds: int) -> bool:
        """Return whether one more round fits after `done` rounds, with `kinds` kinds of requests."""
        planned = self.rounds * (kinds + 1) * self.slice_s
        return spent_s * (done + 1) / done <= _LATE * planned


@dataclass(slots=True)
class Counted:
    """The slices so far, and the rise of each statement's counters in them, by slice."""

    slices: list[dict[str, Any]] = field(default_factory=list)
    rises: list[dict[int, StatementCount]] = field(default_factory=list)
    trouble: str = ""
    interrupted: bool = False

    def tables(self, texts: Mapping[int, str]) -> dict[str, list[dict[str, Any]]]:
        """Return the rows of the stored tables; `texts` are statements by query id.

        Statements without a text, and uncork's own, are left out.
        """
        book = TemplateBook()
        own = own_texts(texts, own_queries())
        numbers = {
            query_id: book.number(query_id, text) for query_id, text in texts.items() if query_id not in own
        }
        rows = []
        for number, rises in enumerate(self.rises):
            by_template: dict[int, list[StatementCount]] = {}
            for query_id, rise in rises.items():
                template = numbers.get(query_id)
                if template is not None:
                    by_template.setdefault(template, []).append(rise)
            rows += [
                {
                    "slice": number,
                    "template": template,
                    "calls": sum(count.calls for count in found),
                    "execution_ns": sum(count.execution_ns for count in found),
                    "rows": sum(count.rows for count in found),
                }
                for template, found in by_template.items()
            ]
        templates = [{"template": number, "text": text} for number, text in enumerate(book.texts)]
        return {"service_slices": self.slices, "service_counts": rows, "service_templates": templates}

    def opens_connections(self) -> bool:
        """Return whether some kind of request opens connections to the database again and again."""
        return any(
            one["kind"] == "one" and one["started"] and (one["sessions"] or 0) >= _OPENED * one["started"]
            for one in self.slices
        )

    def query_ids(self) -> set[int]:
        """Return the ids of all statements that ran."""
        return {query_id for rises in self.rises for query_id in rises}


class StatementCounter:
    """Count what a server executes between two readings of pg_stat_statements."""

    def __init__(self, server: ServerWatch) -> None:
        self._server = server
        self._before = server.statement_counts()
        self._sessions = server.sessions_begun()
        self._begun_ns = time.monotonic_ns()
        self._begun_us = time.time_ns() // 1000

    def add(self, found: Counted, kind: str, request: str, measured: LoadMeasurement | None) -> None:
        """Add the slice that ends now; the next one begins.

        Raises ServerCrash if the server went away.
        """
        after, sessions = self._server.statement_counts(), self._server.sessions_begun()
        now = time.monotonic_ns()
        totals = None if measured is None else measured.totals
        times = () if measured is None else measured.times
        sum_ns = next((row.sum_ns for row in times if row.kind == "operation"), 0)
        found.slices.append(
            {
                "slice": len(found.slices),
                "kind": kind,
                "request": request,
                "begun_us": self._begun_us,
                "elapsed_ns": now - self._begun_ns,
                "started": 0 if totals is None else totals.started,
                "failed": 0 if totals is None else totals.failed,
                "sum_ns": sum_ns,
                "sessions": _rise(self._sessions, sessions),
            }
        )
        found.rises.append(dict(_rises(self._before, after)))
        self._before, self._sessions = after, sessions
        self._begun_ns, self._begun_us = now, time.time_ns() // 1000


def plan_slices(kinds: int, seconds: float) -> SlicePlan:
    """Divide `seconds` among rounds of one slice for each kind of request, and one without requests.

    A slice lasts at least 0.3 s; with many kinds of requests there are fewer rounds, or more time is used.
    """
    rounds = max(1, min(_ROUNDS, int(seconds / (_SHORTEST_S * (kinds + 1)))))
    return SlicePlan(rounds, max(_SHORTEST_S, seconds / (rounds * (kinds + 1))))


def check_requests(spec: HttpSpec) -> str:
    """Send each kind of request once; return why one fails, or an empty text."""
    for request in spec.requests:
        measured = run_http(only_request(spec, request, clients=1, operations=1, duration_ns=None))
        totals = measured.totals
        if totals.outcome is LoadOutcome.INTERRUPTED:
            raise KeyboardInterrupt
        if not totals.succeeded:
            reason = totals.first_error or totals.message or "it got no answer"
            return f"{request.method} {spec.server.place}{request.path}: {reason}"
    return ""


def measure_slices(
    spec: HttpSpec, server: ServerWatch, plan: SlicePlan, found: Counted, told: Callable[[str], None]
) -> None:
    """Measure all slices, and add them to `found`. An interruption or a lost server ends them early.

    A slice ends with its last answer. If answers are slow, rounds that would take too long are left out.
    """
    begun = time.monotonic()
    try:
        counter = StatementCounter(server)
        for number, kinds in enumerate(_rounds(spec, plan.rounds), start=1):
            told(f"each request alone: round {number} of {plan.rounds}")
            for request in kinds:
                if request is None:
                    time.sleep(plan.slice_s)
                    counter.add(found, NONE, "", None)
                    continue
                length = round(plan.slice_s * 1e9)
                measured = run_http(only_request(spec, request, duration_ns=length, operations=None))
                counter.add(found, "one", request.name, measured)
                if measured.totals.outcome in _ENDED:
                    found.interrupted = measured.totals.outcome is LoadOutcome.INTERRUPTED
                    found.trouble = measured.totals.message or ""
                    return
            if not plan.allows_another(number, time.monotonic() - begun, len(spec.requests)):
                return
    except KeyboardInterrupt:
        found.interrupted = True
    except UncorkError as error:
        found.trouble = str(error)


def _rounds(spec: HttpSpec, rounds: int) -> Iterator[list[Request | None]]:
    drawn = random.Random(spec.seed)
    for _ in range(rounds):
        kinds: list[Request | None] = [*spec.requests, None]
        drawn.shuffle(kinds)
        yield kinds


def only_request(
    spec: HttpSpec,
    request: Request,
    *,
    duration_ns: int | None,
    operations: int | None,
    clients: int | None = None,
) -> HttpSpec:
    """Return a load of one kind of request: a closed loop without warm-up."""
    return replace(
        spec,
        requests=(replace(request, weight=1),),
        clients=spec.clients if clients is None else clients,
        threads=1 if clients == 1 else spec.threads,
        duration_ns=duration_ns,
        operations=operations,
        warmup_ns=0,
        arrivals=None,
        max_clients=None,
        progress_s=None,
        trace=other_trace(spec.trace),
    )


def other_trace(trace: str | None) -> str | None:
    """Return new digits, which distinguish the traces of another load; None if it sends no traces."""
    return None if trace is None else secrets.token_hex(3)


def _rise(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None or after < before else after - before


def _rises(
    before: Mapping[int, StatementCount], after: Mapping[int, StatementCount]
) -> Iterator[tuple[int, StatementCount]]:
    """Yield the rise of each counter that rose. An entry that was evicted in between begins at 0 again."""
    for query_id, now in after.items():
        then = before.get(query_id)
        if then is None or now.calls < then.calls:
            yield query_id, now
        elif now.calls > then.calls:
            yield (
                query_id,
                StatementCount(
                    now.calls - then.calls, now.execution_ns - then.execution_ns, now.rows - then.rows
                ),
            )
