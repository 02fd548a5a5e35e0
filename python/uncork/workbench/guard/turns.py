"""Send one load to two targets in turn, and store every turn as a load.

The input is the job of each side. The result is rows like those of trials, which gates are judged by. Each
turn is also stored under ``legs/`` in the guard's folder, as a load that `uncork report` can show. Each side
is prepared once. Turn 0 of each side only warms up, and shows at once whether the target can be reached.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from uncork.analysis.load.figures import asked_of_load
from uncork.engines.conninfo import Address
from uncork.errors import ConnectError, LoadError, UsageError
from uncork.experiment.guard.turns import Role, Turn, plan_turns, turn_row
from uncork.model.load import LoadMeasurement, LoadOutcome
from uncork.model.server import is_local
from uncork.model.units import format_duration
from uncork.requests.jobs import HttpJob, LoadJob
from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.store.layout import Manifest, closed, write_manifest
from uncork.store.loads import write_environment, write_measurement, write_plan
from uncork.workbench.clock import now_text
from uncork.workbench.guard.question import TURNS
from uncork.workbench.load.http import HttpSession, check_http_job, http_manifest
from uncork.workbench.load.repeating import Job
from uncork.workbench.load.sql import LoadSession, Notify, checked, load_ending, load_manifest, place_of
from uncork.workbench.load.targets import LoadTarget
from uncork.workbench.run_record import RunRecord
from uncork.workbench.signals import uninterrupted

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""By script, one row for each turn; the empty name stands for the load as a whole."""
_ROLES: Final[tuple[Role, Role]] = ("baseline", "candidate")


@dataclass(slots=True)
class Turns:
    """What was measured: rows by script, the number of rounds, and why measuring ended."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    rounds: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Side:
    """One target, prepared."""

    target: LoadTarget
    session: LoadSession | HttpSession
    environment: Mapping[str, Mapping[str, str]]


def measure_turns(
    folder: Path,
    jobs: Mapping[Role, Job],
    *,
    seed: int,
    turn_ns: int,
    budget_ns: int,
    scripts: Sequence[str],
    decided: Callable[[Rows], bool],
    notify: Notify,
) -> Turns:
    """Measure rounds until every gate is decided or the budget is used.

    A round that would probably exceed the budget is not started. `scripts` are those that gates name.

    Raises:
        UsageError: if the two sides would be sent different things, or the load cannot be sent.
        ConnectError: if a server cannot be reached, or refuses the connection.
        LoadError: if a target goes away; the turns before that are kept.
        KeyboardInterrupt: the turns before that are kept.
    """
    found, begun = Turns(), time.monotonic_ns()
    with ExitStack() as stack:
        sides = {role: stack.enter_context(_opened(folder, role, jobs[role], notify)) for role in _ROLES}
        _refuse_unlike(sides)
        for role in _ROLES:
            _carry_out(folder, sides[role], Turn(0, 0, 0, role), turn_ns)
        longest = 0
        while True:
            before = time.monotonic_ns()
            for turn in plan_turns(seed, found.rounds + 1):
                measured = _carry_out(folder, sides[turn.role], turn, turn_ns)
                for script in ("", *scripts):
                    found.rows[script].append(turn_row(turn, measured, script))
            found.rounds += 1
            now = time.monotonic_ns()
            longest = max(longest, now - before)
            if found.rounds >= MINIMUM_ROUNDS and decided(found.rows):
                found.reason = "every gate is decided"
                return found
            spent = now - begun
            notify(
                f"round {found.rounds} done: {format_duration(spent)} of {format_duration(budget_ns)} spent"
            )
            if spent + longest > budget_ns:
                found.reason = f"the budget of {format_duration(budget_ns)} is spent"
                return found


@contextmanager
def _opened(folder: Path, role: Role, job: Job, notify: Notify) -> Iterator[_Side]:
    """Prepare one target; stop its server afterwards if uncork started it."""
    place = folder / role
    place.mkdir(parents=True, exist_ok=True)
    question = f"the {role}'s turn in a guard"
    session: LoadSession | HttpSession
    if isinstance(job, HttpJob):
        check_http_job(job)
        session = HttpSession(RunRecord(place, http_manifest(job, "load", role, question)), job)
    else:
        address = checked(job)
        record = RunRecord(place, load_manifest(job, address, "load", role, question))
        session = LoadSession(record, job, address)
    with session.driven(lambda text: notify(f"{role}: {text}")) as target:
        yield _Side(target, session, json.loads((place / "environment.json").read_text()))


def _refuse_unlike(sides: Mapping[Role, _Side]) -> None:
    """Refuse sides that would be sent different things, such as pgbench's scripts at different scales."""
    base, own = (asked_of_load(sides[role].target.plan()) for role in _ROLES)
    for name in dict.fromkeys((*base, *own)):
        if base.get(name) != own.get(name):
            raise UsageError(
                f"the two sides would not be sent the same: {name} is {base.get(name)} for the baseline and "
                f"{own.get(name)} for the candidate; give both the same tables (uncork load sql -i -s)"
            )


