"""Assemble the transactions of each session from the entries of a log. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from uncork.model.database.recording import LoggedStatement, LoggedTransaction
from uncork.model.records import Record
from uncork.profile.shapes.nodes import tokens_of

COLUMNS: Final = (
    *("time", "file", "offset", "pid", "duration_us", "statement_id", "server", "severity", "kind", "step"),
    *("session", "database", "statement", "parameters"),
)
"""The columns of the table log_events that are read."""

_FIRST: Final = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*([A-Za-z]+)(?:\s+([A-Za-z]+))?", re.DOTALL)
_TO_SAVEPOINT: Final = re.compile(r"\s*rollback\s+(?:work\s+|transaction\s+)?to\b", re.IGNORECASE)
_BEGINS: Final = frozenset({"BEGIN", "START"})
_ENDS: Final = frozenset({"COMMIT", "END", "ROLLBACK", "ABORT"})
_SENT: Final = (
    *("SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "WITH", "VALUES", "TABLE", "CALL", "DO", "LOCK"),
    *("TRUNCATE", "SAVEPOINT", "RELEASE", "DECLARE", "FETCH", "MOVE", "CLOSE", "NOTIFY", "REFRESH"),
)
_LOCAL: Final = frozenset({"LOCAL", "TRANSACTION", "CONSTRAINTS"})
"""What SET changes only until the transaction ends."""
_PREPARATION: Final = frozenset({"parse", "bind", "fetch"})
_OVER: Final = frozenset({"connection", "disconnection"})
_ERRORS: Final = frozenset({"ERROR", "FATAL", "PANIC"})

FAILED: Final = "they failed"
SEVERAL: Final = "the client sent several statements in one message"
CUT: Final = "the log does not show where they begin or end"


class LoggedSessions(Record):
    """The transactions of a log by their beginning, and how many are left out, by the reason.

    `untimed` counts statements whose duration is not in the log.
    """

    transactions: tuple[LoggedTransaction, ...]
    missing: Mapping[str, int]
    untimed: int


@dataclass(slots=True)
class _Open:
    """A transaction that has not ended; `reason` is why it cannot be sent again."""

    begin_us: int
    statements: list[LoggedStatement] = field(default_factory=list)
    reason: str = ""


@dataclass(slots=True)
class _Session:
    """What is known about a session. `pending` is a statement that was logged before its duration."""

    free_us: int | None = None
    pause_us: int = 0
    open: _Open | None = None
    pending: tuple[Mapping[str, Any], int] | None = None


def logged_transactions(rows: Iterable[Mapping[str, Any]]) -> LoggedSessions:
    """Return the transactions of a log's entries, which are rows of log_events in the order of the log.

    Times are in microseconds. Entries without a session or a process number are ignored, and so are those of
    uncork's own monitoring.
    """
    found = _Found()
    for row in rows:
        found.follow(row)
    return found.finish()


class _Found:
    def __init__(self) -> None:
        self._sessions: dict[tuple[str, object], _Session] = {}
        self._numbers: dict[tuple[str, object], int] = {}
        self._transactions: list[LoggedTransaction] = []
        self._missing: Counter[str] = Counter()
        self._untimed = 0

    def follow(self, row: Mapping[str, Any]) -> None:
        """Process the next entry."""
        name = row["session"] or row["pid"]
        if name is None or row["time"] is None:
            return
        key = (row["server"] or "", name)
        kind = row["kind"]
        if kind in _OVER:
            self._leave(self._sessions.pop(key, None))
            return
        session = self._sessions.setdefault(key, _Session())
        if kind == "error" and row["severity"] in _ERRORS:
            self._fail(session, row)
        elif kind == "statement" and row["statement_id"] is not None:
            self._untimed += session.pending is not None
            session.pending = (row, row["time"])
        elif kind == "duration" and row["duration_us"] is not None:
            self._timed(key, session, row)

    def finish(self) -> LoggedSessions:
        """End all sessions."""
        for session in self._sessions.values():
            self._leave(session)
            self._untimed += session.pending is not None
        ordered = sorted(self._transactions, key=lambda found: (found.begin_us, found.session))
        numbers: dict[int, int] = {}
        found = tuple(
            replace(each, session=numbers.setdefault(each.session, len(numbers))) for each in ordered
        )
        return LoggedSessions(found, dict(self._missing), self._untimed)

    def _leave(self, session: _Session | None) -> None:
        if session is not None and session.open is not None:
            self._missing[session.open.reason or CUT] += 1
            session.open = None

    def _fail(self, session: _Session, row: Mapping[str, Any]) -> None:
        session.pending = None
        session.free_us, session.pause_us = row["time"], 0
        if session.open is not None:
            session.open.reason = FAILED
        elif row["statement"]:
            self._missing[FAILED] += 1

    def _timed(self, key: tuple[str, object], session: _Session, row: Mapping[str, Any]) -> None:
        """Process a duration, of a statement or of a step that prepares one."""
        end = row["time"]
        begin = end - row["duration_us"]
        if row["statement"] is None and session.pending is not None:
            row, begin = session.pending[0], session.pending[1]
            session.pending = None
        elif row["statement"] is None or row["statement_id"] is None:
            return
        if session.free_us is not None:
            session.pause_us += max(0, begin - session.free_us)
        session.free_us = end
        if row["step"] in _PREPARATION:
            return
        pause, session.pause_us = session.pause_us, 0
        one = LoggedStatement(row["statement"], row["parameters"] or "", row["step"] == "execute", pause)
        self._executed(key, session, one, (begin, end))

    def _executed(
        self, key: tuple[str, object], session: _Session, statement: LoggedStatement, times: tuple[int, int]
    ) -> None:
        words = _FIRST.match(statement.text.lstrip("( \n\t"))
        first, second = ("", "") if words is None else (words[1].upper(), (words[2] or "").upper())
        begin, end = times
        if _is_several(statement.text):
            # Nobody knows whether a transaction is open now.
            self._leave(session)
            self._missing[SEVERAL] += 1
        elif first in _BEGINS:
            self._leave(session)
            session.open = _Open(begin, [replace(statement, pause_us=0)])
        elif first in _ENDS and not _TO_SAVEPOINT.match(statement.text):
            ended, session.open = session.open, None
            if ended is None:
                return  # it began before the log, or is a warning of the server's
            ended.statements.append(statement)
            self._add(key, ended, end)
        else:
            reason = _reason(first, second)
            if session.open is not None:
                session.open.statements.append(statement)
                session.open.reason = session.open.reason or reason
            else:
                self._add(key, _Open(begin, [replace(statement, pause_us=0)], reason), end)

    def _add(self, key: tuple[str, object], ended: _Open, end: int) -> None:
        if ended.reason:
            self._missing[ended.reason] += 1
            return
        number = self._numbers.setdefault(key, len(self._numbers))
        self._transactions.append(LoggedTransaction(number, ended.begin_us, end, tuple(ended.statements)))


def _reason(first: str, second: str) -> str:
    if first in _SENT or first in _ENDS or (first == "SET" and second in _LOCAL):
        return ""
    if first in ("SET", "RESET", "DISCARD", "LISTEN", "UNLISTEN"):
        return "SET and the like change the session, not the data"
    return f"{first or 'such'} is not sent again"


def _is_several(text: str) -> bool:
    if ";" not in text.rstrip("; \n\t"):
        return False
    tokens = [token.text for token in tokens_of(text)]
    while tokens and tokens[-1] == ";":
        tokens.pop()
    return ";" in tokens
