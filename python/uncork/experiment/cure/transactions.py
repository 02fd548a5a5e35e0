"""Variants of a captured transaction: pauses outside of it, a contended row last, a counter in parts. Pure.

An operation of the experiment is all that a client does: its pauses, and its whole transaction.
Each variant sends the same changes, with as many sessions at once as in the watch, so that sessions queue for
rows as they do on the server. What counts is how long a transaction takes, with its waits and the pauses
within it. A pause before BEGIN does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from uncork.experiment.cure.arms import Arm
from uncork.experiment.cure.setups import Refused
from uncork.experiment.cure.text import (
    BASELINE,
    as_one,
    effect_of_times,
    experiment_file,
    parameters_of,
    statement_texts,
    usable_sets,
    uses_up,
    workload_name,
)
from uncork.experiment.draft_text import multiline, settings_lines, toml
from uncork.experiment.spec.pauses import pause_line
from uncork.experiment.spec.sqltext import masked, numbers_in, statements_in
from uncork.model.database.finding import Candidate, ClientHabit, Finding
from uncork.model.database.transaction import CapturedTransaction
from uncork.model.database.workload import CapturedStatement
from uncork.model.results.cure import Net, StatementEffect
from uncork.model.units import count_words, format_duration

_HABITS: Final[frozenset[ClientHabit]] = frozenset({"pauses", "locks early", "counts in one row"})
_QUEUES: Final[frozenset[ClientHabit]] = frozenset({"locks early", "counts in one row"})
"""Habits because of which sessions queue for rows that they change."""
_DRAWN: Final = frozenset({"drawn", "rows"})
_NAMES: Final[Mapping[ClientHabit, str]] = {
    "pauses": "pause-outside",
    "locks early": "row-last",
    "counts in one row": "counter-in-parts",
}
_TRIAL_NS: Final = 400e6
_LEAST_EACH: Final = 4
"""Transactions of each session in a trial at least: at its end, sessions finish one by one."""
_MOST_EACH: Final = 200
_NS: Final = 1e9
_HOUR_S: Final = 3600.0
_LONGER: Final = 3.0
"""Ratio of the times on the copy and on the server from which on sessions surely queue otherwise."""
_SHORTEST: Final = 1e-4
"""The shortest part of its time that a transaction can surely be said to take."""

_LOOPBACK: Final = (
    "Client and server were on one machine. Over a network, a transaction also waits for each answer."
)
_MOVED: Final = (
    "The client does the same work before BEGIN, so requests take as long unless they wait for locks."
)

Step = str | int
"""A statement of the transaction by its place, or what comes between them: BEGIN, COMMIT, a pause."""


@dataclass(frozen=True, slots=True)
class TransactionArm:
    """Another way to send a transaction: the change, its steps, and what was moved out of the transaction.

    `texts` are the statements that replace captured ones, by their place. `outside_ns` is the pause before
    BEGIN. `check` and `baseline_check` are queries whose rows must be the same in this variant and in the
    present one; empty if there is nothing to compare.
    """

    arm: Arm
    habit: ClientHabit
    steps: tuple[Step, ...]
    texts: Mapping[int, str] = field(default_factory=dict)
    outside_ns: float = 0.0
    check: str = ""
    baseline_check: str = ""
    assumed: tuple[str, ...] = ()


def transaction_habits(finding: Finding) -> tuple[Candidate, ...]:
    """Return the changes of a finding that variants of its transaction can show."""
    return tuple(candidate for candidate in finding.candidates if candidate.habit in _HABITS)


def whole_transaction(transaction: CapturedTransaction) -> CapturedStatement:
    """Return a transaction as a statement, which stands for its workload and its effect."""
    return as_one(transaction.statements, transaction.per_hour, transaction.source_ns)


def with_one_row(finding: Finding, transaction: CapturedTransaction) -> CapturedTransaction:
    """Return a transaction whose sessions queue for one row, as drawn values do not."""
    hot = {
        statement.template
        for statement in transaction.statements
        if statement.template in finding.templates
        and statement.origin in _DRAWN
        and len(set(statement.sets)) > 1
    }
    if not hot or not any(candidate.habit in _QUEUES for candidate in finding.candidates):
        return transaction
    statements = tuple(
        replace(statement, sets=tuple(usable_sets(statement)[:1])) if statement.template in hot else statement
        for statement in transaction.statements
    )
    basis = (
        *transaction.basis,
        "Which rows sessions queue for was not captured, so all of them change one row.",
    )
    return replace(transaction, statements=statements, basis=basis, one_row=True)


def transaction_steps(transaction: CapturedTransaction) -> tuple[Step, ...]:
    """Return what a client sends now: BEGIN, the statements with the pauses between them, COMMIT."""
    return _framed(tuple(_inner(transaction)), block=transaction.block)


def transaction_arms(
    finding: Finding, transaction: CapturedTransaction
) -> tuple[tuple[TransactionArm, ...], str]:
    """Return the ways to send a transaction that its finding proposes, and the reason if there are none."""
    found, reasons = [], []
    used_up = next((statement for statement in transaction.statements if uses_up(statement)), None)
    if used_up is not None and re.match(r"\s*DELETE\b", used_up.sql, re.IGNORECASE):
        return (), "Its transaction deletes rows, so a copy cannot execute it as often as the server does."
    for candidate in transaction_habits(finding):
        try:
            found.append(_arm(finding, candidate, transaction))
        except Refused as refused:
            reasons.append(str(refused))
    return tuple(found), "" if found else (reasons or ["The finding proposes no other transaction."])[0]


def _arm(finding: Finding, candidate: Candidate, transaction: CapturedTransaction) -> TransactionArm:
    build = {"pauses": _pauses_outside, "locks early": _row_last, "counts in one row": _in_parts}
    made = build[candidate.habit](finding, candidate, transaction)
    before = _script(transaction_steps(transaction), transaction, {})
    after = _script(made.steps, transaction, made.texts)
    setup = f"-- Once, while nothing changes the counter:\n{made.arm.setup}\n\n" if made.arm.setup else ""
    arm = replace(made.arm, sql=f"{setup}{after}", undo=before)
    return replace(made, arm=arm, assumed=(*_assumed(transaction), *made.assumed, _LOOPBACK))


def _plain_arm(finding: Finding, candidate: Candidate, transaction: CapturedTransaction) -> Arm:
    return Arm(
        name=_NAMES[candidate.habit],
        kind="client",
        text=_text(finding, candidate),
        sql="",
        undo="",
        against=candidate.against,
        templates=tuple(statement.template for statement in transaction.statements),
    )


def _text(finding: Finding, candidate: Candidate) -> str:
    what = finding.objects[0] if finding.objects else "the application"
    if candidate.habit == "pauses":
        return f"Move the slow step of application {what} before BEGIN or after COMMIT."
    if candidate.habit == "locks early":
        return f"Change {what} last in the transaction, right before COMMIT."
    return f"{candidate.text.partition(':')[0].rstrip('.')}."


def _pauses_outside(
    finding: Finding, candidate: Candidate, transaction: CapturedTransaction
) -> TransactionArm:
    outside_ns = sum(transaction.pauses_ns)
    if not outside_ns:
        raise Refused("Its transactions were captured without a pause that could be moved.")
    inner = tuple(step for step in _inner(transaction) if isinstance(step, int))
    steps = (pause_line(outside_ns), *_framed(inner, block=transaction.block))
    arm = _plain_arm(finding, candidate, transaction)
    return TransactionArm(arm, "pauses", steps, outside_ns=outside_ns, assumed=(_MOVED,))


def _row_last(finding: Finding, candidate: Candidate, transaction: CapturedTransaction) -> TransactionArm:
    places = [
        place
        for place, statement in enumerate(transaction.statements)
        if statement.template in finding.templates and statement.changes
    ]
    if not places:
        raise Refused(
            "The contended statement locks a row to read it, so later statements may need its values."
        )
    inner = list(_inner(transaction))
    moved = [*(step for step in inner if step not in places), *places]
    if moved == inner:
        raise Refused("The contended statement is the last one of its transaction already.")
    for place in places:
        sql = transaction.statements[place].sql
        if re.search(r"\breturning\b", sql, re.IGNORECASE):
            raise Refused("The contended statement returns values, which later statements may need.")
        if (table := _read_by_others(finding, transaction, place)) is not None:
            raise Refused(f"Another statement of the transaction uses {table}, so their order may matter.")
    arm = _plain_arm(finding, candidate, transaction)
    return TransactionArm(arm, "locks early", _framed(tuple(moved), block=transaction.block))


def _in_parts(finding: Finding, candidate: Candidate, transaction: CapturedTransaction) -> TransactionArm:
    places = [
        place
        for place, statement in enumerate(transaction.statements)
        if statement.template in finding.templates
    ]
    if not places:
        raise Refused("Its transaction changes the counter by another statement.")
    place = places[0]
    if (table := _read_by_others(finding, transaction, place)) is not None:
        raise Refused(f"Another statement of the transaction uses {table}, so it must add up the parts.")
    split = split_counter(transaction.statements[place].sql, candidate.sql)
    arm = replace(_plain_arm(finding, candidate, transaction), setup=split.setup)
    return TransactionArm(
        arm,
        "counts in one row",
        transaction_steps(transaction),
        texts={place: split.sql},
        check=split.check,
        baseline_check=split.baseline_check,
        assumed=(
            "Statements that read the counter were not measured; they add up a few rows instead of one.",
        ),
    )


def _read_by_others(finding: Finding, transaction: CapturedTransaction, place: int) -> str | None:
    table = finding.objects[0] if finding.objects else ""
    others = (statement for number, statement in enumerate(transaction.statements) if number != place)
    return next((table for statement in others if table in statement.tables), None)


def _inner(transaction: CapturedTransaction) -> Iterator[Step]:
    for place, pause_ns in enumerate(transaction.pauses_ns):
        if pause_ns:
            yield pause_line(pause_ns)
        if place < len(transaction.statements):
            yield place


def _framed(steps: tuple[Step, ...], *, block: bool) -> tuple[Step, ...]:
    return ("BEGIN", *steps, "COMMIT") if block else steps


def _script(steps: Sequence[Step], transaction: CapturedTransaction, texts: Mapping[int, str]) -> str:
    lines = []
    for step in steps:
        if isinstance(step, int):
            sql = texts.get(step, transaction.statements[step].sql)
            lines.append(f"{sql.strip().rstrip('; ')};")
        elif step.startswith("\\"):
            lines.append(f"-- The application does something else for {_long(step)}.")
        else:
            lines.append(f"{step};")
    return "\n".join(lines)


def _long(step: str) -> str:
    return format_duration(float(f"{int(step.split()[1]) * 1e3:.2g}"))


def _assumed(transaction: CapturedTransaction) -> Iterator[str]:
    yield from transaction.basis
    pauses = sum(transaction.pauses_ns)
    if pauses:
        paused = format_duration(float(f"{pauses:.2g}"))
        yield f"The client paused for {paused} in each transaction, the mean of what was seen."
    sessions = count_words(transaction.clients, "session")
    yield f"{sessions[:1].upper()}{sessions[1:]} executed it at the same time, as in the watch."


def transactions_experiment(
    question: str,
    copy_dsn: str,
    transaction: CapturedTransaction,
    arms: Sequence[TransactionArm],
    *,
    budget_s: float,
) -> str:
    """Return an experiment file that compares the throughput of ways to send a transaction."""
    name = workload_name(whole_transaction(transaction).template)
    made = any(arm.arm.setup for arm in arms)
    own = f'[variants.{BASELINE}]\nbaseline = true\ntitle = "the transaction as it is now"\n'
    return experiment_file(
        "transaction",
        question,
        copy_dsn,
        [
            own + ('values = { change = "" }\n' if made else ""),
            *(_variant(arm, transaction, name, made=made) for arm in arms),
        ],
        [_workload(transaction, arms, name)],
        budget_s=budget_s,
        setup='sql = ":change"\n' if made else "",
    )


def _variant(arm: TransactionArm, transaction: CapturedTransaction, name: str, *, made: bool) -> str:
    lines = [f"[variants.{arm.arm.name}]", f"title = {toml(' '.join(arm.arm.text.split()))}"]
    if made:
        lines.append(f"values.change = {multiline(arm.arm.setup) if arm.arm.setup else toml('')}")
    lines.append(f"workloads.{name}.sql = [")
    lines += [*(f"{text}," for text in _sent(arm.steps, transaction, arm.texts)), "]"]
    if arm.check:
        lines.append(f"workloads.{name}.check = {multiline(arm.check)}")
    return "\n".join(lines) + "\n"


def _workload(transaction: CapturedTransaction, arms: Sequence[TransactionArm], name: str) -> str:
    clients = transaction.clients
    each = round(_TRIAL_NS / max(1.0, transaction.source_ns))
    each = min(max(each, _LEAST_EACH), _MOST_EACH)
    lines = [f"[workloads.{name}]", 'title = "a transaction"', "sql = ["]
    lines += [*(f"{text}," for text in _sent(transaction_steps(transaction), transaction, {})), "]"]
    lines += ['metric = "throughput"', f"clients = {clients}", 'protocol = "extended"']
    lines += settings_lines(transaction.statements[0].settings)
    lines += [f"operations = {each * clients}", f"warmup_operations = {clients}"]
    check = next((arm.baseline_check for arm in arms if arm.baseline_check), "")
    lines += ['state = "keep"', f'answer = "{"check" if check else "may differ"}"']
    if check:
        lines.append(f"check = {multiline(check)}")
    lines += parameters_of(transaction.statements)
    return "\n".join(lines) + "\n"


def _sent(steps: Sequence[Step], transaction: CapturedTransaction, texts: Mapping[int, str]) -> Iterator[str]:
    written = statement_texts(
        [
            replace(statement, sql=texts.get(place, statement.sql))
            for place, statement in enumerate(transaction.statements)
        ]
    )
    for step in steps:
        yield multiline(written[step]) if isinstance(step, int) else toml(step)


def held_times(effect: StatementEffect, outside_ns: float) -> StatementEffect:
    """Return an effect on a transaction's time, without the pause before BEGIN."""
    times = effect_of_times(effect)
    before_ns, after_ns = times.before_ns, times.after_ns
    if not outside_ns or before_ns is None or after_ns is None:
        return times
    part = outside_ns / before_ns

    def within(value: float | None) -> float | None:
        return None if value is None else max(value - part, _SHORTEST)

    return replace(
        times,
        after_ns=max(after_ns - outside_ns, _SHORTEST * before_ns),
        ratio=within(times.ratio),
        low=within(times.low),
        high=within(times.high),
    )


