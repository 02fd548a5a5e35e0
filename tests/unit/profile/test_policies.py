"""What row security adds to a statement: for which roles and commands, and which conditions it bars."""

import pytest

from uncork.model.database.catalogue import Catalogue, ColumnFacts, PolicyFacts
from uncork.profile.shapes.policies import with_policies
from uncork.profile.statement_shape import statement_shape

TYPES = {
    "id": "bigint",
    "tenant": "uuid",
    "owner": "integer",
    "total": "numeric(10,2)",
    "state": "order_state",
    "name": "text",
    "due": "date",
    "tags": "text[]",
}
TENANT = "(tenant = (current_setting('app.tenant'::text))::uuid)"


def columns(table):
    return tuple(
        ColumnFacts(table, 1, number, name, kind.partition("(")[0], kind, False, "", "", "")
        for number, (name, kind) in enumerate(TYPES.items(), 1)
    )


COLUMNS = {"core.invoice": columns("core.invoice"), "line": columns("line")}


def policy(condition=TENANT, command="all", *, name="own", permissive=True, roles=("app",), **facts):
    known = {"table": "core.invoice", "table_oid": 1, "volatile": False}
    return PolicyFacts(
        name,
        command=command,
        permissive=permissive,
        condition=condition,
        roles=roles,
        **{**known, **facts},
    )


def secured(sql, *policies, role="app"):
    """Return the conditions that policies add as text, the names of these policies, and the barred ones."""
    catalogue = Catalogue(columns=COLUMNS, policies=policies)
    before = statement_shape(sql, {name: [one.name for one in found] for name, found in COLUMNS.items()})
    shape, applied = with_policies(before, role, catalogue)
    added = shape.predicates[len(before.predicates) :]
    return (
        [f"{one.alias}.{one.column} {one.operator}" for one in added],
        [one.name for one in applied],
        [one.column or one.expression for one in shape.predicates if one.barred],
    )


FIND = "SELECT * FROM core.invoice i WHERE i.owner = $1"


def test_the_condition_of_the_only_policy_is_added_with_the_alias_of_the_table():
    assert secured(FIND, policy()) == (["i.tenant ="], ["own"], [])


@pytest.mark.parametrize("role", ["postgres", ""])
def test_a_role_that_bypasses_row_security_reads_all_rows(role):
    assert secured(FIND, policy(), role=role) == ([], [], [])


def test_a_role_that_no_policy_allows_anything_adds_nothing():
    assert secured(FIND, policy(roles=("other",))) == ([], [], [])


def test_several_permissive_policies_are_alternatives_so_none_is_added():
    every = policy("(owner = 1)", name="other")
    assert secured(FIND, policy(), every) == ([], [], [])


def test_restrictive_policies_hold_beside_the_others():
    strict = policy("(owner > 0)", name="strict", permissive=False)
    assert secured(FIND, policy(), strict) == (["i.tenant =", "i.owner >"], ["own", "strict"], [])
    assert secured(FIND, policy(), policy("(id = 1)"), strict) == (["i.owner >"], ["strict"], [])


def test_a_policy_that_shows_all_rows_changes_nothing():
    assert secured(FIND, policy("true")) == ([], [], [])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM core.invoice", ["invoice.tenant ="]),
        ("UPDATE core.invoice SET owner = 1 WHERE id = $1", ["invoice.owner =", "invoice.tenant ="]),
        ("DELETE FROM core.invoice WHERE id = $1", ["invoice.tenant ="]),
        ("INSERT INTO core.invoice (id) VALUES ($1)", []),
        ("INSERT INTO line SELECT * FROM core.invoice", ["invoice.tenant ="]),
        ("SELECT * FROM line WHERE id = $1", []),
        ("SELECT * FROM line WHERE id IN (SELECT id FROM core.invoice s)", ["s.tenant ="]),
        ("SELECT 1 FROM core.invoice a JOIN core.invoice b USING (id)", ["a.tenant =", "b.tenant ="]),
    ],
)
def test_policies_apply_to_the_commands_that_they_are_for(sql, expected):
    policies = (policy(command="select"), policy("(owner = 7)", "update", name="change"))
    assert secured(sql, *policies)[0] == expected


def test_an_or_of_a_policy_has_a_number_of_its_own():
    sql = "SELECT * FROM core.invoice i WHERE i.owner = $1 OR i.id = $2"
    catalogue = Catalogue(columns=COLUMNS, policies=(policy("((tenant IS NULL) OR (owner = 3))"),))
    names = {name: [one.name for one in found] for name, found in COLUMNS.items()}
    shape, _ = with_policies(statement_shape(sql, names), "app", catalogue)
    assert [one.group for one in shape.predicates] == [1, 1, 2, 2]


def test_a_policy_with_a_subquery_adds_only_the_condition_of_its_table():
    condition = "(tenant IN ( SELECT line.tenant\n   FROM line\n  WHERE (line.owner = 1)))"
    assert secured(FIND, policy(condition)) == (["i.tenant in"], ["own"], [])


def test_no_index_serves_the_condition_of_a_volatile_function():
    assert secured(FIND, policy("(tenant = current_tenant())", volatile=True)) == ([], ["own"], [])


@pytest.mark.parametrize(
    ("condition", "barred"),
    [
        ("owner = $1", []),
        ("owner IN ($1, $2) AND due BETWEEN $3 AND $4 AND name IS NULL", []),
        ("total = $1", ["total"]),
        ("state = $1", ["state"]),
        ("name LIKE $1", ["name"]),
        ("lower(name) = $1", ["lower(name)"]),
        ("tags @> $1", ["tags"]),
        ("due < $1::timestamp", ["due"]),
        ("owner::text = $1", ["owner"]),
    ],
)
def test_conditions_that_are_not_leakproof_are_barred(condition, barred):
    assert secured(f"SELECT * FROM core.invoice WHERE {condition}", policy())[2] == barred
    assert secured(f"SELECT * FROM core.invoice WHERE {condition}")[2] == []
