"""Add the conditions of row security to the shape of a statement. Pure.

See "Row Security Policies" and "Rules and Privileges" in PostgreSQL's manual: the server tests the condition
of a policy before conditions of the statement whose operators are not LEAKPROOF, so no index serves these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from uncork.model.database.catalogue import Catalogue, PolicyFacts
from uncork.model.database.names import sql_name
from uncork.model.database.statement import Predicate, StatementShape, TableUse
from uncork.profile.statement_shape import statement_shape

_COMMANDS: Final = {kind: (kind, "select") for kind in ("update", "delete")}
"""Commands whose policies apply to the table that a statement changes. An INSERT searches no rows."""
_EVERY_ROW: Final = frozenset({"", "true", "(true)"})
_COMPARISONS: Final = frozenset({"=", "<", "<=", ">", ">=", "in", "between"})
_TESTS: Final = frozenset({"is null", "is not null", "is true", "is false"})
_LEAKPROOF: Final = frozenset(
    {
        *("smallint", "integer", "bigint", "real", "double precision", "money", "oid", "boolean", "uuid"),
        *("text", "character varying", "character", '"char"', "name", "bytea", "date", "interval"),
        *("timestamp without time zone", "timestamp with time zone", "time without time zone"),
        *("time with time zone", "inet", "cidr", "macaddr"),
    }
)
"""Types whose comparisons are LEAKPROOF; those of numeric, of enumerations, arrays and documents are not."""


def with_policies(
    shape: StatementShape, role: str, catalogue: Catalogue
) -> tuple[StatementShape, tuple[PolicyFacts, ...]]:
    """Return the shape with the conditions that row security adds for a role, and the policies that add them.

    If several permissive policies apply, any of them is enough, and none of their conditions is added.
    """
    predicates = list(shape.predicates)
    applied: dict[PolicyFacts, None] = {}
    for use in shape.tables:
        found = _applying(use, shape.kind, role, catalogue.policies)
        if not found:
            continue
        applied.update(dict.fromkeys(found))
        columns = {name: [fact.name for fact in facts] for name, facts in catalogue.columns.items()}
        for place, predicate in enumerate(predicates):
            place_of_use = (use.name, use.level) == (predicate.table, predicate.level)
            own = place_of_use and predicate.alias in ("", use.alias)
            if own and not _is_leakproof(predicate, catalogue):
                predicates[place] = replace(predicate, barred=True)
        for policy in found:
            group = max((predicate.group for predicate in predicates), default=0)
            predicates += _conditions(policy, use, columns, group)
    return replace(shape, predicates=tuple(predicates)), tuple(applied)


def _applying(use: TableUse, kind: str, role: str, policies: Sequence[PolicyFacts]) -> list[PolicyFacts]:
    """Return the policies whose conditions must all hold for the rows of one use of a table."""
    commands = _COMMANDS.get(kind, ()) if use.changed else ("select",)
    found: dict[PolicyFacts, None] = {}
    for command in commands if use.kind == "table" else ():
        own = [policy for policy in policies if policy.table == use.name and role in policy.roles]
        mine = [policy for policy in own if policy.command in (command, "all")]
        permissive = [policy for policy in mine if policy.permissive]
        alone = permissive if len(permissive) == 1 else []
        found.update(dict.fromkeys([*alone, *(policy for policy in mine if not policy.permissive)]))
    return [policy for policy in found if policy.condition not in _EVERY_ROW]


def _conditions(
    policy: PolicyFacts, use: TableUse, columns: Mapping[str, Sequence[str]], group: int
) -> Iterator[Predicate]:
    """Yield the predicates of a policy as those of a statement. `group` is the number of its ORs so far."""
    if policy.volatile:
        return
    shape = statement_shape(f"SELECT FROM {sql_name(use.name)} WHERE {policy.condition}", columns)
    for predicate in () if shape is None else shape.predicates:
        if predicate.table == use.name and predicate.level == 0:
            own_group = predicate.group + group if predicate.alternative else 0
            yield replace(predicate, alias=use.alias, level=use.level, group=own_group)


def _is_leakproof(predicate: Predicate, catalogue: Catalogue) -> bool:
    """Return whether a comparison shows nothing of the rows that it discards, as far as its types show."""
    if not predicate.column or predicate.cast:
        return False
    if predicate.operator in _TESTS:
        return True
    facts = catalogue.column(predicate.table, predicate.column)
    if facts is None:
        return predicate.operator in _COMPARISONS
    mixed = facts.type == "date" and predicate.value_cast.startswith("timestamp")
    mixed |= facts.type.startswith("timestamp") and predicate.value_cast not in ("", facts.type)
    return predicate.operator in _COMPARISONS and facts.type in _LEAKPROOF and not mixed
