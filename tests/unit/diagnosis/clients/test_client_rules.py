"""Rules about what clients do: lookups for each row, pauses in transactions, connections."""

from dataclasses import replace

import pytest

from fakes.database_results import database_result
from fakes.findings import compare_findings
from uncork.diagnosis.evidence import Evidence, Piece, Statement, known_shape
from uncork.diagnosis.findings import find_findings
from uncork.model.database.catalogue import Catalogue, ColumnFacts
from uncork.model.database.sessions import SessionRates
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.results.database import CounterFacts, ForeignKeyFacts
from uncork.model.results.database_transactions import InTransaction
from uncork.profile.statement_shape import statement_shape

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


HEALTHY_LOOKUPS = {
    "other requests look up as well": lists(lookups=9_500),
    "fewer lookups than rows": lists(lookups=6_000),
    "no list is connected with the key": lists(foreign_keys=(),
                                               listed="SELECT id FROM orders WHERE customer = $1",
                                               lookup="SELECT name FROM product WHERE name = $1"),
    "short lists": lists(calls=2_000),
    "few lists": lists(calls=8, rows=800, lookups=800),
    "more sessions than lists": lists(calls=50, rows=2_000, lookups=2_000, busy=20.0),
    "lookups that take no time": lists(busy=0.01),
    "lookups that return many rows": replace(lists(),
                                             statements={0: statement(0, LIST, calls=200,
                                                                      rows=8_000),
                                                         1: statement(1, LOOKUP, calls=8_000,
                                                                      rows=80_000)}),
    "nothing but lookups": evidence(statement(1, LOOKUP, calls=100_000, rows=100_000),
                                    pieces=(working(1, 4.0),)),
    "a write for each row": lists(lookup="UPDATE product SET name = $2 WHERE id = $1"),
}  # fmt: skip


@pytest.mark.parametrize("case", HEALTHY_LOOKUPS)
def test_lookups_that_may_be_requests_of_their_own_are_no_finding(case):
    assert find_findings(HEALTHY_LOOKUPS[case]) == ()


def counted(**facts):
    """Return the evidence of a watch with 225 reports, whose lookups take little time."""
    watched = database_result(transactions=(), blockers=(), writers=(), counters=())
    return lists(
        **{"calls": 225, "rows": 26_962, "lookups": 26_962, "busy": 0.001, "database": watched, **facts}
    )


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


LOOPED = (
    "INSERT INTO product (id, name) VALUES ($1, $2)",
    "UPDATE product SET name = $1 WHERE id = $2",
    "DELETE FROM product WHERE id = $1",
    "UPDATE product SET name = lower($1) WHERE id = $2",
    "INSERT INTO product (id, name) VALUES ($1, now())",
    LOOKUP,
    "SELECT count(*) FROM product WHERE id = $1",
    "SELECT name FROM product WHERE id = $1 LIMIT $2",
)


def two_lookups():
    seen = lists()
    other = statement(2, "SELECT n FROM stock WHERE product = $1", calls=8_000, rows=8_000)
    return replace(seen, statements={**seen.statements, 2: other}, pieces=(*seen.pieces, working(2, 0.6)))


def without_rates():
    of_shop = (("sessions", 12_000.0), ("xact_commit", 24_000.0))
    counters = [CounterFacts("pg_stat_database", "shop", *each) for each in of_shop]
    counters.append(CounterFacts("pg_stat_database", "other", "sessions", 60_000.0))
    result = database_result(counters=tuple(counters), transactions=(), blockers=(), writers=())
    return replace(connecting(), rates=None, database=result)


def test_what_is_found_word_for_word():
    compare_findings("client_rules", [
        ("a lookup for each row of a list is one by one", find_findings(lists())),
        ("without shapes a foreign key shows which tables belong together",
         find_findings(lists(shaped=False))),
        ("lookups that take no time cost round trips", find_findings(counted())),
        ("a remote call inside a transaction is named with the statement before it",
         find_findings(pausing())),
        ("a connection for each request costs processor time", find_findings(connecting())),
        ("numbers drawn one by one are drawn together or by the insert",
         looped("SELECT nextval($1)")),
        ("two lookups for each row are one finding", find_findings(two_lookups())),
        ("without rates the counters of the watched database count connections",
         find_findings(without_rates())),
        *((f"a loop in a transaction gets the statement for all its rows: {sql}", looped(sql))
          for sql in LOOPED),
    ])  # fmt: skip
