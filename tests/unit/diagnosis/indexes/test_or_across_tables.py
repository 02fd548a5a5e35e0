"""An OR over columns of two tables: named with both, rewritten with the same rows, left alone if cheap."""

import pytest

from fakes.planned_evidence import plan
from fakes.table_evidence import column, evidence, index, statement, table
from uncork.diagnosis.findings import find_findings
from uncork.diagnosis.rules.indexes import index_not_usable
from uncork.report.findings import finding_headline
from uncork.report.headline import fits

COLUMNS = (
    column("contacts", "id"),
    column("contacts", "email", "text"),
    column("contacts", "country", distinct=3),
    column("cases", "id", "bigint"),
    column("cases", "contact_id", distinct=80_000),
    column("cases", "reference", "text"),
    column("cases", "opened", "date", distinct=900),
)
KEYS = (
    index("CREATE UNIQUE INDEX contacts_pkey ON contacts (id)"),
    index("CREATE UNIQUE INDEX cases_pkey ON cases (id)"),
)
JOIN_KEY = index("CREATE INDEX cases_contact ON cases (contact_id)")
SEARCHED = (
    index("CREATE INDEX contacts_email ON contacts (email)"),
    index("CREATE INDEX cases_reference ON cases (reference)"),
)
FROM = "FROM cases k JOIN contacts c ON c.id = k.contact_id"
SQL = f"SELECT k.id, c.email {FROM} WHERE c.email = $1 OR k.reference = $2"
PLAN = """Hash Join  (cost=2540.00..6030.00 rows=3 width=20)
  Hash Cond: (k.contact_id = c.id)
  Join Filter: ((c.email = $1) OR (k.reference = $2))
  ->  Seq Scan on cases k  (cost=0.00..2700.00 rows=160000 width=20)
  ->  Hash  (cost=1540.00..1540.00 rows=80000 width=16)
        ->  Seq Scan on contacts c  (cost=0.00..1540.00 rows=80000 width=16)
"""


def found(sql=SQL, *, indexes=(*SEARCHED, JOIN_KEY), planned="", sizes=(80_000, 160_000), **counts):
    known = {"blocks": 600 * 1_900, "rows": 600 * 2, **counts}
    plans = (plan(planned),) if planned else ()
    contacts, cases = sizes
    seen = evidence(
        [statement(0, sql, plans=plans, **known)],
        [table("contacts", contacts, 740), table("cases", cases, 1_200)],
        COLUMNS,
        [*KEYS, *indexes],
    )
    return [one for one in index_not_usable.find_unusable_indexes(seen) if " OR " in one.headline], seen


@pytest.mark.parametrize("planned", ["", PLAN])
def test_the_finding_names_both_columns_and_rewrites_the_statement(planned):
    (one,), seen = found(planned=planned)
    assert one.headline == (
        "No index serves the OR over contacts.email and cases.reference, so calls join whole tables"
    )
    assert fits(finding_headline(one))
    assert one.objects == ("contacts", "cases", "email", "reference")
    (change,) = one.candidates
    assert change.same_answers and change.undo == SQL
    assert change.sql == (
        f"SELECT k.id, c.email {FROM} WHERE (c.email = $1)\nUNION ALL\n"
        f"SELECT k.id, c.email {FROM} WHERE (k.reference = $2) AND (c.email = $1) IS NOT TRUE"
    )
    tested = "a Hash Join of 160 000 and 80 000 rows, which tests ((c.email = $1) OR (k.reference = $2))"
    assert any(tested in each for each in one.evidence) == bool(planned)
    assert "Each of 600 calls reads 1 900 blocks and returns 2 rows." in one.evidence
    assert [each.rule for each in find_findings(seen)] == ["index-not-usable"]


def test_the_missing_indexes_of_each_part_and_of_its_join_are_candidates():
    (one,), _ = found(indexes=())
    created = [each.sql.rpartition(" ON ")[2] for each in one.candidates[1:]]
    assert created == ["contacts (email);", "cases (contact_id);", "cases (reference);"]
    assert "Without the missing indexes" in one.candidates[0].against[1]


@pytest.mark.parametrize(
    "sql",
    [
        f"{SQL} ORDER BY k.opened LIMIT $3",
        f"SELECT count(*) {FROM} WHERE c.email = $1 OR k.reference = $2",
        f"SELECT DISTINCT c.id {FROM} WHERE c.email = $1 OR k.reference = $2",
    ],
)
def test_a_statement_that_does_more_with_the_rows_has_no_rewritten_text(sql):
    (one,), _ = found(sql)
    assert one.candidates[0].sql == "" and "around it" in one.candidates[0].text


@pytest.mark.parametrize(
    ("sql", "facts"),
    [
        pytest.param(SQL, {"blocks": 600 * 12}, id="it reads little"),
        pytest.param(SQL, {"rows": 600 * 70_000}, id="it keeps most rows"),
        pytest.param(SQL, {"sizes": (900, 2_000)}, id="the tables are small"),
        pytest.param(SQL, {"calls": 3}, id="it was called by chance"),
        pytest.param(f"SELECT * {FROM} WHERE c.country = $1 OR k.reference = $2", {}, id="many rows of one"),
        pytest.param(f"SELECT * {FROM} WHERE c.email = $1 OR k.opened > $2", {}, id="a range"),
        pytest.param(f"{SQL} LIMIT 5", {}, id="it stops early"),
        pytest.param(f"SELECT * {FROM} WHERE c.email = $1 AND k.reference = $2", {}, id="no OR"),
        pytest.param("SELECT * FROM cases WHERE id = $1 OR reference = $2", {}, id="one table"),
        pytest.param("SELECT * FROM cases k, contacts c WHERE c.email = $1 OR k.id = $2", {}, id="no join"),
        pytest.param(
            SQL,
            {"planned": PLAN.replace("Join Filter: ((c.email = $1) OR (k.reference = $2))", "Rows: 1")},
            id="the plan tests it elsewhere",
        ),
    ],
)
def test_nothing_is_found_where_parts_would_not_be_faster(sql, facts):
    assert found(sql, **facts)[0] == []
