"""Write the experiment file that compares changes with the present state over a captured workload. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from uncork.experiment.cure.arms import Arm
from uncork.experiment.draft_text import multiline, settings_lines, toml
from uncork.experiment.run.request import ANSWER_OPERATIONS
from uncork.experiment.spec.sqltext import named, numbers_in, plain_colons, renumbered
from uncork.model.database.names import literal
from uncork.model.database.workload import CapturedStatement
from uncork.model.results.cure import StatementEffect

BASELINE: Final = "current"
"""The variant that changes nothing."""

_MOST_SETS: Final = 1000
"""Parameter sets of a statement in the file. A trial draws 4096, so more would hardly be used."""

_USED_UP: Final = re.compile(
    r"\s*(?:DELETE|MERGE)\b|\s*WITH\b.*\b(?:DELETE|MERGE)\b|.*\bON\s+CONFLICT\b", re.I | re.S
)
"""Statements that do something else the second time: the row is there already, or is there no more.

A captured INSERT without ON CONFLICT makes up new keys, so it may repeat its values.
"""

_DELETES: Final = re.compile(r"\s*(?:WITH\b.*\b)?DELETE\b(?!.*\b(?:INSERT|UPDATE|MERGE)\b)", re.I | re.S)
"""Statements that delete rows and write none.

