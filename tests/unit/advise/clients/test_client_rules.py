"""Rules about what clients do: lookups for each row, pauses in transactions, connections."""

from dataclasses import replace

import pytest

from fakes.database_results import database_result
from uncork.advise.evidence import Evidence, Piece, Statement, known_shape
from uncork.advise.findings import find_findings
from uncork.model.database.catalogue import Catalogue, ColumnFacts
from uncork.model.database.sessions import SessionRates
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.results.database import CounterFacts, ForeignKeyFacts
from uncork.model.results.database_transactions import InTransaction
from uncork.profile.statement_shape import statement_shape
from uncork.report.findings import finding_headline
from uncork.report.headline import fits

COLUMNS = {"orders": ["id", "customer", "product"], "product": ["id", "name"], "stock": ["product", "n"]}
LIST = "SELECT id, product FROM orders WHERE customer = $1"
LOOKUP = "SELECT name FROM product WHERE id = $1"
KEY = ForeignKeyFacts("orders_product_fkey", "orders", 1, "product", 2, "product", True)


def statement(number, sql, *, calls, rows, shaped=True):
    text = sql.lower()
    for parameter in ("$1", "$2", "$3"):
        text = text.replace(parameter, "?")
    shape = statement_shape(sql, COLUMNS) if shaped else None
    return Statement(number, text, sql, calls=calls, rows=rows, mean_ns=20e3, shape_of=known_shape(shape))


def working(number, sessions, *, application="shop", wait_class=CPU):
    return Piece(number, wait_class, "", application, "app", (sessions,) * 20)


def evidence(*statements, pieces, **facts):
    return Evidence(60.0, tuple(pieces), {one.number: one for one in statements}, **facts)


def lists(*, calls=200, rows=8_000, lookups=8_010, listed=LIST, lookup=LOOKUP, busy=0.5, **facts):
    shaped = facts.pop("shaped", True)
    return evidence(
        statement(0, listed, calls=calls, rows=rows, shaped=shaped),
        statement(1, lookup, calls=lookups, rows=lookups, shaped=shaped),
        pieces=(working(0, 0.2), working(1, busy)),
        **{"foreign_keys": (KEY,), **facts},
    )


def test_a_lookup_for_each_row_of_a_list_is_one_by_one():
    (one,) = find_findings(lists())
    assert (one.rule, one.objects, one.templates) == ("lookup-loop", ("product", "shop"), (1,))
    assert one.headline == "Application shop looks up rows of product one by one, 40 after each list"
    assert fits(finding_headline(one))
    assert one.bill.share == pytest.approx(0.5 / 0.7)
    assert one.candidates[0].sql == "SELECT name FROM product WHERE id = ANY ($1);"


def test_two_lookups_for_each_row_are_one_finding():
    seen = lists()
    other = statement(2, "SELECT n FROM stock WHERE product = $1", calls=8_000, rows=8_000)
    seen = replace(seen, statements={**seen.statements, 2: other}, pieces=(*seen.pieces, working(2, 0.6)))
    (one,) = find_findings(seen)
    assert one.templates == (2, 1)
    assert "2 templates are called once for each row of the list." in one.evidence


def test_without_shapes_a_foreign_key_shows_which_tables_belong_together():
    (one,) = find_findings(lists(shaped=False))
    assert one.rule == "lookup-loop"


HEALTHY_LOOKUPS = {
    "other requests look up as well": lists(lookups=9_500),
    "fewer lookups than rows": lists(lookups=6_000),
    "no list is connected with the key": lists(
        foreign_keys=(),
        listed="SELECT id FROM orders WHERE customer = $1",
        lookup="SELECT name FROM product WHERE name = $1",
    ),
    "short lists": lists(calls=2_000),
    "few lists": lists(calls=8, rows=800, lookups=800),
    "more sessions than lists": lists(calls=50, rows=2_000, lookups=2_000, busy=20.0),
    "lookups that take no time": lists(busy=0.01),
    "lookups that return many rows": replace(
        lists(),
        statements={
            0: statement(0, LIST, calls=200, rows=8_000),
            1: statement(1, LOOKUP, calls=8_000, rows=80_000),
        },
    ),
    "nothing but lookups": evidence(
        statement(1, LOOKUP, calls=100_000, rows=100_000), pieces=(working(1, 4.0),)
    ),
    "a write for each row": lists(lookup="UPDATE product SET name = $2 WHERE id = $1"),
}


