"""Join changes that were proven one by one into a set, and take single ones out again. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from uncork.experiment.cure.arms import Arm, setting_arm, unique_names
from uncork.experiment.cure.setups import table_named
from uncork.experiment.spec.sqltext import statements_in
from uncork.model.database.workload import CapturedWorkload
from uncork.model.results.cure import Net
from uncork.model.units import count_words

SET: Final = "set"
"""The name and the kind of several changes together."""

_INDEX: Final = re.compile(
    r"CREATE\s+(?:UNIQUE\s+)?INDEX\b.*?\sON\s+(?:ONLY\s+)?(?P<table>[^\s(]+)\s*"
    r"(?:USING\s+(?P<method>\w+)\s*)?\((?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_Index = tuple[str, str, tuple[str, ...]]


def combine(proven: Mapping[str, Net], arms: Sequence[Arm]) -> tuple[Arm, ...]:
    """Return the proven changes that go together, each compatible with those before it, the best first."""
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
_MEMORY: Final = "work_mem"
_MUCH: Final = "256MB"


def usual_arms(
    chosen: Sequence[Arm], workload: CapturedWorkload, columns: Mapping[str, Sequence[str]]
) -> tuple[Arm, ...]:
    """Return the usual remedies that differ from what was chosen.

    `columns` are the columns of tables that can have a B-tree index, as SQL; an index on each is tried on the
    tables of the chosen indexes.
    """
    found = []
    if not any(_MEMORY in arm.settings for arm in chosen):
        text = f"More memory for each sort and hash (work_mem = {_MUCH})."
        found.append(setting_arm("more-memory", USUAL, text, _MEMORY, _MUCH, workload))
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
