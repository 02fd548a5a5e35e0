"""Send one load to two targets in turn, and keep every leg as a load of its own.

In come the jobs of both sides; out go rows as those of trials, for gates to be judged by, and under ``legs/``
in the guard's folder a stored load a leg, which `uncork report` shows as any other. What each side is sent is
prepared once; leg 0 of either side only warms, and tells at once whether the target is there.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from uncork.analysis.load.figures import asked_of_load
from uncork.engines.conninfo import Address
from uncork.errors import ConnectError, LoadError, UsageError
from uncork.experiment.guard.legs import Leg, Role, leg_row, plan_legs
from uncork.model.load import LoadMeasurement, LoadOutcome
from uncork.model.server import is_local
from uncork.model.units import format_duration
from uncork.requests.jobs import HttpJob, LoadJob
from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.store.layout import Manifest, write_manifest
from uncork.store.loads import write_environment, write_measurement, write_plan
from uncork.workbench.guard.question import LEGS
from uncork.workbench.load.http import HttpSession, check_http_job, http_manifest
from uncork.workbench.load.repeating import Job
from uncork.workbench.load.sql import LoadSession, Tell, checked, close_manifest, load_manifest, place_of
from uncork.workbench.load.targets import LoadTarget
from uncork.workbench.signals import uninterrupted

__all__ = ["Legs", "measure_legs", "place_of_job", "together"]

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""For each script, and for the load as a whole (the empty name), a row a leg."""
_ROLES: Final[tuple[Role, Role]] = ("baseline", "candidate")


@dataclass(slots=True)
class Legs:
    """What was measured: rows by script, how many rounds, and why no more."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    rounds: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Side:
    """One target, prepared."""

    target: LoadTarget
    session: LoadSession | HttpSession
    environment: Mapping[str, Mapping[str, str]]


def measure_legs(
    folder: Path,
    jobs: Mapping[Role, Job],
    *,
    seed: int,
    leg_ns: int,
    budget_ns: int,
    scripts: Sequence[str],
    decided: Callable[[Rows], bool],
    tell: Tell,
) -> Legs:
    """Measure rounds until all is decided or the budget is spent.

    Rounds end early when the next would hardly fit. `scripts` are those that gates speak of by name.

    Raises:
        UsageError: if a target asks for something else than the other, or what is sent cannot be.
        ConnectError: if a server cannot be reached, or refuses us.
        LoadError: if a target goes away; what was measured until then is kept.
        KeyboardInterrupt: what was measured until then is kept.
    """
    found, begun = Legs(), time.monotonic_ns()
    with ExitStack() as stack:
        sides = {role: stack.enter_context(_opened(folder, role, jobs[role], tell)) for role in _ROLES}
        _refuse_unlike(sides)
        for role in _ROLES:
            _carry_out(folder, sides[role], Leg(0, 0, 0, role), leg_ns)
        longest = 0
        while True:
            before = time.monotonic_ns()
            for leg in plan_legs(seed, found.rounds + 1):
                measured = _carry_out(folder, sides[leg.role], leg, leg_ns)
                for script in ("", *scripts):
                    found.rows[script].append(leg_row(leg, measured, script))
            found.rounds += 1
            now = time.monotonic_ns()
            longest = max(longest, now - before)
            if found.rounds >= MINIMUM_ROUNDS and decided(found.rows):
                found.reason = "every gate is decided"
                return found
            spent = now - begun
            tell(f"round {found.rounds} done, {format_duration(spent)} of {format_duration(budget_ns)} spent")
            if spent + longest > budget_ns:
                found.reason = f"the budget of {format_duration(budget_ns)} is spent"
                return found


@contextmanager
def _opened(folder: Path, role: Role, job: Job, tell: Tell) -> Iterator[_Side]:
    """Prepare one target; a server of our own is gone afterwards."""
    place = folder / role
    place.mkdir(parents=True, exist_ok=True)
    question = f"the {role}'s leg of a guard"
    session: LoadSession | HttpSession
    if isinstance(job, HttpJob):
        check_http_job(job)
        session = HttpSession(place, http_manifest(job, role, question), job)
    else:
        address = checked(job)
        session = LoadSession(place, load_manifest(job, address, role, question), job, address)
    with session.driven(lambda text: tell(f"{role}: {text}")) as target:
        yield _Side(target, session, json.loads((place / "environment.json").read_text()))


def _refuse_unlike(sides: Mapping[Role, _Side]) -> None:
    """Refuse sides that would be sent something else, as pgbench's scripts on tables of another scale are."""
    base, own = (asked_of_load(sides[role].target.plan()) for role in _ROLES)
    for name in dict.fromkeys((*base, *own)):
        if base.get(name) != own.get(name):
            raise UsageError(
                f"the two sides would not be sent the same: {name} is {base.get(name)} for the baseline and "
                f"{own.get(name)} for the candidate; make their tables alike (uncork load sql -i -s)"
            )


