"""The captured workload: statements with values of their parameters, in their frequencies."""

from collections import Counter
from dataclasses import replace

import pytest

from fakes.goldens import compare_answers
from uncork.model.database.catalogue import Catalogue, ColumnFacts, ConstraintFacts, FunctionFacts, ViewFacts
from uncork.model.database.workload import (
    CalledOperation,
    CapturedStatement,
    CapturedWorkload,
    NotCaptured,
    Reference,
    RowSample,
    Sample,
    SampledExpression,
)
from uncork.profile.workload.building import (
    Execution,
    SeenStatement,
    build_workload,
    rows_of,
    samples_of,
    typed_texts,
    without_statements,
)
from uncork.profile.workload.drawing import ColumnDraw, pattern_of
from uncork.profile.workload.known import Known
from uncork.profile.workload.literals import Constant, as_arrays, found_values, with_keys
from uncork.profile.workload.sets import SETS


def column(table, number, name, kind="integer", **facts):
    return ColumnFacts(
        table, 1, number, name, kind, facts.pop("storage_type", kind), False, "", "", "", **facts
    )


BOUNDS = tuple(str(number) for number in range(0, 100_001, 10_000))
CATALOGUE = Catalogue(
    columns={
        "orders": (
            column("orders", 1, "id", "bigint", distinct=-1.0, bounds=BOUNDS),
            column("orders", 2, "customer", distinct=50_000.0, bounds=BOUNDS),
            column("orders", 3, "state", "text", common=(("paid", 0.75), ("new", 0.25)), distinct=2.0),
            column("orders", 4, "note", "text", null_fraction=0.5, common=(("x", 0.5),), distinct=1.0),
            column("orders", 5, "made", "date", bounds=("2026-01-01", "2026-04-11"), distinct=-1.0),
            column("orders", 6, "tags", "text[]"),
        ),
        "customers": (
            column("customers", 1, "id", bounds=("7", "9000", "50000"), distinct=3.0),
            column("customers", 2, "name", "text", bounds=("Adams", "Miller", "Young"), distinct=-1.0),
        ),
    },
    constraints=(
        ConstraintFacts("k", "orders", 1, "primary key", ("id",), ""),
        ConstraintFacts(
            "f", "orders", 1, "foreign key", ("customer",), "", referred="customers", referred_columns=("id",)
        ),
    ),
)
KNOWN = Known(CATALOGUE, {"orders": 100_000.0}, {"orders": [("id",)], "customers": [("id",)]})


def build(sql, *, known=KNOWN, **facts):
    """Return the captured statement, or the reason why there is none."""
    own = {"calls": 60, "execution_ns": 6e9, "rows": 60, **facts}
    found = build_workload([SeenStatement(1, sql, sql, **own)], known, 60.0, 1.5)
    return found.statements[0] if found.statements else found.missing[0].reason


def test_a_drawn_value_comes_as_often_as_the_column_has_it():
    found = build("SELECT * FROM orders WHERE state = $1")
    assert Counter(found.sets) == {("paid",): 18, ("new",): 6}
    assert (found.origin, found.calls_per_hour, found.mean_ns, found.share) == ("drawn", 3600.0, 1e8, 1.0)
    assert (found.tables, found.changes, len(found.sets)) == (("orders",), False, SETS)