@pytest.mark.parametrize("case", HEALTHY_LOOKUPS)
def test_lookups_that_may_be_requests_of_their_own_are_no_finding(case):
    assert find_findings(HEALTHY_LOOKUPS[case]) == ()


def counted(**facts):
    """Return the evidence of a watch with 225 reports, whose lookups take little time."""
    watched = database_result(transactions=(), blockers=(), writers=(), counters=())
    return lists(
        **{"calls": 225, "rows": 26_962, "lookups": 26_962, "busy": 0.001, "database": watched, **facts}
    )


def test_lookups_that_take_no_time_cost_round_trips():
    (found,) = find_findings(counted())
    assert (found.rule, found.templates, found.bill) == ("lookup-loop", (1,), None)
    assert found.headline == "Application shop may look up rows of product one by one, 120 after each list"
    assert found.cost == "120 round trips for each list"
    assert "The list returned 26 962 rows, and the lookup was called 26 962 times." in found.evidence
    assert fits(finding_headline(found))


@pytest.mark.parametrize(
    "facts",
    [
        {"lookups": 27_300},  # other requests look up as well
        {"calls": 60, "rows": 7_000, "lookups": 7_000},  # lists open at both ends of the watch hide too much
        {"calls": 20_000, "rows": 100_000, "lookups": 100_000},  # short lists
        {"lookup": "SELECT name FROM product WHERE name = $1", "foreign_keys": ()},
        {"listed": "SELECT count(*) FROM orders", "rows": 225, "lookups": 26_962},  # who knows how many
        {"database": None},
    ],
)
def test_counts_that_independent_lookups_may_have_are_no_finding(facts):
    assert find_findings(counted(**facts)) == ()


def in_transaction(**facts):
    known = {"application": "shop", "user": "app", "template": 0, "text": LIST.lower(), "sessions": 3.0}
    step = {"gap_ns": 120_000_000, "per_transaction": 1.0, "idle_ns": 130_000_000, "open_ns": 140_000_000}
    rest = {"length_ns": 130_000_000, "part": 0.9, "held_age": None, "samples": 100}
    return InTransaction(**{**known, **step, **rest, **facts})


def pausing(*, idle=3.0, busy=0.2, **facts):
    result = database_result(transactions=(in_transaction(**facts),), blockers=(), writers=(), counters=())
    return evidence(
        statement(0, LIST, calls=1_000, rows=1_000),
        pieces=(working(0, idle, wait_class=IDLE), working(0, busy)),
        database=result,
    )


def test_a_remote_call_inside_a_transaction_is_named_with_the_statement_before_it():
    (one,) = find_findings(pausing())
    assert one.rule == "slow-step-in-transaction"
    assert one.headline == "Application shop pauses for 120 ms inside its transactions"
    assert one.statement == LIST.lower()
    assert one.bill.share == pytest.approx(3.0 / 3.2)


@pytest.mark.parametrize(
    "facts",
    [
        {"gap_ns": 8_000_000},  # a mapper that builds its next statement
        {"gap_ns": 40_000_000_000},  # a forgotten transaction
        {"samples": 3},
        {"idle": 1.0, "busy": 2.0},
        {"idle": 0.3, "busy": 0.0},
    ],
)
def test_pauses_that_are_short_or_rare_are_no_finding(facts):
    assert find_findings(pausing(**facts)) == ()


def connecting(*, opened=200.0, commits=400.0, busy=0.5, **facts):
    rates = SessionRates(commits=commits, rollbacks=0.0, opened=opened)
    return evidence(
        statement(1, LOOKUP, calls=100, rows=100), pieces=(working(1, busy),), rates=rates, **facts
    )