def _carry_out(folder: Path, side: _Side, turn: Turn, turn_ns: int) -> LoadMeasurement:
    """Carry out one turn, and store it."""
    started, draft = now_text(), side.session.record.manifest
    begun = time.monotonic_ns()
    target = side.target.turn(turn.number, turn_ns)
    measured = target.carry_out()
    with uninterrupted():
        place = folder / TURNS / f"{turn.number:04d}-{turn.role}"
        manifest = replace(
            draft,
            id=place.name,
            name=place.name,
            seed=draft.seed + turn.number,
            started_at=started,
        )
        _keep(place, manifest, target, side.environment, measured, time.monotonic_ns() - begun)
    _refuse_failure(turn, measured)
    return measured


def _keep(
    place: Path,
    manifest: Manifest,
    target: LoadTarget,
    environment: Mapping[str, Mapping[str, str]],
    measured: LoadMeasurement,
    elapsed_ns: int,
) -> None:
    place.mkdir(parents=True)
    write_plan(place, target.plan())
    write_environment(place, environment)
    write_measurement(place, measured)
    write_manifest(place, closed(manifest, *load_ending(measured.totals), elapsed_ns))


def _refuse_failure(turn: Turn, measured: LoadMeasurement) -> None:
    totals = measured.totals
    if totals.outcome is LoadOutcome.INTERRUPTED:
        raise KeyboardInterrupt
    if totals.outcome is not LoadOutcome.COMPLETE:
        reason = totals.message or totals.first_error or totals.outcome
        if turn.number == 0:
            raise ConnectError(f"the {turn.role} cannot be reached, or refuses the connection: {reason}")
        raise LoadError(f"the {turn.role} went away in round {turn.round} (earlier turns are kept): {reason}")


# ---- where they are ----


def place_of_job(job: Job) -> str:
    """Return where a job sends its load, without secrets."""
    if isinstance(job, HttpJob):
        return job.spec.server.place
    return "an embedded server" if job.server.embedded else place_of(job.server.address())


def together(base: Job, own: Job) -> tuple[bool, str]:
    """Return whether two jobs have the same target, and else a sentence on what the targets share, if any."""
    if isinstance(base, HttpJob) and isinstance(own, HttpJob):
        one, other = base.spec.server, own.spec.server
        if (one.host, one.port, one.tls) == (other.host, other.port, other.tls):
            return True, ""
        return False, _sharing("services", one.host, other.host)
    addresses = [_address(job) for job in (base, own) if isinstance(job, LoadJob)]
    first, last = addresses
    if first is None or last is None:
        hosts = [
            "localhost" if address is None else address.hostaddr or address.host for address in addresses
        ]
        return first is last, _sharing("servers", *hosts)
    hosts = [address.hostaddr or address.host for address in (first, last)]
    if (hosts[0], first.port) == (hosts[1], last.port):
        same = (first.database, first.user, first.options) == (last.database, last.user, last.options)
        shared = (
            "both sides are on one server and share its settings, buffers, WAL and background work: only "
            "what differs between the databases is compared"
        )
        return same, "" if same else shared
    return False, _sharing("servers", *hosts)


def _address(job: LoadJob) -> Address | None:
    return None if job.server.embedded else job.server.address()


def _sharing(what: str, one: str, other: str) -> str:
    if is_local(one) and is_local(other):
        return (
            f"both {what} share this machine with the generator: only one is loaded at a time, but the "
            "background work of each affects both"
        )
    if one == other:
        return f"both {what} share the machine {one}: the background work of each affects both"
    return ""
