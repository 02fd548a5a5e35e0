"""Turn the transactions of a log into scripts, one for each sequence of statements. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Final

from uncork.model.database.recording import LoggedStatement, LoggedTransaction, RecordedTransaction, Recording
from uncork.model.units import count_words, format_duration, share_text
from uncork.profile.recording.texts import ScriptStatement, script_statement, whole_statement
from uncork.profile.recording.transactions import LoggedSessions

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
    own = {shape for shape, _ in often.most_common(_SCRIPTS)}
    names: dict[Shape, str] = {
        shape: f"transaction-{number:03d}.sql"
        for number, (shape, _) in enumerate(often.most_common(_SCRIPTS), 1)
    }
    sent: list[RecordedTransaction] = []
    timed: dict[Shape, list[LoggedTransaction]] = defaultdict(list)
    begin = built[0][0].begin_us if built else 0
    for transaction, usual, values in built:
        shape, sent_values = usual, values
        if shape not in own:
            whole = _statements(transaction, whole_statement)
            if whole is None:
                missing[_WITHOUT_VALUES] += 1
                continue
            shape, sent_values = whole
            names.setdefault(shape, f"other-{len(shape):03d}.sql")
        timed[shape].append(transaction)
        sent.append(
            RecordedTransaction(
                transaction.begin_us - begin,
                transaction.end_us - transaction.begin_us,
                transaction.session,
                names[shape],
                sent_values,
            )
        )
    return Recording(
        scripts={names[shape]: _script(shape, timed[shape], len(sent)) for shape in names if timed[shape]},
        transactions=tuple(sent),
        sessions=len({transaction.session for transaction in sent}),
        seconds=max((transaction.at_us + transaction.took_us for transaction in sent), default=0) / 1e6,
        missing=dict(missing),
    )


def _statements(one: LoggedTransaction, build: Build) -> tuple[Shape, Mapping[str, str | None]] | None:
    """Return the texts of a transaction's statements, and the values of all variables."""
    texts: list[str] = []
    values: dict[str, str | None] = {}
    for place, statement in enumerate(one.statements, 1):
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
    paused = median(sum(each.pause_us for each in transaction.statements) for transaction in timed)
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
