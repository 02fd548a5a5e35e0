"""Conditions that keep a statement from using an index that exists."""

import pytest

from fakes.findings import compare_findings
from fakes.table_evidence import column, evidence, index, scan, statement, table
from uncork.diagnosis.findings import find_findings
from uncork.diagnosis.rules.plans.rewrite import also_in_day, as_range
from uncork.model.database.plan import PlanNode, StatementPlan
from uncork.report.findings import finding_headline
from uncork.report.headline import fits

USERS = (
    column("users", "id", "bigint"),
    column("users", "email", "text", width=20.0),
    column("users", "code", "text", collation="C"),
    column("users", "day", "timestamp without time zone"),
    column("users", "zoned", "timestamp with time zone"),
    column("users", "city", distinct=5_000),
    column("users", "token", "uuid"),
    column("users", "tags", "text[]", width=40.0),
)
INDEXES = (
    index("CREATE UNIQUE INDEX users_pkey ON users (id)"),
    index("CREATE INDEX users_email ON users (email)"),
    index("CREATE INDEX users_code ON users (code)"),
    index("CREATE INDEX users_day ON users (day)"),
    index("CREATE INDEX users_zoned ON users (zoned)"),
    index("CREATE UNIQUE INDEX users_token ON users (token)"),
    index("CREATE INDEX users_tags ON users USING gin (tags)"),
)


def found(sql, *, indexes=INDEXES, facts=None, **counts):
    seen = evidence([statement(0, sql, **counts)], [table("users", **(facts or {}))], USERS, indexes)
    return find_findings(seen)


@pytest.mark.parametrize(
    ("sql", "named", "remedy"),
    [
        ("lower(email) = $1", ("users_email", "lower(email)"), "((lower(email)))"),
        ("day::date = $1", ("users_day", "date"), "day >= $1::date AND day < $1::date + 1"),
        ("day::date::text = $1", ("users_day", "date::text"), "day >= $1::text::date AND day < "),
        ("date_trunc('hour', day) = $1", ("users_day",), "day < $1 + interval '1 hour'"),
        ("date_trunc('hour', zoned AT TIME ZONE 'UTC') = $1", ("users_zoned", "an expression"),
         "zoned >= ($1 AT TIME ZONE 'UTC') AND zoned < (($1 + interval '1 hour') AT TIME ZONE 'UTC')"),
        ("token::text = $1", ("users_token", "text"), "token = $1::uuid"),
        ("id = $1::numeric", ("users_pkey", "numeric"), "id = $1::bigint"),
        ("email LIKE 'ab%'", ("users_email", "LIKE"), "(email text_pattern_ops)"),
        ("email LIKE $1", ("users_email", "LIKE"), "gin_trgm_ops"),
        ("email LIKE '%b'", ("users_email", "wildcard"), "gin_trgm_ops"),
        ("code LIKE '%b'", ("users_code", "wildcard"), "gin_trgm_ops"),
        ("email = $1 OR city = $2", ("users", "OR"), "ON users (city)"),
        ("$1 = ANY (tags)", ("users_tags", "ANY (tags)"), "tags @> ARRAY[value]"),
    ],
)  # fmt: skip
def test_the_condition_and_its_remedy_are_named(sql, named, remedy):
    (one,) = found(f"SELECT * FROM users WHERE {sql}")
    assert one.rule == "index-not-usable"
    assert all(name in one.headline for name in named), one.headline
    assert fits(finding_headline(one))
    assert any(remedy in f"{each.text} {each.sql}" for each in one.candidates)


def counted(condition, kind="Seq Scan", blocks=3_600):
    """Return what is found about a statement that counts rows, by a plan with the planner's default."""
    filtered = (("Filter", f"({condition})"),)
    scan = PlanNode(kind, "users", "users", "", 0.0, 5_200, 1_500, 8, filtered, role="Outer")
    root = PlanNode("Aggregate", "", "", "", 5_200, 5_210, 1, 8, children=(scan,))
    return found(
        f"SELECT count(*) FROM users WHERE {condition}",
        facts={"rows": 300_000, "blocks": 3_600},
        plans=(StatementPlan(0, "seen", root, ""),),
        calls=50,
        rows=50,
        blocks=50 * blocks,
    )


@pytest.mark.parametrize("condition", ["lower(email) = $1", "COALESCE(email, '') = $1", "email || '' = $1"])
def test_an_expression_has_about_as_many_values_as_its_column(condition):
    """The planner assumes 0.5 % of the rows for any expression; they would be read as fast by a scan."""
    (one,) = counted(condition)
    assert "users_email" in one.headline


