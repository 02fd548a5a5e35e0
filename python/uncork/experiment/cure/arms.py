"""Turn the candidates of a finding into variants of an experiment, or say why a copy proves none. Pure.

An experiment begins with a copy of the database, which is vacuumed for every variant and keeps the planner's
statistics. A candidate whose effect such a copy cannot show is refused with the reason, because its verdict
would mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from uncork.experiment.cure.setups import (
    NEW_COPY,
    CopyKeeps,
    Refused,
    settings_in,
    setup_script,
    table_named,
    with_captured_parameters,
)
from uncork.experiment.spec.sqltext import statements_in
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.model.records import build_from
from uncork.model.results.cure import Net
from uncork.model.units import count_words

MOST_ARMS: Final = 3
"""Changes tried for one finding. Each more costs as much time as the others, and widens all intervals."""

CONTROL: Final = "control"
"""The name and the kind of the control."""

_NAME: Final = 40
_VERB: Final = re.compile(r"\s*\(*\s*(\w+)")
_PARAMETER_TYPE: Final = re.compile(r"(\$\d+)\s*::\s*(?:numeric|double precision|real|text)\b")
_MEMORY: Final = "maintenance_work_mem"
_TARGET: Final = "default_statistics_target"
"""The setting that only ANALYZE uses."""


@dataclass(frozen=True, slots=True)
class Arm:
    """A change as a variant of an experiment.

    `kind`, `text`, `sql`, `undo` and `against` are those of the candidate. `setup` is SQL after the data was
    copied, `settings` are those of the variant's database, `statements` are the texts that it sends instead
    of captured ones, by template, and `replaced` the texts that it replaces, if the captured ones lack a type
    that the client gives to a parameter. `tables` are the tables that it changes, empty if unknown, and
    `templates` the statements of its finding. `check` is a query whose rows the change must leave the same;
    with `other_counts`, its statements may report fewer changed rows.
    """

    name: str
    kind: str
    text: str
    sql: str
    undo: str
    setup: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    statements: Mapping[int, str] = field(default_factory=dict)
    replaced: Mapping[int, str] = field(default_factory=dict)
    against: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    templates: tuple[int, ...] = ()
    check: str = ""
    other_counts: bool = False

    def touches(self, statement: CapturedStatement) -> bool:
        """Return whether the change can change the time of a statement.

        A statement that changes rows executes triggers and checks foreign keys, which read tables that its
        text does not name. It therefore counts as touched unless the change is the text of other statements.
        """
        if self.statements and not self.setup and not self.settings:
            return statement.template in self.statements
        if self.settings or not self.tables or statement.changes or statement.template in self.templates:
            return True
        return bool(set(self.tables) & set(statement.tables))


def arms_of(
    finding: Finding, workload: CapturedWorkload, keeps: CopyKeeps = NEW_COPY
) -> tuple[tuple[Arm, ...], str]:
    """Return the changes of a finding that a copy can prove, the best first, and a reason if there are none.

    `keeps` is what the copy has as the source has it. The reason is that of the finding's best candidate. At
    most `MOST_ARMS` are returned.
    """
    found: list[Arm] = []
    reasons: list[str] = []
    for candidate in finding.candidates:
        try:
            arm = _arm(finding, candidate, workload, keeps)
        except Refused as refused:
            reasons.append(str(refused))
            continue
        effect = arm.setup, arm.settings, arm.statements
        if not any(effect == (other.setup, other.settings, other.statements) for other in found):
            found.append(arm)
    if found:
        return tuple(unique_names(found[:MOST_ARMS])), ""
    return (), reasons[0] if reasons else _instead("The finding proposes no change.", finding)


def as_sent(statements: Sequence[CapturedStatement], arms: Sequence[Arm]) -> tuple[CapturedStatement, ...]:
    """Return statements with the types that clients give to their parameters, as far as changes name them."""
    texts = {number: text for arm in arms for number, text in arm.replaced.items()}
    return tuple(
        replace(statement, sql=texts.get(statement.template, statement.sql)) for statement in statements
    )


def control(workload: CapturedWorkload, arms: Sequence[Arm]) -> Arm:
    """Return a change that people try and that cannot help: a control that must not be called cured.

    ``maintenance_work_mem`` is used by VACUUM, CREATE INDEX and ALTER TABLE ADD FOREIGN KEY only, and no
    captured statement is one of these. ``work_mem`` would be no control, because it helps statements that
    sort or hash more than it allows.
    """
    text = "Raise maintenance_work_mem, which these statements do not use."
    return unique_names([*arms, setting_arm(CONTROL, CONTROL, text, _MEMORY, "256MB", workload)])[-1]


def setting_arm(name: str, kind: str, text: str, setting: str, value: str, workload: CapturedWorkload) -> Arm:
    """Return a change of one setting, for all statements of a workload."""
    return Arm(
        name=name,
        kind=kind,
        text=text,
        sql=f"SET {setting} = '{value}';",
        undo=f"RESET {setting};",
        settings={setting: value},
        templates=tuple(statement.template for statement in workload.statements),
    )


def unique_names(arms: Sequence[Arm]) -> list[Arm]:
    """Return the changes with names that differ, as the variants of one experiment need."""
    taken: set[str] = set()
    found = []
    for arm in arms:
        name, number = arm.name, 1
        while name.lower() in taken:
            number += 1
            name = f"{arm.name[: _NAME - 1 - len(str(number))]}-{number}"
        taken.add(name.lower())
        found.append(replace(arm, name=name))
    return found


def _arm(finding: Finding, candidate: Candidate, workload: CapturedWorkload, keeps: CopyKeeps) -> Arm:
    if candidate.kind == "client":
        raise Refused(_instead("Only the application can make this change.", finding))
    if not candidate.sql.strip():
        raise Refused(_instead("Only a person can write this change.", finding))
    if not candidate.same_answers:
        raise Refused("It can return other rows, so only a person can decide about it.")
    if candidate.unprovable:
        raise Refused(candidate.unprovable)
    arm = build_from(Arm, candidate, name=_slug(finding, candidate), templates=finding.templates)
    if candidate.kind == "statement":
        statements = _rewritten(finding, candidate, workload)
        (captured,) = (statement for statement in workload.statements if statement.template in statements)
        typed = _typed(finding, candidate, captured)
        replaced = {captured.template: typed} if typed else {}
        return replace(
            arm, statements=statements, replaced=replaced, undo=candidate.undo or f"{captured.sql};"
        )
    if candidate.kind == "setting":
        settings = settings_in(candidate.sql)
        return replace(arm, settings=settings, setup="ANALYZE;" if _TARGET in settings else "")
    billed = finding.bill is not None and finding.bill.seconds_per_hour > 0
    sql, undo = candidate.on_copy or candidate.sql, candidate.undo or candidate.on_copy
    setup, tables = setup_script(sql, undo=undo, billed=billed, keeps=keeps)
    known = {table for statement in workload.statements for table in statement.tables}
    if not tables and re.match(r"\s*(?:DROP|REINDEX)\s+INDEX\b", candidate.sql, re.IGNORECASE):
        tables = tuple(text for text in finding.objects if text in known)
    arm = replace(arm, setup=setup, tables=tables)
    if not any(arm.touches(statement) for statement in workload.statements):
        raise Refused(f"No captured statement uses {' or '.join(tables) or 'what it changes'}.")
    return arm


def _rewritten(finding: Finding, candidate: Candidate, workload: CapturedWorkload) -> dict[int, str]:
    """Return the text that replaces the finding's first statement, by template. Raises Refused."""
    captured = {statement.template: statement for statement in workload.statements}
    one = captured.get(finding.templates[0]) if finding.templates else None
    if one is None:
        raise Refused("The statement was not captured with its values, so its new text cannot be compared.")
    text = candidate.sql.strip().rstrip(";").rstrip()
    text = with_captured_parameters(text, finding.statement, one.sql)
    if _verb(text) != _verb(one.sql):
        raise Refused("The new text is a statement of another kind, so their answers cannot be compared.")
    return {one.template: text}


