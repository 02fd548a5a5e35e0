"""The result of `uncork advise`: what is wrong with a database, ranked by what it costs."""

from __future__ import annotations

from uncork.model.database.finding import Finding
from uncork.model.database.missing import HiddenWork, Missing, Unplanned
from uncork.model.records import Record
from uncork.model.results.costly_parts import CostlyPart

ADVICE_VERSION = 1


class AdviceSource(Record):
    """A stored run that the findings rest on: its id, kind, server or files, and the seconds it covers.

    `files` are those of a log, as they were named.
    """

    run: str
    kind: str
    server: str
    seconds: float
    files: tuple[str, ...] = ()


class LookedAt(Record):
    """How much evidence the rules had: an answer without findings is worth as much as this.

    `unplanned` are the statements without a plan, by reason.
    """

    rules: int
    statements: int
    plans: int
    tables: int
    indexes: int
    settings: int
    unplanned: tuple[Unplanned, ...] = ()


class AdviceResult(Record):
    """Findings, the costliest first; findings that cost no time come last.

    `sessions` is the average number of busy sessions. `lost` means that the connection to the server was lost
    before its counters, tables and plans could be read. `costliest` are the statements and waits with the
    most time, and what is known of each.
    `missing` is evidence that could not be had, with what is lost. `reproduce` is the command. `hidden` is
    None if the role may see the work of all roles, or a log shows it.
    """

    sources: tuple[AdviceSource, ...]
    answer: str
    reasons: tuple[str, ...]
    sessions: float
    findings: tuple[Finding, ...]
    looked_at: LookedAt
    missing: tuple[Missing, ...]
    reproduce: str
    uncork_version: str
    lost: bool = False
    hidden: HiddenWork | None = None
    costliest: tuple[CostlyPart, ...] = ()
    version: int = ADVICE_VERSION
