"""Plans of a real server, and the statements that they belong to."""

from __future__ import annotations

import re
import threading
from collections import Counter
from dataclasses import replace
from itertools import count

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import uncork
from uncork.analysis.guard.explanations import plan_differences
from uncork.engines.conninfo import resolve
from uncork.engines.embedded import EmbeddedServer
from uncork.engines.postgres import refuse_version
from uncork.engines.watch.observe import explain
from uncork.errors import ConnectError, SetupError, SpecError, UsageError
from uncork.model.database.workload import CapturedStatement
from uncork.model.results.experiment import PlanFacts
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, made_source
from uncork.store.loads import LoadReader
from uncork.workbench.cure.capture import captured_workload
from uncork.workbench.cure.files import README, write_workload
from uncork.workbench.cure.gate import plans_agree
from uncork.workbench.experiment.checking import check_source
from uncork.workbench.profile.databases import profile_database

pytestmark = pytest.mark.postgres

ROWS = 100_000
SETUP = (
    "CREATE TABLE parcel AS SELECT n AS id, n % {rows} / 2 AS place, n % 10 = 0 AS lost "
    "FROM generate_series(1, {rows}) AS n",
    "ALTER TABLE parcel ADD PRIMARY KEY (id)",
    "CREATE INDEX parcel_place ON parcel (place)",
    "VACUUM ANALYZE parcel",
)