@pytest.mark.parametrize("condition", ["left(email, 1) = $1", "length(email) = $1"])
def test_an_expression_that_makes_values_equal_may_select_many_rows(condition):
    assert not counted(condition)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("day::date = $1", "(day >= $1::date AND day < $1::date + 1)"),
        ("(u.day)::date = $1::date + $2::int AND city = $3",
         "(u.day >= ($1::date + $2::int)::date AND u.day < ($1::date + $2::int)::date + 1) AND city = $3"),
        ("CAST(day AS date)=$1 ORDER BY id", "(day >= $1::date AND day < $1::date + 1) ORDER BY id"),
        ("zoned::date = $1", "(zoned >= $1::date AND zoned < $1::date + 1)"),
        ("token::text = $1", "(token = $1::text::uuid AND token::text = $1::text)"),
        ("$1 = ANY(u.tags) ORDER BY id", "u.tags @> ARRAY[$1]::text[] ORDER BY id"),
        ("u.id = $1::numeric", "(u.id = $1::numeric::bigint AND u.id = $1::numeric)"),
    ],
)  # fmt: skip
def test_the_statement_is_rewritten_and_keeps_its_answers(sql, expected):
    (one,) = found(f"SELECT * FROM users AS u WHERE {sql}")
    new, old = "SELECT * FROM users AS u WHERE " + expected, f"SELECT * FROM users AS u WHERE {sql}"
    change = one.candidates[0]
    assert (change.kind, change.sql, change.undo) == ("statement", new, old)
    assert change.same_answers


@pytest.mark.parametrize(
    "sql",
    [
        "day::date = $1::timestamp",  # a time of the day is in no day
        "day::date = $1 OR day::date = $2",
        "day::date = $1 * $2",
        "day::date = $1 COLLATE x",
        "birthday::date = $1",
        "day::date > $1",
    ],
)
def test_what_is_not_recognised_is_not_rewritten(sql):
    assert as_range(f"SELECT * FROM users WHERE {sql}", "day") == ""


def test_a_parameter_whose_type_only_the_client_knows_shows_in_scans_of_a_unique_column():
    sql = "SELECT * FROM users WHERE id = $1"
    (one,) = found(sql)
    assert one.headline == "Comparing id with another type keeps index users_pkey of users from use"
    change = one.candidates[0]
    assert change.undo == "SELECT * FROM users WHERE id = $1::numeric"
    assert change.sql == "SELECT * FROM users WHERE (id = $1::numeric::bigint AND id = $1::numeric)"
    assert "is assumed" in change.text
    assert found(sql, facts={"whole_reads": 1.0}) == ()  # the blocks are others'
    assert found("DELETE FROM users WHERE id = $1", facts={"whole_reads": 1.0}) == ()
    (cast,) = found(sql, plans=(scan("users", "((users.id)::numeric = '5'::numeric)", source="seen"),))
    assert "numeric" in cast.headline


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM users WHERE email = $1",
        "SELECT * FROM users WHERE code LIKE 'ab%'",
        "SELECT * FROM users WHERE email = $1 OR id = $2",
    ],
)
def test_an_index_that_serves_is_no_obstacle(sql):
    assert [one.rule for one in found(sql, facts={"whole_reads": 1.0}, blocks=600 * 5)] == []


@pytest.mark.parametrize(
    ("condition", "rewritten"),
    [
        ("day::date::text = $1",
         "(day >= ($1::text)::date AND day < ($1::text)::date + 1 AND day::date::text = $1::text)"),
        ("(u.day::date)::varchar = $1::text AND id > 2",
         "(u.day >= ($1::text)::date AND u.day < ($1::text)::date + 1 "
         "AND (u.day::date)::varchar = $1::text) AND id > 2"),
        ("day::date::text > $1", ""),
        ("day::date::text = $1 OR day::date::text = $2", ""),
        ("day::date::char(7) = $1", ""),
    ],
)  # fmt: skip
def test_a_chain_of_casts_also_compares_the_column_with_the_bounds_of_the_day(condition, rewritten):
    before = "SELECT * FROM users u WHERE "
    assert also_in_day(f"{before}{condition}", "day") == (f"{before}{rewritten}" if rewritten else "")


def test_what_is_found_word_for_word():
    compare_findings("index_not_usable", [
        ("all entries of an index may be filtered in place of the table",
         counted("lower(email) = $1", "Index Only Scan", 900)),
        ("a value with a time zone has no index on its day",
         found("SELECT * FROM users WHERE zoned::date = $1"),
         found("SELECT * FROM users WHERE to_char(zoned, 'YYYY') = 'x'")),
        ("a column that is not the first of an index is named",
         found("SELECT * FROM users WHERE city = $1",
               indexes=[index("CREATE INDEX users_two ON users (day, city)")], rows=600 * 20)),
        ("an or of two patterns wants two indexes together",
         found("SELECT * FROM users WHERE email ILIKE $1 OR code ILIKE $2 ORDER BY email LIMIT 25",
               calls=600, rows=1_800 + 7)),
    ])  # fmt: skip
