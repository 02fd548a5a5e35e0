"""Which index is missing: its columns, their order, its kind; and when none is."""

from dataclasses import replace

import pytest

from fakes.findings import compare_findings
from fakes.goldens import compare_answers
from fakes.table_evidence import column, evidence, index, scan, statement, table
from uncork.diagnosis.evidence import known_shape
from uncork.diagnosis.findings import find_findings
from uncork.diagnosis.rules.indexes import missing_index
from uncork.model.database.catalogue import PolicyFacts, ViewFacts
from uncork.model.database.plan import StatementPlan
from uncork.profile.shapes.policies import with_policies
from uncork.report.findings import finding_headline
from uncork.report.headline import fits

ITEM = (
    column("item", "id", "bigint"),
    column("item", "customer", distinct=20_000),
    column("item", "region", distinct=4),
    column("item", "state", "text", distinct=2, common=(("done", 0.99), ("new", 0.01))),
    column("item", "created", "timestamp without time zone"),
    column("item", "sent", "timestamp without time zone", null_fraction=0.01),
    column("item", "gone", "timestamp without time zone", null_fraction=0.98),
    column("item", "amount", distinct=900),
    column("item", "name", "text", width=20.0),
    column("item", "payload", "jsonb", width=200.0),
    column("item", "tags", "integer[]", width=40.0),
    column("item", "words", "tsvector", width=80.0),
    column("item", "network", "cidr", width=7.0),
    column("item", "period", "tstzrange", width=20.0),
)
PRIMARY = index("CREATE UNIQUE INDEX item_pkey ON item (id)")


def found(sql, *, indexes=(), facts=None, columns=ITEM, **counts):
    seen = evidence(
        [statement(0, sql, **counts)], [table("item", **(facts or {}))], columns, [PRIMARY, *indexes]
    )
    return list(missing_index.find_missing_indexes(seen))


def created(sql, **options):
    """Return what the first candidate creates, from the table on."""
    (one,) = found(sql, **options)
    assert fits(finding_headline(one)), one.headline
    assert "item" in one.headline
    assert one.candidates[0].undo.startswith("DROP INDEX CONCURRENTLY")
    return one.candidates[0].sql.rpartition(" ON item")[2].rstrip(";").strip()


def test_the_index_fits_the_statement():
    compare_answers("answers/diagnosis/the_index_fits_the_statement", created)


def test_an_index_in_another_collation_or_class_serves_no_order():
    sql = "SELECT * FROM item ORDER BY name LIMIT $1"
    for other in ('name COLLATE "C"', "name text_pattern_ops"):
        assert created(sql, indexes=[index(f"CREATE INDEX i ON item ({other})")]) == "(name)"
    assert found(sql, indexes=[index("CREATE INDEX i ON item (name DESC)")]) == []
    named = [index('CREATE INDEX i ON item (name COLLATE "C")')]
    assert found('SELECT * FROM item ORDER BY name COLLATE "C" LIMIT $1', indexes=named) == []
    patterns = [index("CREATE INDEX i ON item (name text_pattern_ops)")]
    assert found("SELECT * FROM item WHERE name = $1", indexes=patterns) == []


def test_a_rare_constant_in_all_texts_is_worth_a_partial_index():
    sql = "SELECT * FROM item WHERE state = $1 AND amount = $2"
    (one,) = found(sql, compared={"state": "new"})
    assert one.candidates[-1].sql == (
        "CREATE INDEX CONCURRENTLY item_amount_part_idx ON item (amount) WHERE state = 'new';"
    )
    assert len(found(sql)[0].candidates) == len(found(sql, compared={"state": "done"})[0].candidates) == 1