def _carry_out(folder: Path, side: _Side, leg: Leg, leg_ns: int) -> LoadMeasurement:
    """Carry one leg out, and keep it."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    begun = time.monotonic_ns()
    target = side.target.leg(leg.number, leg_ns)
    measured = target.carry_out()
    with uninterrupted():
        place = folder / LEGS / f"{leg.number:04d}-{leg.role}"
        manifest = replace(
            side.session.manifest,
            id=place.name,
            name=place.name,
            seed=side.session.manifest.seed + leg.number,
            started_at=started,
        )
        _keep(place, manifest, target, side.environment, measured, time.monotonic_ns() - begun)
    _refuse_failure(leg, measured)
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
    write_manifest(place, close_manifest(manifest, measured.totals, elapsed_ns))


def _refuse_failure(leg: Leg, measured: LoadMeasurement) -> None:
    totals = measured.totals
    if totals.outcome is LoadOutcome.INTERRUPTED:
        raise KeyboardInterrupt
    if totals.outcome is not LoadOutcome.COMPLETE:
        said = totals.message or totals.first_error or totals.outcome
        if leg.number == 0:
            raise ConnectError(f"the {leg.role} cannot be reached, or refuses us: {said}")
        raise LoadError(
            f"the {leg.role} went away in round {leg.round}, and what was measured until then is kept: {said}"
        )


# ---- where they are ----


def place_of_job(job: Job) -> str:
    """Return where a job sends its load, without secrets."""
    if isinstance(job, HttpJob):
        return job.spec.server.place
    return "a server of our own" if job.server.embedded else place_of(job.server.address())


def together(base: Job, own: Job) -> tuple[bool, str]:
    """Say whether two jobs go to the same place, and else what they share, as a clause; empty if nothing."""
    if isinstance(base, HttpJob) and isinstance(own, HttpJob):
        one, other = base.spec.server, own.spec.server
        if (one.host, one.port, one.tls) == (other.host, other.port, other.tls):
            return True, ""
        return False, _sharing("services", one.host, other.host)
    addresses = [_address(job) for job in (base, own) if isinstance(job, LoadJob)]
    first, last = addresses
    if first is None or last is None:
        hosts = ["localhost" if one is None else one.hostaddr or one.host for one in addresses]
        return first is last, _sharing("servers", *hosts)
    hosts = [one.hostaddr or one.host for one in (first, last)]
    if (hosts[0], first.port) == (hosts[1], last.port):
        same = (first.database, first.user, first.options) == (last.database, last.user, last.options)
        shared = (
            "both sides are on one server: its settings, buffers, WAL and background work are common to "
            "both, so that only what databases have of their own is compared"
        )
        return same, "" if same else shared
    return False, _sharing("servers", *hosts)


def _address(job: LoadJob) -> Address | None:
    return None if job.server.embedded else job.server.address()


def _sharing(what: str, one: str, other: str) -> str:
    if is_local(one) and is_local(other):
        return (
            f"both {what} share this machine with the generator: only one is sent load at a time, but what "
            "either does in the background falls on both"
        )
    if one == other:
        return f"both {what} share the machine {one}: what either does in the background falls on both"
    return ""
