"""Variants of a workload that sends statements row by row: one statement or one commit for many rows. Pure.

The captured statement is executed k times, as the client does, and each variant does the same for the same k
sets of values. The experiment's batches send both (`experiment.spec.batches`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from uncork.experiment.cure.arms import Arm
from uncork.experiment.cure.setups import Refused
from uncork.experiment.cure.text import BASELINE, experiment_file, parameter_line, workload_name
from uncork.experiment.draft_text import multiline, settings_lines, toml
from uncork.experiment.spec.batches import Strategy
from uncork.experiment.spec.sqltext import masked, named, numbers_in, renumbered
from uncork.model.database.finding import Candidate, ClientHabit, Finding
from uncork.model.database.workload import CapturedStatement, CapturedWorkload

ROWS: Final = 20
"""Rows of a batch if enough values differ: fewer than most loops have, so gains are cautious."""
LEAST_ROWS: Final = 4
"""Fewest rows of a batch."""
_MOST_SETS: Final = 1000
_NS: Final = 1e9

_NOW: Final[Mapping[ClientHabit, tuple[Strategy, str]]] = {
    "commits each": ("rows", "one statement and one commit for each row"),
    "loops": ("rows", "one statement for each row"),
    "loops in a transaction": ("transaction", "one statement for each row, within a transaction"),
    "pipelines": ("pipeline", "one statement for each row, in a pipeline"),
}
"""How the client sends a batch now, and the title of that variant."""
_WORDS: Final[Mapping[Strategy, str]] = {
    "transaction": "Commit once for {rows} rows of {table}.",
    "pipeline": "Send {rows} statements about {table} without waiting for each answer (a pipeline).",
}
_TOGETHER: Final[Mapping[str, str]] = {
    "INSERT": "Insert {rows} rows into {table} with one statement.",
    "UPDATE": "Update {rows} rows of {table} with one statement.",
    "DELETE": "Delete {rows} rows of {table} with one statement.",
}
_FETCH: Final = "Fetch the rows of {rows} keys of {table} with one statement."
_LOOPBACK: Final = (
    "Client and server were on one machine. Over a network, each wait for an answer takes longer, so the "
    "gain is larger."
)
_ONE_TRANSACTION: Final = "All rows of a batch succeed or fail together, and are locked until its end."


@dataclass(frozen=True, slots=True)
class Batches:
    """The values that trials of a statement send: `rows` sets a batch, which differ in `keys`."""

    statement: CapturedStatement
    types: Mapping[int, str]
    sets: tuple[tuple[str | None, ...], ...]
    rows: int


@dataclass(frozen=True, slots=True)
class LoopArm:
    """A way to send many rows: the change, the strategy of its batches, and each statement for many rows."""

    arm: Arm
    batching: Strategy
    many: Mapping[int, ManyRows] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()


def loop_habit(finding: Finding) -> Candidate | None:
    """Return the change of the client that batches of the workload show; None if there is none."""
    return next((candidate for candidate in finding.candidates if candidate.habit in _NOW), None)


def batches_of(
    statement: CapturedStatement, types: Mapping[int, str], options: Sequence[ManyRows]
) -> Batches:
    """Return the values of a statement's batches. Raises Refused if too few keys differ."""
    keys = sorted({number for option in options for number in option.keys})
    most = max(numbers_in(statement.sql))
    usable = [values for values in statement.sets if len(values) >= most]
    if not usable:
        raise Refused("The statement was not captured with its values.")
    if not keys:
        times = -(-ROWS // len(usable))
        sets = (usable * times)[: max(ROWS, len(usable) // ROWS * ROWS)]
        return Batches(statement, types, tuple(sets[:_MOST_SETS]), ROWS)
    first = {tuple(values[number - 1] for number in keys): values for values in reversed(usable)}
    sets = list(first.values())[::-1][:_MOST_SETS]
    rows = min(ROWS, len(sets))
    if rows < LEAST_ROWS:
        raise Refused(
            f"Only {len(sets)} captured sets of values have different keys, which are too few for a batch."
        )
    return Batches(statement, types, tuple(sets[: len(sets) // rows * rows]), rows)


def loop_arms(
    finding: Finding,
    candidate: Candidate,
    statements: Sequence[CapturedStatement],
    types: Mapping[int, Mapping[int, str]],
) -> tuple[tuple[LoopArm, ...], tuple[Batches, ...]]:
    """Return the ways to send many rows, the best first, and what their trials send.

    `statements` are the captured ones of the finding, `types` the types of their parameters, by template.
    Statements that cannot be written for many rows are left out if another can. Raises Refused if
    none can, with the reason of the first.
    """
    options: dict[int, tuple[ManyRows, ...]] = {}
    batches: dict[int, Batches] = {}
    reasons: list[str] = []
    for statement in statements:
        try:
            options[statement.template] = many_rows(statement.sql, types.get(statement.template, {}))
            batches[statement.template] = batches_of(
                statement, types[statement.template], options[statement.template]
            )
        except Refused as refused:
            options.pop(statement.template, None)
            reasons.append(str(refused))
    if not options:
        raise Refused(reasons[0] if reasons else "No statement of it was captured with its values.")
    chosen = [statement for statement in statements if statement.template in options]
    rows = max(batch.rows for batch in batches.values())
    found = []
    for place in range(max(map(len, options.values()))):
        many = {number: option[min(place, len(option) - 1)] for number, option in options.items()}
        name = "one-statement" if place == 0 else "one-statement-lateral"
        found.append(_arm(name, "unnest", rows, finding, chosen, many))
    single = {statement.template: ManyRows(statement.sql) for statement in chosen}
    if candidate.habit == "commits each":
        found.append(_arm("one-commit", "transaction", rows, finding, chosen, single))
    elif candidate.habit != "pipelines":
        found.append(_arm("pipeline", "pipeline", rows, finding, chosen, single))
    return tuple(found), tuple(batches[statement.template] for statement in chosen)


def _arm(
    name: str,
    batching: Strategy,
    rows: int,
    finding: Finding,
    statements: Sequence[CapturedStatement],
    many: Mapping[int, ManyRows],
) -> LoopArm:
    first = statements[0]
    verb = first.sql.split(maxsplit=1)[0].upper()
    words = _TOGETHER.get(verb, _FETCH) if batching == "unnest" else _WORDS[batching]
    text = words.format(rows=rows, table=first.tables[0] if first.tables else "the table")
    if name.endswith("lateral"):
        text = f"{text.rstrip('.')}, in a lateral subquery for each key."
    sql = "\n\n".join(f"{many[statement.template].sql};" for statement in statements)
    assumed = dict.fromkeys(each for way in many.values() for each in way.assumed)
    writes = any(statement.changes for statement in statements)
    together = [_ONE_TRANSACTION] if writes else []
    arm = Arm(
        name=f"s{statements[0].template}-{name}",
        kind="client",
        text=text,
        sql=sql,
        undo="\n\n".join(f"{statement.sql.strip().rstrip(';')};" for statement in statements),
        statements={statement.template: many[statement.template].sql for statement in statements},
        against=tuple(together),
        templates=finding.templates,
    )
    return LoopArm(arm, batching, many, (f"A batch has {rows} rows.", *assumed, _LOOPBACK))


def loops_experiment(
    question: str,
    copy_dsn: str,
    habit: ClientHabit,
    batches: Sequence[Batches],
    arms: Sequence[LoopArm],
    *,
    budget_s: float,
) -> str:
    """Return an experiment file that compares ways to send the same rows.

    The rows are compared before (`engines.copying.answers`), because the results of a batch depend on how it
    is sent. Statements keep what they change: each variant has a database of its own, and all send as many
    rows. A DELETE restores the data instead, and sends each set of values once.
    """
    batching, title = _NOW[habit]
    variants = [
        f"[variants.{BASELINE}]\nbaseline = true\ntitle = {toml(title)}\nbatching = {toml(batching)}\n",
        *map(_variant, arms),
    ]
    return experiment_file(
        "loop", question, copy_dsn, variants, list(map(_workload, batches)), budget_s=budget_s
    )


def _variant(arm: LoopArm) -> str:
    lines = [
        f"[variants.{arm.arm.name}]",
        f"title = {toml(arm.arm.text)}",
        f"batching = {toml(arm.batching)}",
    ]
    if arm.batching == "unnest":
        lines += [
            f"workloads.{workload_name(number)}.sql = {multiline(named(each.sql))}"
            for number, each in arm.many.items()
        ]
    return "\n".join(lines) + "\n"


def _workload(one: Batches) -> str:
    statement = one.statement
    name = workload_name(statement.template)
    used_up = re.match(r"\s*DELETE\b", statement.sql, re.IGNORECASE) is not None
    numbers = sorted(numbers_in(statement.sql))
    lines = [f"[workloads.{name}]", f"sql = {multiline(named(statement.sql.strip()))}"]
    lines += ['metric = "latency_mean"', 'protocol = "prepared"', *settings_lines(statement.settings)]
    if used_up:
        lines.append(
            f"operations = {len(one.sets) // one.rows}  # each set once, before the data is restored"
        )
    lines.append(f"warmup_operations = {0 if used_up else 1}")
    lines.append(f'state = "{"reset" if used_up else "keep"}"')
    lines.append('answer = "may differ"')
    lines += [parameter_line(number, one.sets) for number in numbers]
    columns = ", ".join(f"p{number} = {toml(one.types[number])}" for number in numbers)
    lines += ["", f"[workloads.{name}.batch]", f"rows = {one.rows}", f"columns = {{ {columns} }}"]
    return "\n".join(lines) + "\n"


def own_cost(workload: CapturedWorkload, finding: Finding) -> CapturedWorkload:
    """Return a workload whose statements of a finding take as long as the finding's bill surely says.

    The server counts how long statements execute. The time of sessions in a loop also has the commits, and
    the pauses between statements of a transaction, which the samples of the bill contain.
    """
    own = [statement for statement in workload.statements if statement.template in finding.templates]
    counted = sum(statement.calls_per_hour * statement.mean_ns for statement in own) / _NS
    if finding.bill is None or not counted or finding.bill.low <= counted:
        return workload
    factor = finding.bill.low / counted
    statements = tuple(
        replace(statement, mean_ns=statement.mean_ns * factor) if statement in own else statement
        for statement in workload.statements
    )
    return replace(workload, statements=statements)


# ---- statements for many rows ----


_WORD: Final = re.compile(r"[A-Za-z_][\w$]*|[()]")
_PER_STATEMENT: Final = frozenset(
    "GROUP HAVING LIMIT FETCH OFFSET DISTINCT UNION INTERSECT EXCEPT WINDOW OR WITH".split()  # noqa: SIM905 -- words
)
"""Clauses whose result for many keys differs from the results for single keys."""
_AGGREGATE: Final = re.compile(
    r"\b(?:count|sum|avg|min|max|every|bool_\w+|bit_\w+|\w+_agg|\w+_agg_\w+|percentile_\w+|mode|stddev\w*"
    r"|var\w*|corr|regr_\w+)\s*\(|\bover\s*\(",
    re.IGNORECASE,
)
_KEY: Final = re.compile(
    r"(?P<column>[A-Za-z_][\w$.]*)\s*=\s*\$(?P<number>\d+)(?!\d)(?!\s*(?:::|[.+*/|%^-]))"
)
_UPDATES: Final = re.compile(r"\bDO\s+UPDATE\b", re.IGNORECASE)
_CONFLICT: Final = re.compile(r"\bON\s+CONFLICT\s*\(([^()]*)\)", re.IGNORECASE)

_ONCE: Final = "Each key is in a batch at most once."


@dataclass(frozen=True, slots=True)
class ManyRows:
    """A statement for many rows.

    `$n` in `sql` is the array of the values of the captured statement's `$n`. The values of the parameters
    `keys` must be different in each row of a batch. The first `added` columns of the result are not in the
    result of the captured statement: they say to which key a row belongs. `assumed` are sentences.
    """

    sql: str
    keys: frozenset[int] = frozenset()
    added: int = 0
    assumed: tuple[str, ...] = ()


def many_rows(sql: str, types: Mapping[int, str]) -> tuple[ManyRows, ...]:
    """Return statements that do for many sets of values what `sql` does for one, the best first.

    `sql` has ``$1``, ``$2``, ..., and `types` are their types. Raises Refused with the reason.
    """
    text = sql.strip().rstrip(";").rstrip()
    numbers = sorted(numbers_in(text))
    if not numbers:
        raise Refused("The statement has no parameter, so each execution does the same.")
    unknown = [number for number in numbers if number not in types]
    if unknown:
        raise Refused(f"The server does not know the type of parameter ${unknown[0]}.")
    if any(types[number].endswith("[]") for number in numbers):
        raise Refused("A parameter is an array already, so its values cannot become an array.")
    words = list(_top_words(text))
    verb = words[0][0] if words else ""
    if verb == "INSERT":
        return (_insert(text, words, types),)
    if verb == "UPDATE":
        return (_changed(text, words, types, "FROM"),)
    if verb == "DELETE":
        return (_changed(text, words, types, "USING"),)
    if verb in {"SELECT", "WITH"}:
        return tuple(_selects(text, words, types))
    raise Refused("uncork cannot write it for many rows.")


def _insert(text: str, words: list[tuple[str, int, int]], types: Mapping[int, str]) -> ManyRows:
    values = next((word for word in words if word[0] == "VALUES"), None)
    if values is None:
        raise Refused("The INSERT takes its rows from a query, not from VALUES.")
    opens = masked(text).find("(", values[2])
    closes = _closing(text, opens)
    row, rest = text[opens + 1 : closes], text[closes + 1 :].strip()
    if rest.startswith(",") or opens < 0:
        raise Refused("The INSERT has several rows already.")
    if re.search(r"\bDEFAULT\b", masked(row), re.IGNORECASE):
        raise Refused("The INSERT asks for a default in VALUES, which a query cannot; name the columns.")
    if numbers_in(rest):
        raise Refused("The part after VALUES has parameters, which differ from row to row.")
    alias, source = _source(text, types)
    prefix = text[: values[1]].rstrip()
    sql = f"{prefix}\nSELECT {_taken(row, alias).strip()}\nFROM {source}"
    keys: frozenset[int] = frozenset()
    if _UPDATES.search(masked(rest)):
        keys = _conflicting(prefix, row, rest) or frozenset(numbers_in(row))
    return ManyRows(f"{sql}\n{rest}".rstrip(), keys, assumed=(_ONCE,) if keys else ())


def _conflicting(prefix: str, row: str, rest: str) -> frozenset[int]:
    named = re.search(r"\(([^()]*)\)\s*$", prefix)
    conflict = _CONFLICT.search(rest)
    if named is None or conflict is None:
        return frozenset()
    columns = [word.strip().strip('"').lower() for word in named[1].split(",")]
    expressions = list(_split(row))
    if len(columns) != len(expressions):
        return frozenset()
    by_column = dict(zip(columns, expressions, strict=True))
    wanted = [word.strip().strip('"').lower() for word in conflict[1].split(",")]
    return frozenset(number for text in wanted for number in numbers_in(by_column.get(text, "")))


def _changed(text: str, words: list[tuple[str, int, int]], types: Mapping[int, str], joins: str) -> ManyRows:
    where = next((word for word in words if word[0] == "WHERE"), None)
    if where is None:
        raise Refused("It has no WHERE, so each execution changes all rows.")
    returning = next((word[1] for word in words if word[0] == "RETURNING"), len(text))
    keys = frozenset(numbers_in(text[where[1] : returning]))
    if not keys:
        raise Refused("Its WHERE has no parameter, so each execution changes the same rows.")
    alias, source = _source(text, types)
    joined = any(word[0] == joins and word[1] < where[1] for word in words)
    head, tail = text[: where[1]].rstrip(), text[where[1] :]
    link = "," if joined else f"\n{joins}"
    sql = f"{_taken(head, alias)}{link} {source}\n{_taken(tail, alias)}"
    assumed = [_ONCE]
    if re.search(r"(\w+)\s*=\s*(?:\w+\.)?\1\s*[+-]", masked(head)):
        assumed.append("What is added to the same row several times has to be summed up first.")
    return ManyRows(sql, keys, assumed=tuple(assumed))


def _selects(text: str, words: list[tuple[str, int, int]], types: Mapping[int, str]) -> Iterator[ManyRows]:
    plain = masked(text)
    if re.search(r"\bFOR\s+(?:NO\s+KEY\s+|KEY\s+)?(?:UPDATE|SHARE)\b", plain, re.IGNORECASE):
        raise Refused("It locks rows, and one statement would lock all of them from the beginning on.")
    simple = _lookup(text, words)
    if simple is not None:
        yield simple
    alias, source = _source(text, types)
    single = _free("one", text)
    yield ManyRows(
        f"SELECT {alias}.*, {single}.*\nFROM {source}\n"
        f"CROSS JOIN LATERAL (\n{_taken(text, alias)}\n) AS {single}",
        added=len(numbers_in(text)),
    )


def _lookup(text: str, words: list[tuple[str, int, int]]) -> ManyRows | None:
    """Return a lookup by the only parameter that compares it with an array; None if it is more than that."""
    plain = masked(text)
    names = {word[0] for word in words}
    places = [match for match in _KEY.finditer(text) if plain[match.start()] != " "]
    if names & _PER_STATEMENT or _AGGREGATE.search(plain) or len(places) != 1 or plain.count("$") != 1:
        return None
    (place,) = places
    where = next((word for word in words if word[0] == "WHERE"), None)
    came = next((word for word in words if word[0] == "FROM"), None)
    at_top = any(word[1] <= place.start("column") < word[2] for word in words)
    if where is None or came is None or place.start() < where[1] or not at_top:
        return None
    number, column = int(place["number"]), place["column"]
    listed = text[words[0][2] : came[1]]
    name = column.rpartition(".")[2]
    known = re.search(rf"(?:^|[\s,.])(?:{re.escape(name)}\s*(?:,|$)|\*\s*(?:,|$))", listed.strip(), re.I)
    added = "" if known else f" {column},"
    sql = (
        f"{text[: words[0][2]]}{added}{text[words[0][2] : place.start()]}{column} = ANY (${number})"
        f"{text[place.end() :]}"
    )
    return ManyRows(sql, frozenset([number]), 1 if added else 0, (_ONCE,))


def _source(text: str, types: Mapping[int, str]) -> tuple[str, str]:
    """Return the alias of the rows of the arrays, and the table expression."""
    alias = _free("batch", text)
    numbers = sorted(numbers_in(text))
    arrays = ", ".join(f"${number}::{types[number]}[]" for number in numbers)
    return alias, f"unnest({arrays}) AS {alias} ({', '.join(f'p{number}' for number in numbers)})"


def _taken(text: str, alias: str) -> str:
    return renumbered(text, {number: f"{alias}.p{number}" for number in numbers_in(text)})


def _free(name: str, text: str) -> str:
    taken = {word.lower() for word in re.findall(r"\w+", text)}
    return (
        name
        if name not in taken
        else next(free for number in range(2, 1000) if (free := f"{name}{number}") not in taken)
    )


def _top_words(text: str) -> Iterator[tuple[str, int, int]]:
    depth = 0
    for match in _WORD.finditer(masked(text)):
        if match[0] in "()":
            depth += 1 if match[0] == "(" else -1
        elif depth == 0:
            yield match[0].upper(), match.start(), match.end()


def _closing(text: str, opens: int) -> int:
    depth = 0
    for place, sign in enumerate(masked(text)[opens:], start=opens):
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if depth == 0:
            return place
    raise Refused("The statement is not complete.")


def _split(row: str) -> Iterator[str]:
    depth = begun = 0
    for place, sign in enumerate(masked(row)):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            yield row[begun:place]
            begun = place + 1
    yield row[begun:]