In a transaction that is rolled back, the rows stay as they are; restoring a database takes seconds. The time
has three more round trips in it and no commit. With a foreign key that cascades, on a busy machine, medians
were 187 ms rolled back and 173 ms committed without its index, and 8.2 and 6.8 ms with it.
Rows that an INSERT or an UPDATE has written would stay as dead rows, so these statements restore the data.
"""

_UNDONE: Final = ("BEGIN", "SET CONSTRAINTS ALL IMMEDIATE", "ROLLBACK")
"""What comes before a DELETE and after it. Deferred constraints are checked, as the commit does."""

_OPEN_ORDER: Final = re.compile(
    r"""\b(?: LIMIT | FETCH \s+ (?:FIRST|NEXT) | DISTINCT \s+ ON | TABLESAMPLE | OVER \s* \( )""", re.I | re.X
)
"""What may choose among rows that sort equally. A total order would decide, which the text does not show."""

_CHANGING: Final = re.compile(
    r"""\b(?: now | random | random_normal | clock_timestamp | statement_timestamp | transaction_timestamp
          | timeofday | nextval | lastval | currval | gen_random_uuid | uuid_generate_v\d\w* | uuidv[47]
          | txid_current | pg_current_xact_id | pg_backend_pid | array_agg | string_agg | jsonb?_agg
          | jsonb?_object_agg | xmlagg ) \s* \(
      | \b(?: current_timestamp | current_date | current_time | localtimestamp | localtime )\b
      | \bINSERT\b .* \bRETURNING\b""",
    re.I | re.X | re.S,
)
"""What returns other values at another time, or values in the order of the plan."""

_ANSWERS_S: Final = 5.0
_LEAST_ANSWERS: Final = 5
"""How long each variant may take for the answers of a statement that are compared, and how many they are."""
_LEAST_TIMEOUT_S: Final = 60
_MOST_TIMEOUT_S: Final = 300
"""Limits of the time of a trial. A change with which a statement never ends must leave time for others."""

_ORDER: Final = re.compile(r"\bORDER\s+BY\b", re.I)


def experiment_of_arms(
    name: str,
    question: str,
    copy_dsn: str,
    statements: Sequence[CapturedStatement],
    arms: Sequence[Arm],
    *,
    budget_s: float,
    clients: int = 1,
    precision: float = 0.05,
    seed: int = 1,
) -> str:
    """Return an experiment file: variant `BASELINE` and one for each change, one workload for each statement.

    A workload compares the changes that can touch its statement. All parameters of a statement advance
    together through its captured sets. Statements that read keep the data, and a DELETE is rolled back. Other
    statements that change rows restore the data, after each set once if a second time would do less. The
    metric is the mean, because only means add up to the time of a workload.

    `name` has letters, digits, "_" and "-". `copy_dsn` is the connection string of the database to copy,
    without a password. Each statement has at least one set of values. `clients` sessions send a statement at
    a time. `precision` is the target half-width of the intervals, as a fraction of the time. Raises
    ValueError if there is no statement, no change, or a statement without values.
    """
    if not statements or not arms:
        raise ValueError("an experiment needs a statement and a change")
    variants = [f'[variants.{BASELINE}]\nbaseline = true\nvalues = {{ change = "" }}\n']
    return experiment_file(
        name,
        question,
        copy_dsn,
        [*variants, *(_variant(arm, statements) for arm in arms)],
        [_workload(statement, arms, clients) for statement in statements],
        budget_s=budget_s,
        setup=f'sql = ":change"\n{_answers(statements)}',
        stop=f'trial_timeout = "{_timeout_s(statements)}s"\n',
        precision=f"{precision:.2%}",
        seed=seed,
    )


def experiment_file(
    name: str,
    question: str,
    copy_dsn: str,
    variants: Sequence[str],
    workloads: Sequence[str],
    *,
    budget_s: float,
    setup: str = "",
    stop: str = "",
    precision: str = "5%",
    seed: int = 1,
) -> str:
    """Return an experiment file on copies of a database, from the text of its sections."""
    parts = [
        f"[experiment]\nname = {toml(name)}\nquestion = {toml(question)}\nseed = {seed}\nevidence = []\n",
        *variants,
        f'[setup]\ncopy_of = {toml(copy_dsn)}\nstatistics = "keep"\n{setup}',
        *workloads,
        f'[stop]\nprecision = "{precision}"\npractical = "3%"\nbudget = "{max(1, round(budget_s))}s"\n{stop}',
    ]
    return "\n".join(parts)


def guard_toml(
    name: str,
    question: str,
    copy_dsn: str,
    statements: Sequence[CapturedStatement],
    *,
    slower: float = 0.1,
    clients: int = 1,
    seed: int = 1,
) -> str:
    """Return an experiment file for `uncork guard`, which fails if a captured statement becomes slower.

    The mean of each may grow by less than the fraction `slower`. The other arguments are those of
    `experiment_of_arms`. Raises ValueError if there is no statement, or one without values.
    """
    if not statements:
        raise ValueError("a guard needs a statement")
    gates = [f"mean < +{slower:.0%} on {workload_name(statement.template)}" for statement in statements]
    parts = [
        f"[experiment]\nname = {toml(name)}\nquestion = {toml(question)}\nseed = {seed}\n",
        f"[variants.{BASELINE}]\n",
        f"[setup]\ncopy_of = {toml(copy_dsn)}\n",
        *(_workload(statement, (), clients) for statement in statements),
        f"[guard]\ngates = [{', '.join(map(toml, gates))}]\n",
    ]
    return "\n".join(parts)


def workload_name(template: int) -> str:
    """Return the name of the workload that sends a captured statement."""
    return f"s{template}"


def _timeout_s(statements: Sequence[CapturedStatement]) -> int:
    slowest_s = max(statement.mean_ns for statement in statements) / 1e9
    return min(max(_LEAST_TIMEOUT_S, round(10 * ANSWER_OPERATIONS * slowest_s)), _MOST_TIMEOUT_S)


def _answers(statements: Sequence[CapturedStatement]) -> str:
    slowest_s = max(statement.mean_ns for statement in statements) / 1e9
    most = max(_LEAST_ANSWERS, round(_ANSWERS_S / slowest_s)) if slowest_s else ANSWER_OPERATIONS
    return f"answers = {most}\n" if most < ANSWER_OPERATIONS else ""


def _variant(arm: Arm, statements: Sequence[CapturedStatement]) -> str:
    lines = [f"[variants.{arm.name}]", f"title = {toml(' '.join(arm.text.split()) or arm.name)}"]
    lines.append(f"values.change = {multiline(arm.setup) if arm.setup else toml('')}")
    lines += settings_lines(arm.settings)
    for statement in statements:
        if statement.template in arm.statements:
            text = _sent(arm.statements[statement.template])
            lines.append(f"workloads.{workload_name(statement.template)}.sql = {text}")
    return "\n".join(lines) + "\n"


def _workload(statement: CapturedStatement, arms: Sequence[Arm], clients: int) -> str:
    sets = _sets(statement)
    lines = [f"[workloads.{workload_name(statement.template)}]", f"sql = {_sent(statement.sql)}"]
    lines.append('metric = "latency_mean"')
    lines += settings_lines(statement.settings)
    if clients != 1:
        lines.append(f"clients = {clients}")
    lines.append(f'protocol = "{_protocol(statement, arms)}"')
    touching = [arm.name for arm in arms if arm.touches(statement)]
    if touching and len(touching) < len(arms):
        lines.append(f"variants = [{', '.join(map(toml, touching))}]")
    deletes = _DELETES.match(statement.sql) is not None
    lines.append(f'state = "{"reset" if statement.changes and not deletes else "keep"}"')
    if statement.changes and not deletes and numbers_in(statement.sql) and uses_up(statement):
        lines.append(f"operations = {len(sets)}  # each set once, before the data is restored")
        lines.append("warmup_operations = 0")
    checks = dict.fromkeys(
        arm.check for arm in arms if arm.check and statement.changes and arm.touches(statement)
    )
    if checks:
        rows = "\nUNION ALL ".join(checks)
        lines.append(f"check = {multiline(plain_colons(rows))}")
    if checks and any(arm.other_counts and statement.template in arm.statements for arm in arms):
        lines.append('answer = "check"')
    elif _may_differ(statement, arms):
        lines.append('answer = "may differ"')
    lines += [parameter_line(number, sets) for number in sorted(numbers_in(statement.sql))]
    return "\n".join(lines) + "\n"


def uses_up(statement: CapturedStatement) -> bool:
    """Return whether a statement with the same values may do something else the second time."""
    return statement.by_function or _USED_UP.match(statement.sql) is not None


def parameter_line(number: int, sets: Sequence[Sequence[str | None]], prefix: str = "") -> str:
    """Return the line that gives `$number`, named `prefix`, p and number, its values."""
    values = (sequence[number - 1] for sequence in sets)
    rows = ", ".join(f"({'NULL' if value is None else literal(value)})" for value in values)
    return f'parameters.{prefix}p{number} = {{ query = {toml(f"VALUES {rows}")}, pick = "sequence" }}'


def _sent(sql: str) -> str:
    text = multiline(named(sql.strip()))
    if not _DELETES.match(sql):
        return text
    begin, *end = map(toml, _UNDONE)
    return f"[{begin}, {text}, {', '.join(end)}]"


def _sets(statement: CapturedStatement) -> list[tuple[str | None, ...]]:
    most = max(numbers_in(statement.sql), default=0)
    sets = [each for each in statement.sets if len(each) >= most]
    if not sets:
        raise ValueError(f"statement {statement.template} has no values for its parameters")
    if statement.changes and uses_up(statement):
        sets = list(dict.fromkeys(sets))
    step = max(1.0, len(sets) / _MOST_SETS)
    return [sets[int(place * step)] for place in range(min(len(sets), _MOST_SETS))]


def _protocol(statement: CapturedStatement, arms: Sequence[Arm]) -> str:
    """Return how to send a statement.

    A client that binds parameters usually prepares the statement, and values in a log show that it binds
    them. Otherwise each execution is planned for its values, as text with literals is.
    """
    generic = any("plan_cache_mode" in arm.settings for arm in arms)
    prepared = numbers_in(statement.sql) and (statement.origin == "executed" or generic)
    return "prepared" if prepared else "extended"


def _may_differ(statement: CapturedStatement, arms: Sequence[Arm]) -> bool:
    """Return whether variants may return other rows although all of them are right.

    A rewritten statement must return the same rows unless nothing fixes them. An index or a setting cannot
    change what a statement means, only which of equal rows LIMIT chooses.
    """
    if _CHANGING.search(statement.sql):
        return True
    rewritten = any(statement.template in arm.statements for arm in arms)
    return bool(_OPEN_ORDER.search(statement.sql)) and not (rewritten and _ORDER.search(statement.sql))


# ---- several statements as one operation ----


_MOST_TOGETHER: Final = 100
_NS: Final = 1e9


def usable_sets(statement: CapturedStatement) -> list[tuple[str | None, ...]]:
    """Return the captured sets that have a value for each parameter of a statement."""
    most = max(numbers_in(statement.sql), default=0)
    return [each for each in statement.sets if len(each) >= most][:_MOST_TOGETHER]


def statement_texts(statements: Sequence[CapturedStatement]) -> list[str]:
    """Return the text of each statement of an operation, with a name for each parameter."""
    return [
        renumbered(
            plain_colons(statement.sql.strip().rstrip("; \n")),
            {number: f":{prefix}p{number}" for number in numbers_in(statement.sql)},
        )
        for statement, prefix, _ in _placed(statements)
    ]


def parameters_of(statements: Sequence[CapturedStatement]) -> list[str]:
    """Return the lines that give the parameters of an operation their captured values.

    Executions of one statement in an operation have different values.
    """
    found = []
    for statement, prefix, place in _placed(statements):
        sets = usable_sets(statement)
        turned = [*sets[place - 1 :], *sets[: place - 1]] if place <= len(sets) else sets
        found += [parameter_line(number, turned, prefix) for number in sorted(numbers_in(statement.sql))]
    return found


def _placed(statements: Sequence[CapturedStatement]) -> Iterator[tuple[CapturedStatement, str, int]]:
    seen: dict[int, int] = {}
    for statement in statements:
        place = seen[statement.template] = seen.get(statement.template, 0) + 1
        yield statement, f"s{statement.template}_" if place == 1 else f"s{statement.template}_{place}_", place


def effect_of_times(effect: StatementEffect) -> StatementEffect:
    """Return an effect on the time of an operation, from one on operations a second of all clients."""

    def inverse(value: float | None) -> float | None:
        return 1 / value if value else None

    def time_ns(rate: float | None) -> float | None:
        return effect.clients * _NS / rate if rate else None

    return replace(
        effect,
        before_ns=time_ns(effect.before_ns),
        after_ns=time_ns(effect.after_ns),
        ratio=inverse(effect.ratio),
        low=inverse(effect.high),
        high=inverse(effect.low),
    )


def as_one(
    statements: Sequence[CapturedStatement], calls_per_hour: float, mean_ns: float
) -> CapturedStatement:
    """Return an operation as a statement, which stands for its workload and its effect."""
    origins = {statement.origin for statement in statements} - {"none"}
    return replace(
        statements[0],
        sql=";\n".join(statement.sql.strip().rstrip("; \n") for statement in statements),
        calls_per_hour=calls_per_hour,
        mean_ns=mean_ns,
        origin=statements[0].origin if len(origins) != 1 else origins.pop(),
        tables=tuple(dict.fromkeys(table for statement in statements for table in statement.tables)),
        changes=any(statement.changes for statement in statements),
        rows=None,
    )
