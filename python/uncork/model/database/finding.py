"""Findings: what is wrong with a database, what it costs, and the changes that could cure it."""

from __future__ import annotations

from typing import Final, Literal

from uncork.model.records import Record

_EXECUTED: Final = frozenset({"index", "ddl", "maintenance"})
"""Kinds of changes that are SQL in a copy of the database."""

CandidateKind = Literal["index", "ddl", "statement", "setting", "maintenance", "client"]
"""What a candidate changes: an index, another object, the text of a statement, a setting, the state of a
table (VACUUM, ANALYZE), or what the client does."""

ClientHabit = Literal[
    "",
    "commits each",
    "loops",
    "loops in a transaction",
    "pipelines",
    "connects",
    "pauses",
    "locks early",
    "counts in one row",
]
"""How a client sends statements now, if a variant of the captured workload can send them otherwise: for each
row, with a commit for each, one by one without a transaction, one by one within a transaction, or in a
pipeline; each request over a new connection; or a transaction in which it pauses, in which it locks a
contended row before its other statements, or which adds to a counter that is one row."""


class Bill(Record):
    """What a finding costs now, in seconds of sessions' time per hour.

    `low` and `high` are its 95 % interval from sampling; `high` is None if nothing bounds it. `share` is its
    part of the time of all busy sessions, 0 to 1.
    """

    seconds_per_hour: float
    low: float
    high: float | None
    share: float


class Candidate(Record):
    """One change that could cure a finding.

    `text` is one sentence that says what to do. `sql` is exactly what to execute, empty if only a person can
    make the change; `undo` is what reverts it. `same_answers` is false if the change can change the rows
    that statements return. `against` are the reasons not to do it. `unprovable` says in a sentence why no
    measurement on a copy can prove it now; empty if one can. `habit` is what a change of the client replaces,
    and `per_hour` how many connections an hour the client opens, if that is the habit; None for others.
    `check` is a query whose rows must be the same with and without the change after the same statements. With
    `other_counts`, a statement may report fewer changed rows, and only the check decides. `on_copy` is SQL
    that has the same effect on a copy, where `sql` itself has none; empty if `sql` has it. `tried_first`
    means that `sql` has code that uncork composed, which is shown only after a trial on a copy.
    """

    kind: CandidateKind
    text: str
    sql: str = ""
    undo: str = ""
    same_answers: bool = True
    against: tuple[str, ...] = ()
    unprovable: str = ""
    habit: ClientHabit = ""
    per_hour: float | None = None
    check: str = ""
    other_counts: bool = False
    on_copy: str = ""
    tried_first: bool = False


class Finding(Record):
    """A judgement from evidence.

    `rule` is its class, such as ``missing-index``. `headline` names the object and the cause in one clause
    without a full stop, with at most 14 words and 2 numbers; `evidence` has the other numbers in sentences.
    `objects` are the tables, indexes, settings or applications that it is about, the most important first;
    `templates` are the statements, the costliest first, and `statement` is the text of the first. `bill` is
    None if it costs no time now; `cost` says in a few words what it costs instead, such as "1.2 GB of disk".
    `candidates` are the changes, the best first, `against` what speaks against the finding itself, `proof`
    how to prove it.
    """

    rule: str
    headline: str
    objects: tuple[str, ...]
    bill: Bill | None
    templates: tuple[int, ...] = ()
    statement: str = ""
    cost: str = ""
    evidence: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    against: tuple[str, ...] = ()
    proof: str = ""

    @property
    def for_experiment(self) -> tuple[Candidate, ...]:
        """The changes that an experiment about the finding's statement can execute; empty without one."""
        return tuple(
            candidate
            for candidate in self.candidates
            if self.templates and candidate.kind in _EXECUTED and candidate.sql
        )
