"""Assemble the transactions of sessions from the entries of a log, and turn them into scripts. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from statistics import median
from typing import Any, Final

from uncork.model.database.names import literal
from uncork.model.database.recording import LoggedStatement, LoggedTransaction, RecordedTransaction, Recording
from uncork.model.records import Record
from uncork.model.units import count_words, format_duration, share_text
from uncork.profile.shapes.nodes import tokens_of
from uncork.profile.workload.literals import CONSTANTS, inlined

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


# ---- separate the text of a logged statement from its values, as a script writes both ----


_PARAMETER: Final = re.compile(r"\$(\d+) = (NULL|'(?:[^']|'')*')", re.DOTALL)
_ONE_COLON: Final = re.compile(r"(?<!:):(?!:)")
"""What a script could take for a variable, such as the bounds of an array's slice."""


class ScriptStatement(Record):
    """A statement of a script, with ``:name`` for each variable, and the values of these."""

    text: str
    values: Mapping[str, str | None]


def script_statement(statement: LoggedStatement, place: int) -> ScriptStatement | None:
    """Return statement `place` of a script; None if the log lacks values of its parameters.

    Parameters that the client sent apart from the text are variables ``p…``. In other texts, each constant is
    a variable ``t…``. A text that a script cannot hold is one variable.
    """
    shape = _shape(statement.text, place, statement.bound)
    if shape is None:
        return whole_statement(statement, place)
    text, parameters, constants = shape
    known = parameter_values(statement.parameters)
    if any(number not in known for number in parameters):
        return None
    values = {f"p{place}_{number}": known[number] for number in parameters}
    values.update({f"t{place}_{number}": written for number, written in enumerate(constants, 1)})
    return ScriptStatement(text, values)


def whole_statement(statement: LoggedStatement, place: int) -> ScriptStatement | None:
    """Return statement `place` of a script as one variable; None if the log lacks its values."""
    text = statement.text.strip().rstrip("; \n\t")
    if statement.bound and statement.parameters:
        known = parameter_values(statement.parameters)
        values = {number: known.get(number) for number in range(1, max(known, default=0) + 1)}
        written = {number: "NULL" if value is None else literal(value) for number, value in values.items()}
        text, missing = inlined(text, written)
        if missing:
            return None
    elif statement.bound and any(token.kind == "PARAM" for token in tokens_of(text)):
        return None
    return ScriptStatement(f":t{place}", {f"t{place}": text})


def parameter_values(logged: str) -> Mapping[int, str | None]:
    """Return the values of parameters by their numbers, from the text of a log; None is NULL."""
    return {
        int(number): None if text == "NULL" else text[1:-1].replace("''", "'")
        for number, text in _PARAMETER.findall(logged)
    }


@lru_cache(maxsize=10_000)
def _shape(text: str, place: int, bound: bool) -> tuple[str, tuple[int, ...], tuple[str, ...]] | None:
    """Return a text with variables, its parameters and constants; None if a script cannot hold it."""
    whole, tokens = text.encode(), tokens_of(text)
    while tokens and tokens[-1].text == ";":
        tokens.pop()
    if not tokens:
        return None
    pieces: list[str] = []
    parameters: dict[int, None] = {}
    constants: list[str] = []
    before = tokens[0].start
    for start, end, kind, written in tokens:
        between, before = whole[before:start].decode(), end
        # A script has a space instead of comments, unless they are hints.
        hint = "/*+" in between and ":" not in between and pieces[-1:] != [","]
        pieces.append(between if hint else " " if between or pieces[-1:] == [","] else "")
        if bound and kind == "PARAM":
            parameters[int(written[1:])] = None
            pieces.append(f":p{place}_{written[1:]}")
        elif not bound and kind in CONSTANTS:
            constants.append(written)
            pieces.append(f":t{place}_{len(constants)}")
        elif _ONE_COLON.search(written) or "\\" in written:
            return None
        else:
            pieces.append(written)
            continue
        if re.match(rb"\w", whole[end : end + 1]):
            return None
    return "".join(pieces), tuple(parameters), tuple(constants)