def test_a_search_beside_a_join_gets_its_own_index():
    line = table("line")
    sql = "SELECT * FROM item i JOIN line l ON l.item = i.id WHERE i.name ILIKE $1 LIMIT $2"
    join = replace(
        scan("item", "(item.name ~~* $1)", rows=10, cost=3500.0).root, alias="i", role="Outer", children=()
    )
    inner = replace(
        join, relation="line", alias="l", kind="Index Scan", role="Inner", cost=4.0, conditions=()
    )
    root = replace(
        join, kind="Nested Loop", relation="", alias="", role="", cost=3600.0, children=(join, inner)
    )
    seen = evidence(
        [statement(0, sql, rows=600 * 5, plans=(StatementPlan(0, "generic", root, ""),))],
        [table("item"), line],
        (*ITEM, column("line", "item", distinct=100_000)),
        [PRIMARY, index("CREATE INDEX line_item ON line (item)")],
    )
    (one,) = missing_index.find_missing_indexes(seen)
    assert "gin_trgm_ops" in one.candidates[0].sql


def test_rows_that_are_not_done_need_an_index_of_their_own_beside_the_primary_key():
    sql = "SELECT id FROM item WHERE sent IS NULL ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED"
    plan = scan("item", "(item.sent IS NULL)", rows=1000)
    assert created(sql, plans=(plan,)) == "(id) WHERE sent IS NULL"
    (one,) = found(sql, plans=(plan,))
    assert one.headline == "Calls scan item for the few rows where sent IS NULL"
    assert found(sql, plans=(plan,), indexes=(index("CREATE INDEX item_sent ON item (sent, id)"),)) == []


def test_the_key_of_a_document_comes_from_an_executed_plan():
    sql = "SELECT * FROM item WHERE payload ->> $1 = $2"
    assert found(sql) == []  # an index needs the key
    plan = scan("item", "((item.payload ->> 'kind'::text) = 'x'::text)", source="seen")
    assert created(sql, plans=(plan,)) == "((payload ->> 'kind'))"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("(item.customer = $1)", "(customer)"),
        ("((item.amount = 5) AND (item.created > $1))", "(amount, created)"),
        ("((item.name)::text = 'x'::text)", "(name)"),
        ("(customer = ANY ($1))", "(customer)"),
        ("((item.sent IS NULL) AND (item.amount < $1))", "(amount) WHERE sent IS NULL"),
        ("((item.sent IS NOT NULL) AND (lower((item.name)::text) = lower($1)))", "((lower(name::text)))"),
        ("((NOT (hashed SubPlan 1)) AND (item.customer = (InitPlan 2).col1))", "(customer)"),
        ("((item.name)::text ~~* $1)", "USING gin (name gin_trgm_ops)"),
    ],
)
def test_the_plan_shows_what_a_view_compares(condition, expected):
    seen = evidence(
        [statement(0, "SELECT * FROM shown WHERE x = $1", plans=(scan("item", condition),))],
        [table("item")],
        ITEM,
    )
    view = replace(seen.catalogue, views=(ViewFacts("shown", False, ""),))
    (one,) = missing_index.find_missing_indexes(replace(seen, catalogue=view))
    assert one.candidates[0].sql.rpartition(" ON item")[2].rstrip(";").strip() == expected


@pytest.mark.parametrize(
    ("sql", "counts"),
    [
        ("SELECT * FROM item", {"rows": 600 * 100_000}),
        ("SELECT * FROM item WHERE region <> $1", {"rows": 600 * 70_000}),
        ("SELECT * FROM item WHERE region = $1", {"rows": 600 * 60_000}),
        ("SELECT count(*) FROM item", {}),
        ("SELECT region, sum(amount) FROM item WHERE gone IS NULL GROUP BY region", {}),
        ("SELECT sum(amount) FROM item WHERE created > $1", {}),  # may be most of the table
        ("SELECT count(*) FROM item WHERE customer = $1", {"calls": 4, "rows": 4, "blocks": 4_000}),
        ("SELECT * FROM item WHERE customer = $1", {"blocks": 600 * 8}),
        ("SELECT * FROM item WHERE date_trunc('day', now()) = $1", {}),
        ("SELECT * FROM item WHERE random() < $1", {"rows": 600}),
        ("INSERT INTO item (customer) VALUES ($1)", {}),
    ],
)
def test_statements_that_no_index_helps_have_no_finding(sql, counts):
    assert found(sql, **counts) == []