def doubt_of_queue(effect: StatementEffect, transaction: CapturedTransaction) -> str:
    """Return why a gain may be smaller on the server; empty if there is no reason."""
    if not transaction.one_row or (effect.before_ns or 0.0) <= _LONGER * transaction.source_ns:
        return ""
    here, there = format_duration(effect.before_ns or 0.0), format_duration(transaction.source_ns)
    return (
        f"A transaction takes {here} on the copy, where all sessions change one row, and {there} on the "
        "server. Take the values from the server's log with --logs."
    )


def net_of_transactions(effect: StatementEffect, transaction: CapturedTransaction) -> Net | None:
    """Return the sessions' time saved per hour, of that on the source; None if unknown."""
    ratio, low, high = effect.ratio, effect.low, effect.high
    if ratio is None or low is None or high is None:
        return None
    before = transaction.per_hour * transaction.source_ns / _NS
    return Net(before * (1 - ratio), before * (1 - high), before * (1 - low), before)


# ---- write an UPDATE that adds to a counter as one that adds to a part of it ----


_NAME: Final = r'(?:"[^"]+"|[\w$]+)'
_TABLE: Final = rf"{_NAME}(?:\.{_NAME})?"
_UPDATE: Final = re.compile(
    rf"""\s*UPDATE\s+(?:ONLY\s+)?(?P<table>{_TABLE})(?:\s+(?:AS\s+)?(?!SET\b){_NAME})?\s+
      SET\s+(?P<counter>{_NAME})\s*=\s*(?:{_NAME}\.)?(?P<same>{_NAME})\s*(?P<sign>[+-])\s*(?P<added>[^\s,()]+(?:\([^()]*\))?)\s+
      WHERE\s+(?P<where>.+?)\s*;?\s*""",
    re.IGNORECASE | re.DOTALL | re.VERBOSE,
)
_EQUAL: Final = re.compile(
    rf"\s*\(?\s*(?:{_NAME}\.)?(?P<column>{_NAME})\s*=\s*(?P<value>[^\s()]+(?:\([^()]*\))?|'(?:[^']|'')*')\s*\)?\s*",
    re.DOTALL,
)
_INSERT: Final = re.compile(
    rf"INSERT\s+INTO\s+(?P<table>{_TABLE})\s*\((?P<columns>[^()]*)\)\s*"
    r"VALUES\s*\((?P<values>.*)\)\s*ON\s+CONFLICT\s*(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_OTHER: Final = "The statement is not of the form UPDATE ... SET counter = counter + value WHERE key = value."


@dataclass(frozen=True, slots=True)
class Split:
    """A counter in parts: the script that makes them, the statement that adds, and the sums on both sides."""

    setup: str
    sql: str
    check: str
    baseline_check: str


def split_counter(update: str, change: str) -> Split:
    """Return how a captured UPDATE adds to a counter in parts. Raises Refused for another form.

    `change` creates the table of parts, and its last statement is an INSERT that adds 1 to a random part of
    the keys ``$1``, ``$2``, ....
    """
    found = _UPDATE.fullmatch(update)
    *setup, insert = statements_in(change) or [""]
    target = _INSERT.fullmatch(insert.strip())
    if target is None or not setup:
        raise Refused("The change has no statement that adds to a part.")
    if not re.match(r"\s*UPDATE\b", update, re.IGNORECASE):
        raise Refused("The counter changes within a function or a trigger, which only a person can split.")
    if found is None or _plain(found["counter"]) != _plain(found["same"]):
        raise Refused(_OTHER)
    keys: dict[str, str] = {}
    for part in _conditions(found["where"]):
        equal = _EQUAL.fullmatch(part)
        if equal is None:
            raise Refused(_OTHER)
        keys[_plain(equal["column"])] = equal["value"]
    columns = [word.strip() for word in target["columns"].split(",")]
    own = [
        column
        for column in columns
        if _plain(column) != "part" and _plain(column) != _plain(found["counter"])
    ]
    if {_plain(text) for text in own} != set(keys):
        raise Refused("The statement chooses its row by other columns than the parts have.")
    part = _part_value(target["values"], columns)
    added = found["added"] if found["sign"] == "+" else f"-{found['added']}"
    given = {_plain(text): keys[_plain(text)] for text in own}
    given |= {"part": part, _plain(found["counter"]): added}
    values = ", ".join(given[_plain(column)] for column in columns)
    sql = (
        f"INSERT INTO {target['table']} ({', '.join(columns)}) VALUES ({values})\n"  # noqa: S608
        f"ON CONFLICT {target['rest'].strip()}"
    )
    return Split(
        setup=";\n".join(setup) + ";",
        sql=sql,
        check=_sums(own, found["counter"], target["table"]),
        baseline_check=_sums(own, found["counter"], found["table"]),
    )


def _plain(name: str) -> str:
    return name[1:-1] if name.startswith('"') else name.lower()


def _conditions(where: str) -> list[str]:
    if re.search(r"\b(?:OR|NOT|RETURNING|SELECT)\b", masked(where), re.IGNORECASE):
        raise Refused(_OTHER)
    return re.split(r"\bAND\b", where, flags=re.IGNORECASE)


def _part_value(values: str, columns: list[str]) -> str:
    """Return the expression that chooses a part: the one value of the INSERT that is no key and not 1."""
    place = columns.index("part") if "part" in columns else -1
    found = [word.strip() for word in re.split(r",(?![^()]*\))", values)]
    if place < 0 or len(found) != len(columns) or numbers_in(found[place]):
        raise Refused("The change does not say how a part is chosen.")
    return found[place]


def _sums(keys: list[str], counter: str, table: str) -> str:
    by = ", ".join(keys)
    return f"SELECT {by}, sum({counter}) FROM {table} GROUP BY {by} ORDER BY {by}"  # noqa: S608