def _typed(finding: Finding, candidate: Candidate, captured: CapturedStatement) -> str:
    try:
        text = with_captured_parameters(candidate.undo.strip().rstrip(";"), finding.statement, captured.sql)
    except Refused:
        return ""
    plain, same = (_PARAMETER_TYPE.sub(r"\1", " ".join(sql.split())) for sql in (text, captured.sql))
    return text if plain == same and text != captured.sql else ""


def _verb(sql: str) -> str:
    found = _VERB.match(re.sub(r"^(?:\s*(?:/\*.*?\*/|--[^\n]*\n))+", "", sql, flags=re.DOTALL))
    word = found[1].upper() if found else ""
    return "SELECT" if word in {"WITH", "VALUES", "TABLE"} else word


def _instead(reason: str, finding: Finding) -> str:
    return f"{reason} {finding.proof}".strip()


def _slug(finding: Finding, candidate: Candidate) -> str:
    """Return a name for a change: the index that it creates, else the class of the finding and its object."""
    index = re.search(
        r'\bINDEX\s+(?:CONCURRENTLY\s+)?(?:IF\s+NOT\s+EXISTS\s+)?"?(\w+)"?\s+ON\b', candidate.sql
    )
    words = index[1] if index else "-".join([finding.rule, *finding.objects[:1]])
    name = re.sub(r"[^A-Za-z0-9_]+", "-", words).strip("-")[:_NAME].strip("-")
    if name[:1].isalpha():
        return name if name.lower() not in {CONTROL, "current"} else f"{name}-change"
    return f"change-{name}"[:_NAME].strip("-")