def test_a_connection_for_each_request_costs_processor_time():
    (one,) = find_findings(connecting())
    assert one.rule == "connection-per-request"
    assert one.headline == "200 connections a second are opened by application shop, for few statements each"
    assert fits(finding_headline(one))
    assert one.bill.share == pytest.approx(0.6 / 1.1)
    assert "PgBouncer" in one.candidates[1].text
    assert (one.candidates[0].habit, one.candidates[0].per_hour) == ("connects", 720_000.0)


@pytest.mark.parametrize(
    "facts",
    [
        {"opened": 2.0},
        {"opened": None},
        {"commits": 20_000.0},  # hundred transactions a connection
        {"busy": 20.0},  # little beside the rest
    ],
)
def test_connections_that_cost_little_are_no_finding(facts):
    assert find_findings(connecting(**facts)) == ()


def test_without_rates_the_counters_of_the_watched_database_count_connections():
    counters = tuple(
        CounterFacts("pg_stat_database", name, counter, delta)
        for name, counter, delta in (
            ("shop", "sessions", 12_000.0),
            ("shop", "xact_commit", 24_000.0),
            ("other", "sessions", 60_000.0),
        )
    )
    result = database_result(counters=counters, transactions=(), blockers=(), writers=())
    (one,) = find_findings(replace(connecting(), rates=None, database=result))
    assert one.headline.startswith("200 connections a second")


def column(table, number, name, kind):
    return ColumnFacts(table, 1, number, name, kind, kind, True, "", "", "")


CATALOGUE = Catalogue(
    columns={"product": (column("product", 1, "id", "bigint"), column("product", 2, "name", "text"))}
)


def looped(sql):
    """Return the finding about a client that sends a statement in a loop within a transaction."""
    one = statement(0, sql, calls=60_000, rows=60_000)
    loop = in_transaction(text=one.text, gap_ns=300_000, per_transaction=500.0, length_ns=200_000_000)
    result = database_result(transactions=(loop,), blockers=(), writers=(), counters=())
    seen = evidence(
        one, pieces=(working(0, 0.8, wait_class=IDLE), working(0, 0.2)), database=result, catalogue=CATALOGUE
    )
    (found,) = find_findings(seen)
    return found


def test_numbers_drawn_one_by_one_are_drawn_together_or_by_the_insert():
    found = looped("SELECT nextval($1)")
    assert "RETURNING" in found.candidates[0].text
    assert "INCREMENT BY 50" in found.candidates[1].text


@pytest.mark.parametrize(
    ("sql", "headline", "batch"),
    [
        (
            "INSERT INTO product (id, name) VALUES ($1, $2)",
            "inserts 60 000 rows into product",
            "INSERT INTO product (id, name) SELECT * FROM unnest($1::bigint[], $2::text[]);",
        ),
        (
            "UPDATE product SET name = $1 WHERE id = $2",
            "updates 60 000 rows of product",
            "UPDATE product AS old SET name = new.name FROM unnest($1::bigint[], $2::text[]) "
            "AS new (id, name) WHERE old.id = new.id;",
        ),
        (
            "DELETE FROM product WHERE id = $1",
            "deletes 60 000 rows from product",
            "DELETE FROM product WHERE id = ANY ($1);",
        ),
        ("UPDATE product SET name = lower($1) WHERE id = $2", "updates 60 000 rows of product", ""),
        ("INSERT INTO product (id, name) VALUES ($1, now())", "inserts 60 000 rows into product", ""),
        (LOOKUP, "sends 60 000 statements", "SELECT name FROM product WHERE id = ANY ($1);"),
        ("SELECT count(*) FROM product WHERE id = $1", "sends 60 000 statements", ""),
        ("SELECT name FROM product WHERE id = $1 LIMIT $2", "sends 60 000 statements", ""),
    ],
)
def test_a_loop_in_a_transaction_gets_the_statement_for_all_its_rows(sql, headline, batch):
    found = looped(sql)
    assert found.rule == "one-by-one"
    assert found.headline == f"Application shop {headline} one by one within transactions"
    assert fits(finding_headline(found))
    assert found.candidates[0].sql == batch
