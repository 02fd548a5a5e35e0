"""Rows written one by one, each with a commit that waits for the write-ahead log. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Piece, Statement
from uncork.advise.rule import Rule, worth
from uncork.advise.rules.writes.batches import batched
from uncork.advise.rules.writes.written import ROW_WORDS, Written, written
from uncork.model.database.finding import Candidate, Finding
from uncork.model.units import count_words, share_text

if TYPE_CHECKING:
    from uncork.model.results.database_transactions import RowWriter

__all__ = ["JOB_SESSIONS", "LOG_SHARE", "RULE", "SHARE", "commit_candidates"]

SHARE: Final = 0.3
"""Fraction of the busy time of sessions that only insert single rows. Below it, they are an event log beside
the real work."""
LOG_SHARE: Final = 0.5
"""Fraction of their time in which they wait for the log. From half on, larger transactions make them at least
twice as fast."""
_ONE_ROW: Final = 2.0
JOB_SESSIONS: Final = 2
"""Most sessions of an application whose UPDATE or DELETE statements are a job in a loop. The sessions of a
pool, which serve independent requests, also update single rows, and each request needs its own commit."""
_CONTROL: Final = re.compile(r"(?:begin|start transaction|commit|end)\b")
_VERBS: Final = {"insert": "Insert", "update": "Update", "delete": "Delete", "lock": "Lock"}


def _find(seen: Evidence) -> Iterator[Finding]:
    writers = () if seen.database is None else seen.database.writers
    control = {each.number for each in seen.statements.values() if _CONTROL.match(each.text)}
    for one in writers:
        bill = seen.bill(partial(_written, one, control))
        if one.log_share < LOG_SHARE or not worth(bill, SHARE):
            continue
        statement = seen.statements.get(one.template, Statement(one.template, one.text))
        what = written(statement)
        if what is None or (what.kind != "insert" and one.processes > JOB_SESSIONS):
            continue
        rows = statement.a_call(statement.rows)
        if rows is not None and rows > _ONE_ROW:
            continue
        written_rows = count_words(statement.calls, "row") if statement.calls else "rows"
        yield Finding(
            RULE.name,
            f"Application {one.application} "
            f"{ROW_WORDS[what.kind].format(rows=written_rows, table=what.table)} with a commit for each",
            objects=(one.application, what.table),
            bill=bill,
            templates=(one.template,),
            statement=one.text,
            evidence=(
                f"Its sessions wait for the write-ahead log in {share_text(one.log_share)} of their time.",
            ),
            candidates=commit_candidates(what, statement, seen),
            proof="Compare a commit a row with larger transactions in uncork run: the batch strategies.",
        )


def commit_candidates(what: Written, statement: Statement, seen: Evidence) -> tuple[Candidate, ...]:
    """Return what a client that commits each row can do instead."""
    return (
        Candidate(
            "client",
            f"{_VERBS[what.kind]} many rows with one statement, or commit once for many rows.",
            sql=batched(statement, seen),
            habit="commits each",
        ),
        Candidate(
            "setting",
            "Let these sessions not wait for the disk, with synchronous_commit = off.",
            sql="SET synchronous_commit = off;",
            undo="RESET synchronous_commit;",
            against=("A crash of the server loses the commits of the last moments.",),
        ),
    )


def _written(one: RowWriter, control: Collection[int | None], piece: Piece) -> float:
    """Return whether a piece of time is that of a writer."""
    mine = piece.template == one.template or piece.template in control
    return float(mine and piece.application == one.application)


RULE: Final = Rule("row-by-row-commit", _find)
