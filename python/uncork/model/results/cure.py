"""The result of `uncork cure`: which changes were proven on a copy, and what they bring."""

from __future__ import annotations

from typing import Final, Literal

from uncork.model.database.copy import CopyFacts
from uncork.model.database.finding import Bill, ClientHabit, Finding
from uncork.model.database.missing import HiddenWork, Missing
from uncork.model.records import Record
from uncork.model.results.advice import LookedAt
from uncork.model.results.costly_parts import CostlyPart

CURE_VERSION = 1

PRACTICAL: Final = 0.03
"""Part of the workload's time that a change must save, and that a member of a set must contribute."""

ChangeState = Literal["cured", "not cured", "harmful", "unclear", "refused", "not tried"]
"""cured: proven on fresh measurements; not cured: no practical gain; harmful: some statement becomes too
slow; unclear: not enough evidence; refused: it answers otherwise, or cannot be executed; not tried."""


class Net(Record):
    """Seconds of sessions' time saved per hour over the captured workload, with the 95 % interval.

    Negative values are time lost. `before` is the time of the statements that were measured, per hour.
    """

    saved: float
    low: float
    high: float
    before: float


class StatementEffect(Record):
    """A statement of the captured workload with a change: the ratio of its mean time, with the interval.

    0.25 means a quarter of the time. `ratio`, `low` and `high` are None if it was not measured. `origin` is
    where its values came from. `wal_ratio` is the ratio of WAL an execution, None if unknown. `clients` is
    the number of sessions that sent it at the same time. `before_rows` is how many rows a call returns or
    changes without the change, None if unknown. `before_cpu_ns` and `after_cpu_ns` are the processor time of
    the server for an execution on the copy; None if it could not be seen.
    """

    template: int
    sql: str
    changes: bool
    calls_per_hour: float
    origin: str
    before_ns: float | None
    after_ns: float | None
    ratio: float | None
    low: float | None
    high: float | None
    wal_ratio: float | None = None
    clients: int = 1
    before_rows: float | None = None
    before_cpu_ns: float | None = None
    after_cpu_ns: float | None = None


class Change(Record):
    """A change that was tried, or a set of them: its statements, what reverts them, and what was found.

    `name` is the name of its variant in the experiment files. `kind` is that of the candidate, "set" for
    several together, "control" for one that is expected to change nothing, "usual" for one that people often
    try first. `reason` says in one sentence why
    it has its state. `build_ns` is how long it took to execute on the copy, `undo_ns` to revert; `size` is by
    how many bytes the database grew. `runs` are the folders of the runs that measured it, as typed from
    the working directory. For a change of the application (kind "client"), `sql` is what it sends afterwards,
    `undo` what it sends now, `habit` what it does now, and `assumed` are sentences about what the measurement
    rests on. If it opens a connection for each request, effects are those of whole requests.
    """

    name: str
    kind: str
    text: str
    sql: str
    undo: str
    state: ChangeState
    reason: str
    net: Net | None = None
    effects: tuple[StatementEffect, ...] = ()
    worst: int | None = None
    build_ns: int | None = None
    undo_ns: int | None = None
    size: int | None = None
    against: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    habit: ClientHabit = ""


class Tried(Record):
    """A finding, and the changes that were tried for it. `state` is that of the best one.

    `reason` is one sentence; for a finding that a copy cannot prove it says what to do instead. `more_s` are
    the seconds of budget that would probably decide a finding which the budget left open; None for others,
    and if that cannot be said.
    """

    finding: Finding
    state: ChangeState
    reason: str
    changes: tuple[Change, ...] = ()
    best: str = ""
    more_s: float | None = None


class Handed(Record):
    """A file that is handed over, relative to the run's folder, and what it is for."""

    path: str
    text: str


class CureResult(Record):
    """What was found, tried and proven, the findings that cost most first.

    `chosen` are all changes that are proposed together, measured again on fresh rounds; None if there are
    none. `bill_before` and `bill_after` are the time of the captured workload per hour. `watched` is the id
    of the run with the evidence, `covered` the part of its time that the captured statements are, 0 to 1.
    `id` is that of the run of the cure. `folder` is the folder of the files in `handed`, as typed from the
    working directory. `looked_at` and `sessions`, the average number of busy sessions, say how much evidence
    the rules had; None if unknown. `usual` are changes that people often try first, whatever is wrong, as far
    as there was time to measure them beside the chosen ones. `hidden` is the work of other roles that the
    watch did not see.
    """

    server: str
    watched: str
    answer: str
    reasons: tuple[str, ...]
    tried: tuple[Tried, ...]
    chosen: Change | None
    copy: CopyFacts | None
    covered: float
    bill_before: Bill | None
    bill_after: Bill | None
    handed: tuple[Handed, ...]
    missing: tuple[Missing, ...]
    status: str
    seconds: float
    reproduce: str
    uncork_version: str
    version: int = CURE_VERSION
    id: str = ""
    folder: str = ""
    looked_at: LookedAt | None = None
    sessions: float | None = None
    usual: tuple[Change, ...] = ()
    hidden: HiddenWork | None = None
    costliest: tuple[CostlyPart, ...] = ()
    all_s_per_hour: float | None = None


def application_changes(result: CureResult) -> tuple[Change, ...]:
    """Return the proven changes that only the application can make, the best one of each finding."""
    return tuple(
        change
        for tried in result.tried
        for change in tried.changes
        if tried.state == "cured" and change.kind == "client" and change.name == tried.best
    )