def test_a_small_table_and_one_without_time_have_no_finding():
    sql = "SELECT * FROM item WHERE customer = $1"
    assert found(sql, facts={"rows": 5_000}) == []
    assert found(sql, busy=0.01) == []


def test_an_index_that_is_read_in_vain_wants_another_column():
    one = created(
        "SELECT * FROM item WHERE customer = $1 ORDER BY created LIMIT 20",
        indexes=[index("CREATE INDEX item_customer ON item (customer)")],
        columns=[
            *(each for each in ITEM if each.name != "customer"),
            column("item", "customer", distinct=20),
        ],
        facts={"seq_scans": 0, "whole_reads": 0.0},
        rows=600 * 20,
        blocks=600 * 900,
    )
    assert one == "(customer, created)"


def test_statements_on_one_table_share_an_index_and_its_bill():
    seen = evidence(
        [
            statement(0, "SELECT * FROM item WHERE customer = $1"),
            statement(1, "SELECT * FROM item WHERE amount > $1 AND customer = $2", busy=0.5),
            statement(2, "SELECT * FROM item WHERE amount = $1", rows=600 * 100, busy=0.5),
        ],
        [table("item")],
        ITEM,
    )
    first, second = find_findings(seen)
    assert (first.templates, second.templates) == ((0, 1), (2,))
    assert first.bill.share + second.bill.share == pytest.approx(1.0, abs=0.1)
    assert "item (customer" in first.candidates[0].sql


def test_the_inner_side_of_a_join_wants_its_column():
    seen = evidence(
        [
            statement(
                0,
                "SELECT * FROM bill b JOIN item i ON i.customer = b.id WHERE b.id = $1",
                rows=600 * 5,
                blocks=600 * 1_004,
            )
        ],
        [table("item"), table("bill", rows=100)],
        [*ITEM, column("bill", "id")],
    )
    (one,) = missing_index.find_missing_indexes(seen)
    assert "ON item (customer)" in one.candidates[0].sql
    assert one.headline == "Table item has no index on customer, so joins scan it"


TENANT = "(region = (current_setting('app.region'::text))::integer)"


def under_policy(sql, policy=TENANT, role="app", indexes=(), region=5_000, **counts):
    """Return the findings about a statement of a role to whose statements a policy adds a condition."""
    columns = [replace(one, distinct=region) if one.name == "region" else one for one in ITEM]
    seen = evidence([statement(0, sql, **counts)], [table("item")], columns, [PRIMARY, *indexes])
    facts = PolicyFacts("own_region", "item", 1, "all", True, policy, False, ("app",))
    catalogue = replace(seen.catalogue, policies=(facts,))
    shape, policies = with_policies(seen.statements[0].shape, role, catalogue)
    one = replace(seen.statements[0], shape_of=known_shape(shape), policies=policies, role=role)
    return list(missing_index.find_missing_indexes(replace(seen, statements={0: one}, catalogue=catalogue)))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM item", "(region)"),
        ("SELECT * FROM item WHERE state = $1", "(region, state)"),
        ("SELECT * FROM item WHERE state = $1 ORDER BY created LIMIT $2", "(region, state, created)"),
        ("UPDATE item SET amount = $1 WHERE name LIKE $2", "(region)"),
    ],
)
def test_the_condition_of_a_policy_belongs_to_the_index(sql, expected):
    (one,) = under_policy(sql, region=2_000, blocks=600_000)
    assert one.candidates[0].sql.rpartition(" ON item")[2].rstrip(";").strip() == expected
    assert f"For role app, policy own_region of the table adds the condition {TENANT}." in one.evidence
    assert "region" in one.headline and fits(finding_headline(one))


def test_no_index_is_proposed_that_row_security_keeps_from_use():
    one_row = "SELECT * FROM item WHERE lower(name) = $1"
    assert under_policy(one_row, "(region > 0)") == []
    assert found(one_row)