def test_values_of_a_histogram_spread_evenly_over_its_bounds():
    found = build("SELECT * FROM orders WHERE id = $1")
    tenths = Counter(int(value) // 25_000 for (value,) in found.sets)
    assert tenths == {0: 6, 1: 6, 2: 6, 3: 6}
    assert any(value not in BOUNDS for (value,) in found.sets), "integers between the bounds exist"
    assert build("SELECT * FROM orders WHERE id = $1") == found, "the seed decides"


def test_values_that_no_row_may_have_are_not_made_up():
    sparse = ColumnDraw(CATALOGUE.columns["customers"][0], 3.0)
    assert {sparse.value(point / 10) for point in range(10)} <= {"7", "9000", "50000"}
    cut = ColumnDraw(column("orders", 1, "note", "text", common=(("x" * 60, 0.9), ("short", 0.1))))
    assert cut.value(0.0) == "short", "a value of 60 characters may be cut"


def test_parameters_of_one_column_have_one_value_and_lists_have_several():
    both = build("SELECT * FROM orders WHERE customer = $1 UNION SELECT * FROM orders WHERE customer = $2")
    assert all(first == second for first, second in both.sets)
    several = build("SELECT * FROM orders WHERE customer IN ($1, $2)")
    assert sum(first != second for first, second in several.sets) > SETS / 2
    arrays = build("SELECT * FROM orders WHERE id = ANY ($1)", rows=240)
    assert {value.count(",") for (value,) in arrays.sets} == {3}, "four rows a call need four values"
    shortened = build("SELECT * FROM orders WHERE id IN ($1 /*, ... */)")
    assert shortened.sql == "SELECT * FROM orders WHERE id = ANY ($1)"


def test_a_value_that_another_shifts_is_drawn_and_not_shifted():
    found = build("SELECT * FROM orders WHERE made = $1::date - $2::int")
    assert {values[1] for values in found.sets} == {"0"}
    assert {values[0][:5] for values in found.sets} == {"2026-"}
    assert "not compared with a column" in build("SELECT * FROM orders WHERE made = $1::date + $2 * $3")


VIEWS = (
    ViewFacts("open_orders", False, " SELECT o.id,\n    o.state AS mark,\n    upper(c.name) AS name\n   "
              "FROM orders o\n     JOIN customers c ON c.id = o.customer;"),
    ViewFacts("marks", False, "SELECT mark AS sign FROM open_orders"),
    ViewFacts("twice", False, "SELECT state FROM orders UNION SELECT name FROM customers"),
)  # fmt: skip


def test_a_column_of_a_view_has_the_values_of_the_table_beneath():
    known = replace(KNOWN, catalogue=replace(CATALOGUE, views=VIEWS))
    for sql in (
        "SELECT * FROM open_orders WHERE mark = $1",
        "SELECT 1 FROM public.marks m WHERE m.sign = $1",
    ):
        assert Counter(build(sql, known=known).sets) == {("paid",): 18, ("new",): 6}
    for sql in ("SELECT * FROM open_orders WHERE name = $1", "SELECT * FROM twice WHERE state = $1"):
        assert "not in the catalogue" in build(sql, known=known)


def test_a_range_has_as_many_rows_as_an_execution_returns():
    found = build("SELECT * FROM orders WHERE id >= $1 AND id < $2", rows=60 * 1000)
    assert {int(high) - int(low) for low, high in found.sets} <= {999, 1000, 1001}
    dates = build("SELECT * FROM orders WHERE made BETWEEN $1 AND $2 LIMIT $3")
    assert all(low <= high and rows == "1" for low, high, rows in dates.sets)


def test_a_range_with_one_fixed_end_reaches_as_far_as_the_rows_that_return():
    seen = ("SELECT * FROM orders WHERE id BETWEEN $1 AND 50000",)
    found = build("SELECT * FROM orders WHERE id BETWEEN $1 AND $2", rows=60 * 1000, seen=seen)
    assert found.sql == "SELECT * FROM orders WHERE id BETWEEN $1 AND 50000"
    assert all(48_000 <= int(low) <= 50_000 for (low,) in found.sets)
    newest = build("SELECT * FROM orders WHERE id > $1", rows=60 * 1000)
    assert all(98_000 <= int(low) <= 100_000 for (low,) in newest.sets)
    grouped = build("SELECT customer, count(*) FROM orders WHERE id > $1 GROUP BY customer", rows=60 * 60_000)
    assert all(int(low) <= 40_000 for (low,) in grouped.sets), "no fewer rows than groups"


def test_patterns_begin_like_a_value():
    found = build("SELECT * FROM customers WHERE name LIKE $1 OFFSET $2")
    assert {pattern for pattern, _ in found.sets} <= {"A%", "M%", "Y%"}


def test_a_pattern_is_as_long_as_it_takes_to_find_few_values():
    names = ColumnDraw(column("t", 1, "name", "text", bounds=tuple(f"a_b{n:02}" for n in range(20))))
    assert pattern_of("a_b07", names, 0.5) == r"a\_b0%"
    assert pattern_of("a_b07", names, 0.01) == r"a\_b07%"


def test_stored_values_have_the_part_of_null_and_keys_do_not_collide():
    found = build("INSERT INTO orders (id, customer, state, note) VALUES ($1, $2, $3, $4)")
    assert "clock_timestamp()" in found.sql
    assert found.sql.endswith("$1, $2, $3)"), "the other parameters are numbered again"
    assert Counter(note for _, _, note in found.sets) == {None: 12, "x": 12}
    assert {customer for customer, _, _ in found.sets} <= set(BOUNDS), "only values that rows have"
    assert found.changes
    unnamed = build("INSERT INTO customers VALUES ($1, $2)")
    assert "random()" in unnamed.sql
    known = Known(CATALOGUE, {}, {"orders": [("customer",)]})
    assert "unique key (customer)" in build("INSERT INTO orders (customer) VALUES ($1)", known=known)
    assert "(id) of orders" in build("INSERT INTO orders (id, note) VALUES (1 + $1, $2)")
    assert build("INSERT INTO orders (id, note) VALUES (nextval('s'), $1)").sets
    again = build("INSERT INTO orders (id) VALUES ($1) ON CONFLICT (id) DO NOTHING")
    assert again.sql.startswith("INSERT INTO orders (id) VALUES ($1)")
    assert "is unique" in build("UPDATE orders SET id = $1 WHERE id = $2")
    assert build("UPDATE orders SET customer = customer + $1 WHERE id = $2").sets[0][0] == "1"


def test_what_cannot_be_drawn_is_missing_with_the_reason():
    compare_answers("profile/not_drawn", build)


def test_without_counts_a_statement_has_no_rate():
    assert "pg_stat_statements" in build("SELECT 1", calls=None)
    assert build("SELECT $1").sql == "SELECT 1"


# ---- values of texts ----

DAYS = "SELECT date_trunc($1, made) FROM orders WHERE customer = $2 AND made > now() - $3::interval LIMIT $4"


def test_executions_in_a_log_give_joint_values():
    executed = tuple(
        Execution("select * from orders where state = $1 and note = $2", f"$1 = 's{one}', $2 = 'n{one}'")
        for one in range(3)
    )
    found = build(
        "SELECT * FROM orders WHERE state = $1 AND note = $2", executed=executed, seen=("SELECT 2",)
    )
    assert (found.origin, found.sets) == ("executed", (("s0", "n0"), ("s1", "n1"), ("s2", "n2")))


def test_literals_of_sessions_texts_are_values_and_constants_stay_in_the_statement():
    seen = tuple(
        f"SELECT date_trunc('day', made) FROM orders WHERE customer = {one} AND "
        f"made > now() - '{one} days'::interval LIMIT 10 -- {one}"
        for one in range(3)
    )
    found = build(DAYS, seen=seen)
    assert found.origin == "seen"
    assert "date_trunc('day', made)" in found.sql
    assert found.sets == tuple((str(one), f"{one} days", "10") for one in range(3))


def test_a_text_with_parameters_tells_the_constants_and_the_rest_is_drawn():
    text = DAYS.replace("$1", "'day'").replace("$3", "'7 days'").replace("$4", "20").replace("$2", "$1")
    found = build(DAYS, seen=(text,))
    assert found.sql == text
    assert (found.origin, len(found.sets)) == ("drawn", SETS)


def test_few_seen_values_are_completed_with_drawn_ones():
    found = build("SELECT * FROM orders WHERE state = $1", seen=("SELECT * FROM orders WHERE state = 'odd'",))
    assert (found.origin, found.sets[0], len(found.sets)) == ("drawn", ("odd",), SETS)
    stays = build("SELECT * FROM orders WHERE tags = $1", seen=("SELECT * FROM orders WHERE tags = '{a}'",))
    assert (stays.origin, stays.sets) == ("seen", (("{a}",),))


def test_texts_and_templates_are_matched_token_by_token():
    text = (
        "select * from t where x in (1, -2, $4) /* c */ and date '2026-01-01' < d and e is true limit NULL;"
    )
    template = "SELECT * FROM t WHERE x IN ($1 /*, ... */) AND date $2 < d AND e IS true LIMIT $3"
    assert found_values(template, text) == {
        1: (Constant("1", "1"), Constant("-2", "-2"), 4),
        2: Constant("2026-01-01", "'2026-01-01'"),
        3: Constant(None, "NULL"),
    }
    assert found_values(template, text.replace("< d", "> d")) is None
    assert found_values("SELECT $1, $2", r"SELECT E'a\'b', $$c$$") == {
        1: Constant("a'b", r"E'a\'b'"),
        2: Constant("c", "$$c$$"),
    }
    assert as_arrays("SELECT 1 WHERE x NOT IN ($1 /*, ... */)") == "SELECT 1 WHERE x <> ALL ($1)"


def test_keys_of_documents_that_all_texts_share_replace_their_parameters():
    template = "SELECT a -> $1 FROM t WHERE b::jsonb -> $2 #>> $3 = $4 AND c ->> $2 = $5"
    text = "select a -> 'x' from t where b::jsonb -> 'it''s' #>> '{}' = {0} and c ->> 'it''s' = 'k'"
    keyed = "SELECT a -> 'x' FROM t WHERE b::jsonb -> 'it''s' #>> '{}' = $4 AND c ->> 'it''s' = $5"
    texts = [text.replace("{0}", one) for one in ("'m'", "$1")]
    assert with_keys(template, texts) == keyed
    other = texts[0].replace("'x'", "'y'")
    assert with_keys(template, [*texts, other]) == keyed.replace("-> 'x'", "-> $1")
    sent = texts[0].replace("'x'", "$7")
    assert with_keys(template, [sent]) == keyed.replace("-> 'x'", "-> $1")
    assert with_keys(template, ["select 1"]) == template
    assert with_keys(template, []) == template


def test_constants_of_indexable_expressions_replace_their_parameters():
    """Each is a template, and a text with its constants."""

    def answer(texts):
        template, text = (f"SELECT 1 FROM t WHERE {condition}" for condition in texts.split("\n"))
        return with_keys(template, [text])

    compare_answers("profile/constant_keys", answer)


def wanted(sql, *seen):
    """Return the expressions of which rows have to be read."""
    one = SeenStatement(1, sql, sql, calls=60, execution_ns=6e9, seen=seen)
    return samples_of([one], KNOWN)


def sampling(sql, *values, seen=(), reason=""):
    """Return what is captured after rows were read, or the reason why nothing is."""
    samples = {one: Sample(values, reason) for one in wanted(sql, *seen)}
    return build(sql, known=replace(KNOWN, samples=samples), seen=seen)


def test_values_of_expressions_arrays_and_documents_are_read_from_rows():
    """None are read for columns with statistics, several tables, aggregates, and keys that no text shows."""

    def answer(condition):
        found = wanted(f"SELECT * FROM orders o, customers c WHERE {condition}")
        return "\n".join(f"{one.table}: {one.sql}, the {one.shape}" for one in found) or "none"

    compare_answers("profile/sampled_expressions", answer)


def test_a_constant_in_an_expression_is_the_one_that_the_application_always_writes():
    sql, text = (
        "SELECT * FROM orders WHERE date_trunc({}, made)::date = {}".format(*one)
        for one in (("$2", "$1"), ("'day'", "$1"))
    )
    (found,) = wanted(sql, text)
    assert found == SampledExpression(
        "orders",
        "date_trunc('day', made)::date",
        "value",
        (
            CalledOperation("cast", "", "", ("date_trunc('day', made)", "date_trunc('day', made)::date")),
            CalledOperation("function", "", "date_trunc", ("'day'", "made")),
        ),
    )
    assert sampling(sql, "2026-01-05", seen=(text,)).sql == text


def test_values_from_rows_come_as_often_as_the_rows_have_them():
    found = sampling("SELECT * FROM orders WHERE lower(note) = $1", "a", "a", "a", "x" * 60)
    assert Counter(found.sets) == {("a",): 18, ("x" * 60,): 6}
    assert found.origin == "drawn"
    lists = sampling("SELECT * FROM orders WHERE lower(note) = ANY ($1)", "a", "b")
    assert {value for (value,) in lists.sets} <= {'{"a","b"}', '{"b","a"}'}
    ranges = sampling("SELECT * FROM orders WHERE note::int BETWEEN $1 AND $2", *map(str, range(100)))
    assert all(int(low) <= int(high) for low, high in ranges.sets)


def together(sql, *rows, catalogue=CATALOGUE, seen=()):
    """Return the rows to read, and what is captured after they were read."""
    known = replace(KNOWN, catalogue=catalogue)
    wanted = rows_of([SeenStatement(1, sql, sql, calls=60, execution_ns=6e9, seen=seen)], known)
    known = replace(known, together={one: RowSample(rows) for one in wanted})
    return wanted, build(sql, known=known, seen=seen)


def test_columns_of_one_table_get_the_values_of_one_row():
    sql = "SELECT * FROM orders WHERE state = $1 AND lower(note) = $2 AND customer = $3 AND made > $4"
    (wanted,), found = together(sql, ("paid", "a", "5"), ("paid", "a", "5"), ("new", "b", "6"))
    assert (wanted.table, [one.sql for one in wanted.values]) == (
        "orders",
        ["state", "lower(note)", "customer"],
    )
    assert Counter(one[:3] for one in found.sets) == {("paid", "a", "5"): 16, ("new", "b", "6"): 8}
    assert found.origin == "rows"


def test_a_row_gives_the_values_of_the_rows_that_it_refers_to():
    sql = (
        "SELECT * FROM orders o JOIN customers c ON c.id = o.customer "
        "WHERE c.name = $1 AND o.state = $2 AND o.state = $3"
    )
    (wanted,), found = together(sql, ("paid", "Miller"))
    assert (wanted.table, wanted.references) == ("orders", (Reference("customers", ("id",), ("customer",)),))
    assert set(found.sets) == {("Miller", "paid", "paid")}


def test_a_stored_foreign_key_of_several_columns_is_one_that_exists():
    key = ConstraintFacts(
        "f", "orders", 1, "foreign key", ("customer", "note"), "",
        referred="customers", referred_columns=("id", "name"),
    )  # fmt: skip
    catalogue = replace(CATALOGUE, constraints=(key,))
    sql = "INSERT INTO orders (id, customer, note, state) VALUES ($1, $2, $3, $4)"
    (wanted,), found = together(sql, ("7", "Adams"), catalogue=catalogue)
    assert (wanted.table, [one.sql for one in wanted.values]) == ("customers", ["id", "name"])
    assert {one[-3:-1] for one in found.sets} == {("7", "Adams")}


@pytest.mark.parametrize(
    "condition",
    ["state = $1", "state = $1 AND state = $2", "state = $1 AND customer <> $2", "state = $1 OR made < $2"],
)
def test_no_rows_are_read_if_no_two_columns_are_compared_for_equality(condition):
    assert together(f"SELECT * FROM orders WHERE {condition}")[0] == ()


def test_no_rows_are_read_for_values_that_were_seen():
    sql = "SELECT * FROM orders WHERE state = {} AND customer = {}"
    texts = tuple(sql.format("'paid'", number) for number in (3, 4, 5))
    wanted, found = together(sql.format("$1", "$2"), seen=texts)
    assert (wanted, found.origin) == ((), "seen")


def test_rows_are_compared_place_by_place():
    found = build(
        "SELECT * FROM orders WHERE (customer, id) < ($1, $2) ORDER BY customer DESC, id DESC LIMIT 20"
    )
    assert len(set(found.sets)) == SETS and all(int(first) <= 100_000 for first, _ in found.sets)


def test_without_rows_the_reason_is_told():
    sql = "SELECT * FROM orders WHERE lower(note) = $1"
    assert "without a connection to the database" in build(sql)
    refused = sampling(
        sql, reason="it calls the function lower, and uncork executes only immutable functions"
    )
    assert refused.endswith(
        "lower(note) are unknown: it calls the function lower, and uncork executes only immutable functions"
    )


@pytest.mark.parametrize(
    ("sql", "values", "typed"),
    [
        ("SELECT * FROM generate_series($1, $2)", ("1", "17"), "generate_series($1::integer, $2::integer)"),
        ("SELECT generate_series($1, $2::int)", ("5000000000", "2"), "generate_series($1::bigint, $2::int)"),
        ("SELECT abs($1)", ("1.5",), "abs($1::numeric)"),
        ("SELECT age($1)", ("2026-01-01 10:00:00+00",), "age($1::timestamp with time zone)"),
        ("SELECT upper($1)", ("a",), "upper($1::text)"),
        ("SELECT id FROM orders WHERE made > $1 + $2", ("2026-01-01", "1"), "made > $1::date + $2::integer"),
        (
            "SELECT sum(customer) FROM orders WHERE note > $1 AND customer BETWEEN $2 - $3 AND $4 + $5",
            ("x", "9", "1", "9", "1"),
            "BETWEEN $2 - $3::integer AND $4 + $5::integer",
        ),
    ],
)
def test_parameters_get_the_types_of_their_values_or_columns(sql, values, typed):
    assert any(text.endswith(typed) for text in typed_texts(sql, [values], KNOWN))


def test_a_parameter_that_is_compared_with_a_column_keeps_the_type_that_the_server_infers_at_first():
    first = next(typed_texts("SELECT $1 FROM orders WHERE id = $2", [("1", "2")], KNOWN))
    assert first == "SELECT $1::integer FROM orders WHERE id = $2"


def test_statements_that_a_copy_cannot_execute_are_missing_with_the_reason():
    captured = CapturedStatement(1, "SELECT 1", ((),), "none", 5.0, 1e6, 0.25, (), changes=False)
    other = replace(captured, template=2)
    lost = NotCaptured(3, "SELECT 3", "no values", 0.5)
    found = without_statements(CapturedWorkload((captured, other), (lost,), 60.0, 1.0), {1: "row security"})
    assert found.statements == (other,)
    assert [(one.template, one.reason) for one in found.missing] == [(3, "no values"), (1, "row security")]


@pytest.mark.parametrize(
    ("sql", "source", "changes"),
    [
        ("SELECT archive($1::int)", "BEGIN DELETE FROM orders WHERE id = wanted; END", True),
        ("SELECT archive($1::int)", "BEGIN /* DELETE FROM a; */ PERFORM 1; RETURN 'update'; END", False),
        ("SELECT archive($1::int)", "BEGIN PERFORM inner_one(wanted); END", True),
        ("SELECT archive($1::int)", "BEGIN EXECUTE 'SELECT 1'; END", True),
        ("SELECT archive($1::int)", "", True),
        ("SELECT other($1::int)", "BEGIN DELETE FROM orders WHERE id = wanted; END", False),
    ],
    ids=["deletes", "reads", "calls one that deletes", "dynamic", "unknown", "another function"],
)
def test_a_statement_changes_rows_if_a_function_that_it_calls_does(sql, source, changes):
    functions = (
        FunctionFacts("archive", "plpgsql", "volatile", "unsafe", False, False, 100.0, source),
        FunctionFacts(
            "app.inner_one", "sql", "volatile", "unsafe", False, False, 100.0, "UPDATE orders SET note = $1"
        ),
        FunctionFacts("other", "sql", "stable", "safe", False, False, 100.0, "DELETE FROM orders"),
    )
    known = replace(KNOWN, catalogue=replace(CATALOGUE, functions=functions))
    texts = tuple(sql.replace("$1", str(number)) for number in range(5))
    found = build(sql, known=known, seen=texts)
    assert (found.changes, found.by_function) == (changes, changes)


def test_the_argument_of_a_function_decides_something():
    functions = (FunctionFacts("archive", "sql", "volatile", "unsafe", False, False, 100.0, "SELECT 1"),)
    known = replace(KNOWN, catalogue=replace(CATALOGUE, functions=functions))
    assert build("SELECT archive($1)", known=known).startswith("the value of $1 is unknown")
    assert build("SELECT abs($1)", known=known).sets == ((),)