@pytest.fixture(scope="module")
def databases(embedded):
    """Connection strings: a source, a copy with its rows, and a copy with a thousandth of them."""
    rows = {"gate_source": ROWS, "gate_whole": ROWS, "gate_part": ROWS // 1000}
    for name, many in rows.items():
        with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        with psycopg.connect(embedded.conninfo(name), autocommit=True) as connection:
            for one in SETUP:
                connection.execute(one.format(rows=many))
    yield [embedded.conninfo(name) for name in rows]
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        for name in rows:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def captured(template, sql, *sets, changes=False):
    return CapturedStatement(template, sql, sets or ((),), "executed", 1.0, 1.0, 0.5, ("parcel",), changes)


STATEMENTS = (
    captured(1, "SELECT * FROM parcel WHERE place = $1", ("7",), ("8",), ("7",)),
    captured(2, "UPDATE parcel SET lost = $2 WHERE id = $1", ("7", None), changes=True),
    captured(3, "SELECT count(*) FROM parcel WHERE lost"),
)


def test_both_sides_plan_with_the_settings_of_a_statements_role(databases):
    source, whole, _ = databases
    scan = replace(STATEMENTS[0], settings={"enable_indexscan": "off", "enable_bitmapscan": "off"})
    found = plans_agree(source, whole, (scan, STATEMENTS[0]))
    assert all(one.same for one in found)
    assert "Seq Scan on parcel" in found[0].source_plan and found[0].source_plan == found[0].copy_plan
    assert "Index Scan using parcel_place" in found[1].copy_plan  # the settings ended with the statement


def test_a_copy_with_the_same_rows_plans_the_statements_alike(databases):
    source, whole, _ = databases
    found = plans_agree(source, whole, STATEMENTS)
    assert [(one.template, one.same, one.difference) for one in found] == [
        (1, True, ""),
        (2, True, ""),
        (3, True, ""),
    ]
    assert "Index Scan using parcel_place on parcel" in found[0].source_plan
    assert found[0].source_plan == found[0].copy_plan
    assert "Filter: lost" in found[2].copy_plan


def test_a_copy_with_few_rows_differs_and_the_nodes_are_named(databases):
    source, _, part = databases
    first, second, third = plans_agree(source, part, STATEMENTS)
    assert (first.same, second.same, third.same) == (False, False, True)
    assert first.difference == (
        "the plan of the source has Index Scan using parcel_place on parcel (about 2 rows) "
        "where the plan of the copy has Seq Scan on parcel (about 2 rows)"
    )
    assert first.copy_plan.startswith("Seq Scan on parcel")
    assert "Index Scan using parcel_pkey on parcel" in second.difference


def test_values_that_lead_to_another_plan_on_one_side_only_void_the_statement(databases):
    source, whole, part = databases
    wide = captured(4, "SELECT sum(id) FROM parcel WHERE place < $1", ("1000000",), ("10",))
    (one,) = plans_agree(source, whole, [wide])
    assert one.same and "Seq Scan" in one.source_plan
    (other,) = plans_agree(source, part, [wide])
    assert not other.same and other.difference.endswith("with set 2 of 2 of values")
    assert "place < '10'" in other.copy_plan or "place < 10" in other.copy_plan


def test_parallel_workers_on_one_side_only_are_a_small_difference(databases):
    source, whole, _ = databases
    names = ("parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size")
    parallel = f"{source} options='{' '.join(f'-c {name}=0' for name in names)}'"
    (one,) = plans_agree(parallel, whole, [STATEMENTS[2]])
    assert one.same
    assert one.difference == (
        "the plan of the source uses 2 parallel workers, the plan of the copy no parallel workers"
    )
    assert "Gather" in one.source_plan and "Gather" not in one.copy_plan


def test_what_a_server_does_not_plan_is_no_agreement(databases):
    source, whole, _ = databases
    with psycopg.connect(whole, autocommit=True) as connection:
        connection.execute("CREATE TABLE new AS SELECT 1 AS id")
    missing, command = plans_agree(
        source, whole, [captured(5, "SELECT * FROM new"), captured(6, "VACUUM parcel")]
    )
    assert not missing.same and missing.source_plan == "" and "new" in missing.difference
    assert missing.difference.startswith("the source does not plan the statement: relation")
    assert command.difference == "the source does not plan the statement: it is a command without a plan"


FILE = """\
[experiment]
name = "settings"
question = "Which?"

[variants.none]
baseline = true

[variants.own]
{own}

[setup]
sql = "CREATE TABLE t (id int)"

[workloads.get]
sql = "SELECT * FROM t"
{server}
"""


def check(choice, own="", server=""):
    text = FILE.format(own=own, server=server)
    return check_source(made_source(text, {}, Options(), "case.toml"), choice, "case.toml")


def refused(choice, **parts):
    with pytest.raises(SpecError) as raised:
        check(choice, **parts)
    return str(raised.value).splitlines()


def test_values_of_settings_are_checked_without_a_server(embedded):
    choice = ServerChoice()
    wrong = '[server.settings]\nwork_mem = "4QB"\nwork_mm = "4MB"\nenable_seqscan = "maybe"\nfsync = false'
    assert refused(choice, server=wrong) == [
        'case.toml:17: server.settings.work_mem: invalid value for parameter "work_mem": "4QB". Valid units '
        'for this parameter are "B", "kB", "MB", "GB", and "TB"',
        'case.toml:18: server.settings.work_mm: unrecognized configuration parameter "work_mm"',
        'case.toml:19: server.settings.enable_seqscan: parameter "enable_seqscan" requires a Boolean value',
    ]
    assert refused(choice, own='settings = { log_directory = "x", shared_buffers = "1QB" }') == [
        'case.toml:9: variants.own.settings.shared_buffers: invalid value for parameter "shared_buffers": '
        '"1QB". Valid units for this parameter are "B", "kB", "MB", "GB", and "TB"',
        "case.toml:9: variants.own.settings.log_directory: cannot differ between variants; move it to "
        "[server.settings]",
    ]
    assert check(choice, own='settings = { shared_buffers = "1GB", work_mem = "1MB" }') == ()
    assert check(choice, own='settings = { jit = false, work_mem = "1MB", "auto_explain.x" = 1 }') == ()


def test_an_existing_server_is_asked_what_a_run_would_ask_and_nothing_changes_there(embedded):
    choice = ServerChoice(dsn=embedded.conninfo())
    assert check(choice, own='settings = { work_mem = "1MB" }') == ()
    (warning,) = check(choice, own='extensions = ["no_such"]')
    assert warning == "variant own will be skipped: the extension no_such is not installed on the server"
    first, second = refused(choice, own='settings = { work_mem = "4QB", shared_buffers = "1GB" }')
    assert first.startswith(
        'case.toml:9: variants.own.settings.work_mem: invalid value for parameter "work_mem"'
    )
    assert second.endswith("without --dsn, uncork starts a server of its own for such a variant")
    with pytest.raises(UsageError, match=r"\[server.settings\] cannot be set on an existing server"):
        check(choice, server="[server.settings]\njit = false")
    with pytest.raises(ConnectError, match="cannot connect to the server"):
        check(ServerChoice(dsn="host=127.0.0.1 port=1 dbname=x"))
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE ROLE reader LOGIN")
        with pytest.raises(SetupError, match='role "reader" may not create databases'):
            check(ServerChoice(dsn=make_conninfo(embedded.conninfo(), user="reader")))
        connection.execute("DROP ROLE reader")
        rows = connection.execute("SELECT 1 FROM pg_database WHERE datname LIKE 'uncork%'").fetchall()
        assert rows == []


def test_an_old_server_is_refused_by_plan_and_run_alike():
    refuse_version(130_000)
    with pytest.raises(SetupError, match="the server runs PostgreSQL 12, and uncork measures on 13 or newer"):
        refuse_version(120_017)


CITY = "SELECT id FROM sale WHERE city = 7"
RARE = "SELECT id FROM sale WHERE note = 'rare'"
CITIES = "SELECT city, count(*) FROM sale GROUP BY city"
JOIN = "SELECT count(*) FROM sale JOIN shop ON shop.city = sale.city WHERE shop.open"


@pytest.fixture
def sales(embedded):
    """A table whose statistics change only when a test asks for it."""
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS sale, shop")
        connection.execute("CREATE TABLE sale (id int, city int, note text) WITH (autovacuum_enabled = off)")
        connection.execute("CREATE TABLE shop (city int, open bool) WITH (autovacuum_enabled = off)")
        connection.execute("INSERT INTO sale SELECT n, n % 100, 'note' FROM generate_series(1, 20000) AS n")
        connection.execute("INSERT INTO shop SELECT n, n % 2 = 0 FROM generate_series(0, 99) AS n")
        connection.execute("CREATE INDEX sale_city ON sale (city)")
        connection.execute("ANALYZE sale; ANALYZE shop")
        yield connection
        connection.execute("DROP TABLE sale, shop")


def plan(connection, statement):
    found = explain(connection, "s1", statement, ())
    assert found is not None
    return PlanFacts(
        (), "report", "any", "s1", found.text, found.shape, "", found.buffers, found.execution_ns
    )


def told(connection, statement, *changes):
    """Return how the plan of a statement differs after changes: its kind and text, or None."""
    before = plan(connection, statement)
    for change in changes:
        connection.execute(change)
    found = plan_differences([before], [plan(connection, statement)])
    return (found[0].kind, found[0].text) if found else None


@pytest.mark.parametrize("statement", [CITY, CITIES, JOIN])
def test_nothing_changed_is_no_difference(sales, statement):
    assert told(sales, statement) is None
    assert told(sales, statement, "ANALYZE sale") is None  # all of so small a table is its sample


def test_rows_that_the_planner_has_not_heard_of_are_told(sales):
    skew = "INSERT INTO sale SELECT n, 7, 'note' FROM generate_series(1, 600) AS n"
    kind, text = told(sales, CITY, skew)
    assert kind == "statistics"
    assert "actual rows 200 → 800" in text


def test_analyze_after_a_skewed_insert_changes_estimates_and_not_the_plan(sales):
    sales.execute("INSERT INTO sale SELECT n, 7, 'note' FROM generate_series(1, 600) AS n")
    kind, text = told(sales, CITY, "ANALYZE sale")
    assert kind == "statistics"
    assert re.search(r"is expected to return 800 rows instead of 20\d$", text.splitlines()[0])
    assert re.search(r"estimated rows 20\d → 800", text)
    assert text.endswith("actual rows 800")


def test_a_lower_statistics_target_changes_estimates_and_not_the_plan(sales):
    sales.execute("UPDATE sale SET note = CASE WHEN id <= 20 THEN 'rare' ELSE 'odd' END WHERE id <= 220")
    sales.execute("ANALYZE sale")
    # Only the most common value is still remembered: all others are taken for equally rare.
    kind, text = told(sales, RARE, "ALTER TABLE sale ALTER note SET STATISTICS 1", "ANALYZE sale")
    assert kind == "statistics"
    assert "Seq Scan on sale: estimated rows 20 → 110" in text
    assert text.endswith("actual rows 20")


def test_a_number_of_values_that_is_told_changes_estimates_and_not_the_plan(sales):
    kind, text = told(sales, CITIES, "ALTER TABLE sale ALTER city SET (n_distinct = 10)", "ANALYZE sale")
    assert kind == "statistics"
    assert "HashAggregate: estimated rows 100 → 10" in text
    assert text.splitlines()[-1].endswith("actual rows 100")


def test_statistics_may_flip_the_plan_and_that_is_another_plan(sales):
    kind, text = told(
        sales,
        CITY,
        "ALTER TABLE sale ALTER city SET (n_distinct = 1)",
        "ALTER TABLE sale ALTER city SET STATISTICS 1",
        "INSERT INTO sale SELECT n, 7, 'note' FROM generate_series(1, 60000) AS n",
        "ANALYZE sale",
    )
    assert kind == "changed"
    assert "+Seq Scan on sale" in text


SHOP = """
CREATE EXTENSION pg_stat_statements;
CREATE TABLE customer (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE orders (
  id bigint PRIMARY KEY, customer int NOT NULL REFERENCES customer, state text NOT NULL,
  made timestamptz NOT NULL, note text, tags text[]
);
CREATE TABLE "Person" (
  id int PRIMARY KEY, "E-Mail" varchar(60), code text, born timestamp, payload jsonb, tags int[],
  words jsonb, story text, during int4range, net inet
);
INSERT INTO "Person"
  SELECT n, 'Person' || n || '@Example.com', n::text, timestamp '2000-01-01' + n * interval '1 hour',
         jsonb_build_object('kind', n % 50), ARRAY[n % 30, 100 + n % 70],
         jsonb_build_array('word' || n % 30), 'a tale' || n % 40,
         int4range(n, n + 1 + n % 5), '10.0.0.0'::inet + n
    FROM generate_series(1, 20000) AS n;
CREATE TABLE parcel AS SELECT n AS id, 'kind ' || n % 20 AS kind FROM generate_series(1, 2000) AS n;
CREATE VIEW known_parcel AS SELECT id, kind AS sort FROM parcel WHERE kind IS NOT NULL;
CREATE SEQUENCE calls;
CREATE FUNCTION changed(text) RETURNS text LANGUAGE sql VOLATILE AS 'SELECT nextval(''calls'') || $1';
CREATE ROLE clerk;
CREATE TABLE bill AS SELECT n AS id, n % 90 AS shop FROM generate_series(1, 2000) AS n;
ALTER TABLE bill ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON bill USING (shop = 7);
GRANT SELECT ON bill TO clerk;
INSERT INTO customer SELECT n, 'O''Hara:' || n FROM generate_series(1, 500) AS n;
INSERT INTO orders
  SELECT n, 1 + n % 500, CASE n % 10 WHEN 0 THEN 'open' ELSE 'shipped' END,
         timestamptz '2026-01-01' + n * interval '1 minute', CASE WHEN n % 2 = 0 THEN 'gift' END
    FROM generate_series(1, 5000) AS n;
"""
BOUND = (
    "SELECT name FROM customer WHERE id = %s",
    "SELECT date_trunc('day', made), pg_sleep(0.03) FROM orders WHERE id = %s",
    "SELECT id FROM known_parcel WHERE sort = %s",
    "SELECT o.id FROM orders AS o JOIN customer AS c ON c.id = o.customer "
    "WHERE c.name = %s AND o.state = %s AND length(o.state) = %s::float8",
)

SECURED = "SELECT id FROM bill WHERE id > %s"
SLOW = "(SELECT pg_sleep(0.03)) IS NOT NULL"
"""So that samples see the text, and with it the constants that are always the same."""
COMPARED = {
    """SELECT id FROM "Person" AS p WHERE lower(p."E-Mail") = %s""": r"person\d+@example\.com",
    f"""SELECT id FROM "Person" WHERE {SLOW} AND payload ->> 'kind' = %s""": r"\d\d?",
    """SELECT id FROM "Person" WHERE payload @> %s::jsonb""": r'\{"kind": \d\d?\}',
    """SELECT id FROM "Person" WHERE payload ? %s""": "kind",
    """SELECT id FROM "Person" WHERE %s::int = ANY (tags)""": r"\d+",
    """SELECT id FROM "Person" WHERE tags @> %s::int[]""": r"\{\d+\}",
    """SELECT id FROM "Person" WHERE tags && ARRAY[%s::int]""": r"\d+",
    """SELECT id FROM "Person" WHERE tags = %s::int[]""": r"\{\d+,\d+\}",
    f"""SELECT id FROM "Person" WHERE {SLOW} AND date_trunc('day', born) = %s::timestamp""": r".* 00:00:00",
    """SELECT id FROM "Person" WHERE code::int = %s::int""": r"\d+",
    """SELECT id FROM "Person" WHERE words @> %s::jsonb""": r'\["word\d\d?"\]',
    """SELECT id FROM "Person" WHERE words ? %s""": r"word\d\d?",
    f"""SELECT id FROM "Person" WHERE {SLOW}
        AND to_tsvector('simple', story) @@ plainto_tsquery('simple', %s)""": r"a|tale\d\d?",
    """SELECT id FROM "Person" WHERE during @> %s::int""": r"\d+",
    """SELECT id FROM "Person" WHERE during && %s::int4range""": r"\[\d+,\d+\)",
    """SELECT id FROM "Person" WHERE net <<= %s::inet""": r"10\.0\.\d+\.\d+",
}
"""Statements whose values are in no statistics, and what their values look like."""
FORBIDDEN = """SELECT id FROM "Person" WHERE changed(code) = %s AND id < 2"""
GIVEN = (
    *("x", "7", '{"kind": 7}', "kind", 7, [7], 7, [7, 107], "2000-01-05", 7, '["word7"]', "word7"),
    *("tale7", 7, "[7,9)", "10.0.1.0/24"),
)
SENT = (
    "SELECT id FROM orders WHERE state = 'open' AND customer IN ({0}, 7, 9) ORDER BY made DESC LIMIT 5",
    "SELECT date_trunc('day', made), count(*) FROM orders WHERE customer = {0} GROUP BY 1 -- {0}",
    "SELECT name FROM customer WHERE name LIKE 'O''Hara:{0}%'",
    "UPDATE orders SET note = 'say \"hi\" :there \\o/' WHERE id = {0}",
    "INSERT INTO orders (id, customer, state, made) VALUES ({1}, {0}, 'open', now())",
    "SELECT id FROM orders WHERE tags = '{{a,b}}' OR id = {0}",
    "VACUUM customer",
)


@pytest.fixture(scope="module")
def server():
    found = EmbeddedServer(
        {"shared_preload_libraries": "pg_stat_statements", "track_activity_query_size": 512}
    )
    found.start()
    with psycopg.connect(found.conninfo(), autocommit=True) as connection:
        connection.execute(SHOP)
        connection.execute("VACUUM ANALYZE")
    yield found
    found.stop()


@pytest.fixture(scope="module")
def watched(server, tmp_path_factory):
    """The run of a watch while a client sends every kind of statement."""
    over = threading.Event()

    def work():
        clerk = psycopg.connect(f"{server.conninfo()} options='-c role=clerk'", autocommit=True)
        with clerk, psycopg.connect(server.conninfo(), autocommit=True) as connection:
            for number in count(10_000):
                if over.is_set():
                    return
                connection.execute(BOUND[0], (number % 500,))
                connection.execute(BOUND[1], (7,))
                connection.execute(BOUND[2], (f"kind {number % 20}",))
                connection.execute(BOUND[3], ("O'Hara:7", "open", 4))
                clerk.execute(SECURED, (number % 500,))
                if number % 4 == 0:
                    connection.execute(FORBIDDEN, ("x",))
                    for text, value in zip(COMPARED, GIVEN, strict=True):
                        connection.execute(text, (value,))
                for text in SENT:
                    connection.pgconn.exec_(text.format(1 + number % 500, number).encode())
                connection.pgconn.exec_(
                    f"SELECT pg_sleep(0.02), {number}, name FROM customer WHERE id = 3".encode()
                )

    worker = threading.Thread(target=work)
    worker.start()
    try:
        return profile_database(
            tmp_path_factory.mktemp("runs"),
            resolve(server.conninfo()),
            seconds=2.0,
            rate_hz=50.0,
            command="uncork profile db",
        ).folder
    finally:
        over.set()
        worker.join()


def test_a_watched_workload_is_captured_written_and_sent_again(server, watched, tmp_path):
    workload = captured_workload(watched, server.conninfo())
    by_text = {one.sql: one for one in workload.statements}
    found = by_text["SELECT name FROM customer WHERE id = $1"]
    assert (found.origin, found.tables, found.changes) == ("drawn", ("customer",), False)
    assert len({int(value) // 50 for (value,) in found.sets}) == 10, "the values spread over all customers"
    written = by_text["SELECT date_trunc('day', made), pg_sleep(0.03) FROM orders WHERE id = $1"]
    assert written.origin == "drawn", "a text of a session shows what is always the same"
    beneath = by_text["SELECT id FROM known_parcel WHERE sort = $1"]
    assert len({kind for (kind,) in beneath.sets if kind.startswith("kind ")}) > 10
    joined = next(one for one in workload.statements if "JOIN customer" in one.sql)
    assert joined.origin == "rows"
    with psycopg.connect(server.conninfo()) as connection:
        found_rows = [connection.execute(BOUND[3].encode(), each).rowcount for each in joined.sets]
    assert min(found_rows) > 0, "the values are those of a row and of the row that it refers to"
    (slow,) = (one for one in workload.statements if "pg_sleep(0.02)" in one.sql)
    assert slow.origin == "seen" and len(slow.sets) >= 3
    (stored,) = (one for one in workload.statements if one.sql.startswith("INSERT"))
    assert stored.changes and "clock_timestamp()" in stored.sql
    origins = [_drawn(workload, text, like) for text, like in COMPARED.items()]
    assert origins == ["drawn"] * len(COMPARED)
    (forbidden,) = (one.reason for one in workload.missing if "changed" in one.text)
    assert "calls the function changed, and uncork executes only immutable functions" in forbidden
    reasons = Counter(one.reason.split(":")[0] for one in workload.missing)
    assert reasons["it is a utility statement, or the grammar rejects its text"] == 1
    assert sum(one.share for one in (*workload.statements, *workload.missing)) == pytest.approx(1.0)

    folder = tmp_path / "mix"
    scripts = write_workload(workload, folder)
    assert len(scripts) <= 128 and "executions a second" in (folder / README).read_text()
    with pytest.raises(UsageError, match="not empty"):
        write_workload(workload, folder)
    run = uncork.load_sql(
        dsn=server.conninfo(),
        script=str(folder),
        clients=2,
        transactions=50,
        runs=tmp_path / "runs",
        progress=False,
    )
    assert (run.result.counts.succeeded, run.result.counts.failed) == (100, 0)
    sent = {one["name"].split("-")[1]: one["weight"] for one in LoadReader(run.folder).plan()["scripts"]}
    assert len(sent) == len(workload.statements) and min(sent.values()) > 100


def _drawn(workload, text, like):
    """Return the origin of a statement's values, which come from many rows and look like real ones."""
    (found,) = (one for one in workload.statements if one.sql == text.replace("%s", "$1"))
    assert all(re.fullmatch(like, value) for (value,) in found.sets), found.sets
    assert len(set(found.sets)) > 5 or like == "kind"
    return found.origin


def test_a_copy_cannot_execute_what_a_policy_adds_a_condition_to(watched):
    whole = captured_workload(watched, None)
    (found,) = (one for one in whole.statements if "bill" in one.sql)
    workload = captured_workload(watched, None, for_copy=True)
    (missing,) = (one for one in workload.missing if one.template == found.template)
    assert missing.reason.startswith("policy own of table bill adds a condition to it for role clerk")
    assert workload.statements == tuple(one for one in whole.statements if one != found)


def test_a_stored_run_is_enough(watched):
    alone = captured_workload(watched, None)
    found = next(one for one in alone.statements if one.sql == "SELECT name FROM customer WHERE id = $1")
    assert len({int(value) // 50 for (value,) in found.sets}) == 10
    (reason,) = (one.reason for one in alone.missing if "lower" in one.text)
    assert "without a connection to the database" in reason