@pytest.mark.parametrize(("distinct", "also"), [(-1.0, True), (2.0, False)])
def test_a_brin_index_is_proposed_for_a_column_of_many_values_in_the_order_of_the_table(distinct, also):
    """A column with one very common value looks ordered, but each part of the table has the others, too."""
    ordered = column("item", "amount", distinct=distinct, correlation=0.99, common=(("7", 1e-4),))
    (one,) = found("SELECT * FROM item WHERE amount = 7", columns=[column("item", "id", "bigint"), ordered])
    assert any("USING brin (amount)" in each.sql for each in one.candidates) == also


@pytest.mark.parametrize(("call", "many"), [('"left"(name, 9)', 1), ('"Roll"(name)', 0)])
def test_a_function_with_a_quoted_name_is_known_by_it(call, many):
    """An index needs immutable functions; nothing is known of Roll."""
    assert len(found(f"SELECT * FROM item WHERE {call} = $1")) == many


@pytest.mark.parametrize(
    ("rows", "busy", "is_found"), [(15_000, 0.9, True), (15_000, 0.1, False), (40_000, 0.9, False)]
)
def test_an_index_that_may_save_a_third_is_proposed_for_a_costly_statement_to_measure(rows, busy, is_found):
    plan = scan("item", "(customer = 5)", rows=rows, source="seen")
    query = "SELECT sum(amount) FROM item WHERE customer = $1"
    statements = [statement(0, query, plans=(plan,), busy=busy), statement(1, "SELECT now()", busy=1 - busy)]
    customers = (column("item", "customer", distinct=100_000 / rows),)
    seen = evidence(statements, [table("item")], customers, [PRIMARY])
    words = [text for finding in missing_index.find_missing_indexes(seen) for text in finding.evidence]
    assert any("measure the index on a copy with uncork cure" in text for text in words) == is_found
    assert bool(words) == is_found


def test_what_is_found_word_for_word():
    compare_findings("missing_index", [
        ("a value in an array is rewritten for the index that finds it",
         found("SELECT id FROM item WHERE $1::integer = ANY (tags) AND amount > $2")),
        ("a trigram index comes with its extension",
         found("SELECT * FROM item WHERE name ILIKE $1"),
         found("SELECT * FROM item WHERE name LIKE $1")),
        ("a value that all calls have makes a partial index possible",
         found("SELECT id FROM item WHERE state = $1 AND amount = $2",
               plans=(scan("item", "((amount = 5) AND (state = 'new'::text))", source="seen"),))),
        ("a partial index on other rows does not count",
         found("SELECT * FROM item WHERE customer = $1",
               indexes=[index(
                   "CREATE INDEX item_customer_idx ON item (customer) WHERE gone IS NOT NULL")])),
        ("without statistics the index is on what the statement compares",
         found("SELECT * FROM item WHERE customer = $1",
               columns=tuple(
                   replace(one, distinct=None, null_fraction=None, width=None) for one in ITEM)),
         found("SELECT * FROM item WHERE customer = $1", columns=())),
        ("blocks of other work are no scan of the table",
         found("DELETE FROM item WHERE customer = $1", facts={"whole_reads": 0.0, "seq_scans": 3})),
        ("a policy asks for no index of roles that bypass it",
         under_policy("SELECT * FROM item", role="postgres", rows=60_000_000)),
        ("an index on the column of a policy is enough",
         under_policy("SELECT * FROM item WHERE name ILIKE $1",
                      indexes=[index("CREATE INDEX item_region ON item (region)")])),
        ("no index is proposed that exists or is the beginning of one",
         *(found("SELECT * FROM item WHERE customer = $1", indexes=[index(definition)]) for definition in (
             "CREATE INDEX one ON item (customer)", "CREATE INDEX one ON item (customer, created)",
             "CREATE UNIQUE INDEX one ON item (customer, id)"))),
    ])  # fmt: skip
