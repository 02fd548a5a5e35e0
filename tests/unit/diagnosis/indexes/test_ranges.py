"""How many rows a range leaves, by a column's statistics, and what that means for an index."""

import pytest

from fakes.goldens import compare_answers
from fakes.table_evidence import column, evidence, index, scan, statement, table
from uncork.diagnosis.rules.indexes import missing_index
from uncork.diagnosis.rules.indexes.estimates import fraction, fraction_of_all
from uncork.model.database.statement import Predicate
from uncork.profile.statement_shape import filter_predicates

TENTHS = tuple(str(number) for number in range(0, 1001, 100))
MONTHS = tuple(f"2026-{month:02d}-01" for month in range(1, 12))
SALE = (
    column("sale", "id", "bigint"),
    column("sale", "customer", distinct=20_000),
    column("sale", "total", distinct=-1.0, bounds=TENTHS),
    column("sale", "price", "numeric", bounds=("0.00", "0.05", "0.10")),
    column("sale", "tax", common=(("0", 0.6), ("5", 0.1)), bounds=("10", "20", "30"), null_fraction=0.1),
    column("sale", "kind", common=(("1", 0.75), ("2", 0.25))),
    column("sale", "day", "date", bounds=MONTHS),
    column(
        "sale", "at", "timestamp with time zone", bounds=("2026-01-01 00:00:00+00", "2026-01-11 00:00:00+00")
    ),
    column("sale", "name", "text", bounds=("a", "m", "z")),
    column("sale", "empty", null_fraction=0.5),
)
SEEN = evidence([], [table("sale")], SALE, [index("CREATE UNIQUE INDEX sale_pkey ON sale (id)")])


def of(name, operator, literal):
    return Predicate("sale", name, operator, "constant" if literal else "parameter", literal=literal)


@pytest.mark.parametrize(
    ("name", "operator", "literal", "expected"),
    [
        ("total", "<", "250", 0.25),
        ("total", ">", "250", 0.75),
        ("total", ">", "-1", 1.0),
        ("total", ">=", "'900'::integer", 0.1),
        ("total", "<", "-1", 0.0),
        ("total", ">", "5000", 0.0),
        ("total", "between", "100 and 300", 0.2),
        ("price", "between", "0.05 and 0.10", 0.5),
        ("tax", "<", "5", 0.6),
        ("tax", "<=", "5", 0.7),
        ("tax", ">", "20", 0.1),  # half of the tenth and of the fifth that are neither common nor NULL
        ("kind", "<", "2", 0.75),
        ("kind", ">", "2", 0.0),
        ("day", "between", "'2026-02-01'::date and '2026-04-01'::date", 0.2),
        ("day", ">=", "2026-10-01 00:00:00", 0.1),
        ("at", "<", "2026-01-06 00:00:00+00", 0.5),
    ],
)
def test_a_range_with_known_bounds_leaves_what_the_statistics_show(name, operator, literal, expected):
    assert fraction(of(name, operator, literal), "sale", SEEN) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize(
    ("name", "operator", "literal", "expected"),
    [
        ("total", "<", None, 1 / 3),
        ("total", ">", "now", 1 / 3),
        ("total", "between", None, 0.005),
        ("total", "between", "1 and $1", 0.005),
        ("name", ">", "k", 1 / 3),
        ("empty", ">", "1", 1 / 3),
        ("unknown", ">", "1", 1 / 3),
    ],
)
def test_a_range_with_an_unknown_bound_leaves_what_postgresql_assumes(name, operator, literal, expected):
    assert fraction(of(name, operator, literal), "sale", SEEN) == expected


def test_the_bounds_of_an_interval_count_together():
    interval = [of("total", ">=", "300"), of("total", "<", "400"), of("total", "<", "800")]
    assert fraction_of_all(interval, "sale", SEEN) == pytest.approx(0.1)
    assert fraction_of_all([of("total", ">", None), of("total", "<", "400")], "sale", SEEN) == 0.005
    assert fraction_of_all([*interval, of("day", "<", "2026-11-01")], "sale", SEEN) == pytest.approx(
        0.1, rel=0.01
    )
    assert 0 < fraction_of_all([of("total", ">", "600"), of("total", "<", "400")], "sale", SEEN) < 1e-6


def columns_of(sql, *plans):
    seen = evidence(
        [statement(0, sql, plans=plans)],
        [table("sale")],
        SALE,
        [index("CREATE UNIQUE INDEX sale_pkey ON sale (id)")],
    )
    (one,) = missing_index.find_missing_indexes(seen)
    return one.objects[1:]


def test_a_range_that_most_rows_satisfy_is_no_key():
    compare_answers(
        "answers/diagnosis/a_range_that_most_rows_satisfy_is_no_key",
        lambda condition: columns_of(
            f"SELECT * FROM sale WHERE customer IN ($1, $3, $4, $5) AND {condition}"
        ),
    )


@pytest.mark.parametrize("value", ["0", "-2.5", "'0'::numeric"])
def test_a_number_in_a_plan_is_a_constant(value):
    node = scan("sale", f"((total > {value}) AND (customer = $1))").root
    total, customer = filter_predicates(node, {"sale": ["customer", "total"]})
    assert (total.value, total.literal) == ("constant", value.strip("'").partition("'")[0])
    assert (customer.value, customer.literal) == ("parameter", None)


def test_a_bound_that_the_text_lacks_is_read_from_a_plan_with_real_values():
    plan = scan("sale", "((customer = 5) AND (total > 0) AND (day < '2026-12-01'::date))", source="seen")
    few = "SELECT * FROM sale WHERE customer IN ($1, $4, $5, $6) AND total > $2 AND day < $3"
    assert columns_of(few, plan) == ("customer",)
    assert columns_of(few) == ("customer", "total")