# ---- several changes as one, and changes that people often try first ----


SET: Final = "set"
"""The name and the kind of several changes together."""

_INDEX: Final = re.compile(
    r"CREATE\s+(?:UNIQUE\s+)?INDEX\b.*?\sON\s+(?:ONLY\s+)?(?P<table>[^\s(]+)\s*"
    r"(?:USING\s+(?P<method>\w+)\s*)?\((?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_Index = tuple[str, str, tuple[str, ...]]


def combine(proven: Mapping[str, Net], arms: Sequence[Arm]) -> tuple[Arm, ...]:
    """Return the proven changes that go together, the best first."""
    ranked = sorted(
        (arm for arm in arms if arm.name in proven), key=lambda arm: (-proven[arm.name].low, arm.name)
    )
    found: list[Arm] = []
    for arm in ranked:
        if all(compatible(arm, other) for other in found):
            found.append(arm)
    return tuple(found)


def compatible(arm: Arm, other: Arm) -> bool:
    """Return whether two changes can be made together.

    They cannot if both rewrite a statement, give a setting two values, or execute the same SQL, and if the
    keys of an index of one are the first keys of an index of the other.
    """
    if set(arm.statements) & set(other.statements):
        return False
    if any(other.settings.get(name, value) != value for name, value in arm.settings.items()):
        return False
    first, second = statements_in(arm.setup), statements_in(other.setup)
    if set(map(_plain, first)) & set(map(_plain, second)) - _shareable(first):
        return False
    return not any(_prefix(a, b) for a in _indexes(first) for b in _indexes(second))


def joined(arms: Sequence[Arm], name: str = SET) -> Arm:
    """Return several changes as one, which is undone in reverse order."""
    tables: tuple[str, ...] = ()
    if all(arm.tables or not arm.setup for arm in arms):
        tables = tuple(dict.fromkeys(table for arm in arms for table in arm.tables))
    return Arm(
        name=name,
        kind=SET,
        text=" ".join(arm.text for arm in arms),
        sql="\n".join(arm.sql for arm in arms),
        undo="\n".join(arm.undo for arm in reversed(arms)),
        setup="\n".join(arm.setup for arm in arms if arm.setup),
        settings={setting: value for arm in arms for setting, value in arm.settings.items()},
        replaced={number: text for arm in arms for number, text in arm.replaced.items()},
        statements={number: text for arm in arms for number, text in arm.statements.items()},
        against=tuple(dict.fromkeys(reason for arm in arms for reason in arm.against)),
        tables=tables,
        templates=tuple(
            dict.fromkeys(number for arm in arms for number in (*arm.templates, *arm.statements))
        ),
        check="\nUNION ALL ".join(dict.fromkeys(arm.check for arm in arms if arm.check)),
    )


def leave_one_out(arms: Sequence[Arm]) -> dict[str, Arm]:
    """Return the set without each of its members, by the member's name; nothing for a single change."""
    if len(arms) < 2:
        return {}
    rest = [
        replace(joined([other for other in arms if other is not arm]), name=f"without-{arm.name}"[:40])
        for arm in arms
    ]
    return {arm.name: unique_name for arm, unique_name in zip(arms, unique_names(rest), strict=True)}


def replaceable(planned: Mapping[str, frozenset[int]]) -> frozenset[str]:
    """Return the changes that another one may make superfluous; the others need not be left out to see it.

    `planned` are the statements whose plan each change alters, by the change's name. A change that was proven
    alone and alters plans that no other one alters contributes their gain. If it alters none, as an index of
    a foreign key that only a trigger uses, nothing is known.
    """
    return frozenset(
        name
        for name, own in planned.items()
        if not own or any(own & other for each, other in planned.items() if each != name)
    )


def _shareable(statements: Sequence[str]) -> set[str]:
    """Return the statements that both changes may execute, because the second time changes nothing."""
    form = re.compile(r"CREATE\s+EXTENSION\s+IF\s+NOT|ANALYZE\b", re.IGNORECASE)
    return {_plain(statement) for statement in statements if form.match(statement)}


def _plain(sql: str) -> str:
    return " ".join(sql.split()).lower()


def _indexes(statements: Sequence[str]) -> Iterator[_Index]:
    for statement in statements:
        match = _INDEX.fullmatch(statement)
        if match is not None:
            method = (match["method"] or "btree").lower()
            yield table_named(match["table"]), method, tuple(_keys(match["rest"]))


def _prefix(index: _Index, other: _Index) -> bool:
    length = min(len(index[2]), len(other[2]))
    return index[:2] == other[:2] and index[2][:length] == other[2][:length]


def _keys(rest: str) -> Iterator[str]:
    depth, key = 0, ""
    for part in re.findall(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|.", rest, re.DOTALL):
        if depth == 0 and part in {",", ")"}:
            yield _plain(key)
            key = ""
            if part == ")":
                return
            continue
        depth += {"(": 1, ")": -1}.get(part, 0)
        key += part


# ---- changes that people often try first ----


USUAL: Final = "usual"
"""The kind of these changes."""
_SORT_MEMORY: Final = "work_mem"
_MUCH: Final = "256MB"


def usual_arms(
    chosen: Sequence[Arm], workload: CapturedWorkload, columns: Mapping[str, Sequence[str]]
) -> tuple[Arm, ...]:
    """Return the usual remedies that differ from what was chosen.

    `columns` are the columns of tables that can have a B-tree index, as SQL; an index on each is tried on the
    tables of the chosen indexes.
    """
    found = []
    if not any(_SORT_MEMORY in arm.settings for arm in chosen):
        text = f"More memory for each sort and hash (work_mem = {_MUCH})."
        found.append(setting_arm("more-memory", USUAL, text, _SORT_MEMORY, _MUCH, workload))
    tables = {table for arm in chosen if arm.kind == "index" for table in arm.tables if columns.get(table)}
    if tables:
        wanted = [(table, column) for table in sorted(tables) for column in columns[table]]
        script = "\n".join(f"CREATE INDEX ON {table} ({column});" for table, column in wanted)
        many = count_words(len(wanted), "column")
        found.append(
            Arm(
                name="index-on-each-column",
                kind=USUAL,
                text=f"An index on each of the {many} of {' and '.join(sorted(tables))}.",
                sql=script,
                undo="",
                setup=script,
                tables=tuple(sorted(tables)),
                templates=tuple(statement.template for statement in workload.statements),
            )
        )
    return tuple(found)