# ---- turn the transactions of a log into scripts, one for each sequence of statements ----


_SCRIPTS: Final = 100
"""Sequences of statements with a script of their own; others share one by their number of statements."""
_LONGEST: Final = 1_000
"""Statements of a transaction at most."""

_WITHOUT_VALUES: Final = "the log does not have the values of their parameters"

Shape = tuple[str, ...]
Build = Callable[[LoggedStatement, int], ScriptStatement | None]


def recording_of(found: LoggedSessions, most: int) -> Recording:
    """Return the first `most` transactions of sessions as scripts with values."""
    missing = Counter(found.missing)
    built: list[tuple[LoggedTransaction, Shape, Mapping[str, str | None]]] = []
    for transaction in found.transactions:
        if len(built) == most:
            missing[f"a recording has {most} transactions at most"] += 1
        elif len(transaction.statements) > _LONGEST:
            missing[f"they have more than {_LONGEST} statements"] += 1
        elif (statements := _statements(transaction, script_statement)) is None:
            missing[_WITHOUT_VALUES] += 1
        else:
            built.append((transaction, *statements))
    often = Counter(shape for _, shape, _ in built)
    own = [shape for shape, _ in often.most_common(_SCRIPTS)]
    names = {shape: f"transaction-{number:03d}.sql" for number, shape in enumerate(own, 1)}
    usual = frozenset(names)
    sent: list[RecordedTransaction] = []
    timed: dict[Shape, list[LoggedTransaction]] = defaultdict(list)
    begin = built[0][0].begin_us if built else 0
    for transaction, own_shape, own_values in built:
        shape, values = own_shape, own_values
        if shape not in usual:
            whole = _statements(transaction, whole_statement)
            if whole is None:
                missing[_WITHOUT_VALUES] += 1
                continue
            shape, values = whole
            names.setdefault(shape, f"other-{len(shape):03d}.sql")
        timed[shape].append(transaction)
        at_us, took_us = transaction.begin_us - begin, transaction.end_us - transaction.begin_us
        sent.append(RecordedTransaction(at_us, took_us, transaction.session, names[shape], values))
    return Recording(
        scripts={names[shape]: _script(shape, timed[shape], len(sent)) for shape in names if timed[shape]},
        transactions=tuple(sent),
        sessions=len({transaction.session for transaction in sent}),
        seconds=max((transaction.at_us + transaction.took_us for transaction in sent), default=0) / 1e6,
        missing=dict(missing),
    )


def _statements(
    transaction: LoggedTransaction, build: Build
) -> tuple[Shape, Mapping[str, str | None]] | None:
    texts: list[str] = []
    values: dict[str, str | None] = {}
    for place, statement in enumerate(transaction.statements, 1):
        written = build(statement, place)
        if written is None:
            return None
        texts.append(written.text)
        values.update(written.values)
        if place > 1:
            values[f"w{place}"] = str(statement.pause_us)
    return tuple(texts), values


def _script(shape: Shape, timed: Sequence[LoggedTransaction], whole: int) -> str:
    took = median(transaction.end_us - transaction.begin_us for transaction in timed)
    paused = median(sum(statement.pause_us for statement in transaction.statements) for transaction in timed)
    lines = [
        f"-- weight: {len(timed)}",
        f"-- {count_words(len(timed), 'transaction')}, {share_text(len(timed) / whole)} of the recording; "
        f"median {format_duration(took * 1e3)}, of which {format_duration(paused * 1e3)} are pauses",
    ]
    for place, text in enumerate(shape, 1):
        if place > 1:
            lines.append(f"\\sleep :w{place} us")
        lines.append(f"{text};")
    return "\n".join(lines) + "\n"
