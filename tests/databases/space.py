"""Databases with dead rows and bloat."""

from __future__ import annotations

from random import Random
from threading import Event

from psycopg import Connection

from databases.scenario import Scenario, sends
from databases.server import OFTEN


def read_all(connection: Connection, over: Event, _chance: Random) -> None:
    """Read the rest of a table most of whose rows are deleted."""
    while not over.is_set():
        connection.execute("SELECT count(*), max(length(filler)) FROM gone").fetchall()


def some_rows(chance: Random) -> list[int]:
    """Return the keys of rows of the table `device`."""
    return sorted(chance.sample(range(1, 100_000), 200))


DEVICE = (
    "CREATE TABLE device AS SELECT n AS id, n % 5000 AS site, md5(n::text) AS serial, "
    "n * 7 % 90000 AS model, now() AS seen, 0 AS readings FROM generate_series(1, 100000) AS n",
    "ALTER TABLE device ADD PRIMARY KEY (id)",
    "CREATE INDEX device_site ON device (site)",
    "CREATE INDEX device_serial ON device (serial)",
    "CREATE INDEX device_model ON device (model, site)",
)
FAST_COMMITS = ("SET synchronous_commit = off",)
TOUCH = sends("UPDATE device SET seen = now() WHERE id = ANY (%s)", some_rows, before=FAST_COMMITS)
COUNT = sends("UPDATE device SET readings = readings + 1 WHERE id = ANY (%s)", some_rows, before=FAST_COMMITS)
READ = sends(
    "SELECT * FROM device WHERE site = %s LIMIT 1", lambda chance: chance.randrange(5000), pause=0.001
)

PURCHASES = 2500
LINE = (
    f"CREATE TABLE line AS SELECT n AS id, n % {PURCHASES} AS purchase, 0 AS shipped, "
    "repeat('x', 160) AS note FROM generate_series(0, 99999) AS n ORDER BY purchase",
    "ALTER TABLE line ADD PRIMARY KEY (id)",
    "CREATE INDEX line_purchase ON line (purchase)",
    "VACUUM ANALYZE line",
)
SHIP = sends(
    "UPDATE line SET shipped = shipped + 1 WHERE purchase = ANY (%s)",
    lambda chance: sorted(chance.sample(range(PURCHASES), 5)),
    before=FAST_COMMITS,
)
"""Updates all rows of a page at once, so that no version can be pruned before the next one needs room."""

TOPIC = "https://example.org/hooks/" + 40 * "orders/"
JOB = (
    "CREATE TABLE job (id int, topic text, body text) WITH (autovacuum_vacuum_insert_threshold = -1)",
    f"INSERT INTO job SELECT n, '{TOPIC}', repeat('x', 40) FROM generate_series(1, 200000) AS n",
    "CREATE INDEX job_topic_id ON job (topic, id)",
    "VACUUM ANALYZE job",
)
WORK_OFF = "DELETE FROM job WHERE id <= {}"
"""Leaves dead entries where the queue's index begins."""
NEXT = sends("SELECT * FROM job WHERE topic = %s ORDER BY id LIMIT 1", lambda _: TOPIC)
NEXT_MANY = sends("SELECT * FROM job WHERE topic = %s ORDER BY id LIMIT 5000", lambda _: TOPIC)

TICKET = (
    "CREATE TABLE ticket AS SELECT n AS id, 0 AS n, repeat('x', 200) AS body "
    "FROM generate_series(1, 2000) AS n",
    "ALTER TABLE ticket ADD PRIMARY KEY (id)",
    "VACUUM ANALYZE ticket",
)
CHANGE_OFTEN = (
    *FAST_COMMITS,
    "DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() "
    "AND application_name = 'reports' AND backend_xmin IS NOT NULL) "
    "LOOP COMMIT; PERFORM pg_sleep(0.01); END LOOP; END $$",
    "DO $$ BEGIN FOR i IN 1..12000 LOOP UPDATE ticket SET n = n + 1 WHERE id = 1 + i % 2000; COMMIT; "
    "END LOOP; END $$",
    "SELECT pg_sleep(1.1)",
    "VACUUM ticket",
)
"""Waits for the report, then makes more transactions than autovacuum_naptime usually sees, and cleans up in
vain: autovacuum might come only after the watch. A session reports what it counted at most once a second; if
it did so after VACUUM, the dead rows would count twice."""
COUNT_TICKETS = sends("SELECT sum(n) FROM ticket")


def report_for_long(connection: Connection, over: Event, _chance: Random) -> None:
    """Compute a report with many statements, all of which see the same state."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    connection.execute("SELECT 1")
    while not over.is_set():
        connection.execute(LONG)
    connection.execute("COMMIT")


LONG = "SELECT sum(sqrt(a * b)) FROM generate_series(1, 1500) AS a, generate_series(1, 1000) AS b"
CHANGE = ("UPDATE ticket SET n = n + 1 WHERE id = %s", lambda chance: chance.randrange(1, 2001))

VISIT = (
    "CREATE TABLE visit AS SELECT lpad(n::text, 48, '0') AS code, repeat('x', 400) AS page "
    "FROM generate_series(1, 150000) AS n",
    "CREATE INDEX visit_code ON visit (code)",
    "DELETE FROM visit WHERE code NOT LIKE '%00'",
    "VACUUM ANALYZE visit",
)
SHUFFLED = (
    "CREATE TABLE visit (code float8, page text)",
    "CREATE INDEX visit_code ON visit (code)",
    "INSERT INTO visit SELECT 1 + random(), repeat('x', 200) FROM generate_series(1, 50000) AS n",
    "VACUUM ANALYZE visit",
)
COUNT_CODES = sends("SELECT count(code) FROM visit")
FROZEN = f"((txid_current() + {(1 << 32) - 1_200_000_000}) % {1 << 32})::text::xid"
"""As if 1 200 million transactions had passed since: a server needs days for them."""
UNFROZEN = (
    "CREATE TABLE item (id int, note text) "
    "WITH (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1)",
    "INSERT INTO item SELECT n, repeat('x', 60) FROM generate_series(0, 99999) AS n",
    "ALTER TABLE item ADD PRIMARY KEY (id)",
    "ANALYZE item",
    f"UPDATE pg_class SET relfrozenxid = {FROZEN} WHERE relname = 'item'",
)

SCENARIOS = (
    Scenario(
        "a report that keeps dead rows",
        TICKET,
        [
            ("reports", report_for_long),
            ("desk", sends(*CHANGE, pause=0.05, before=CHANGE_OFTEN)),
            *[("shop", COUNT_TICKETS)] * 3,
        ],
        "vacuum-held-back",
        names=("ticket", "reports"),
        remedy=("shorter transactions", "pg_terminate_backend"),
    ),
    Scenario(
        "a report while few rows change",
        TICKET,
        [("reports", report_for_long), ("desk", sends(*CHANGE, pause=0.05)), *[("shop", COUNT_TICKETS)] * 2],
    ),
    Scenario(
        "a bloated table",
        (
            "CREATE TABLE gone AS SELECT n, repeat('x', 900) AS filler FROM generate_series(1, 60000) AS n",
            "DELETE FROM gone WHERE n % 10 <> 0",
            "VACUUM ANALYZE gone",
        ),
        [("reports", read_all)],
        "bloat",
    ),
    Scenario(
        "an index that nothing reads prevents heap-only updates",
        (*DEVICE, "CREATE INDEX device_seen ON device (seen)", "VACUUM ANALYZE device"),
        [("shop", TOUCH), ("shop", TOUCH), ("web", READ)],
        "hot-prevented",
        names=("device_seen", "device"),
        remedy=("DROP INDEX CONCURRENTLY device_seen",),
    ),
    Scenario(
        "rows of a full page that are updated together",
        LINE,
        [("shop", SHIP)] * 2,
        "hot-prevented",
        names=("table line", "no room"),
        remedy=("fillfactor = 80",),
    ),
    Scenario(
        "updates that are heap-only",
        (*DEVICE, "ALTER TABLE device SET (fillfactor = 70)", "VACUUM (FULL, ANALYZE) device"),
        [("shop", COUNT), ("shop", COUNT), ("web", READ)],
    ),
    Scenario(
        "an index that is mostly empty",
        VISIT,
        [("reports", COUNT_CODES)] * 3,
        "index-bloat",
        names=("visit_code",),
        remedy=("REINDEX INDEX CONCURRENTLY visit_code",),
    ),
    Scenario("an index that was filled in random order", SHUFFLED, [("reports", COUNT_CODES)] * 2),
    Scenario(
        "a table that autovacuum does not get to freeze",
        UNFROZEN,
        [("shop", sends("SELECT * FROM item WHERE id = %s", lambda chance: chance.randrange(100_000)))] * 2,
        "not-frozen",
        names=("item",),
        remedy=("VACUUM (FREEZE, VERBOSE) item",),
        settings=OFTEN,
    ),
    Scenario(
        "a queue with fewer dead rows than autovacuum tolerates",
        (
            *JOB,
            WORK_OFF.format(30_000),
        ),
        [("worker", NEXT)] * 3,
        "autovacuum-behind",
        names=("job",),
        remedy=("autovacuum_vacuum_scale_factor",),
    ),
    Scenario(
        "a queue whose autovacuum pauses nearly always",
        (
            *JOB,
            "ALTER TABLE job SET (autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1)",
            WORK_OFF.format(100_000),
        ),
        [("worker", NEXT)] * 3,
        "autovacuum-behind",
        names=("job",),
        remedy=("autovacuum_vacuum_cost_limit",),
        seldom=True,
    ),
    Scenario(
        "a queue without autovacuum",
        (*JOB, "ALTER TABLE job SET (autovacuum_enabled = off)", WORK_OFF.format(100_000)),
        [("worker", NEXT)] * 3,
        "dead-rows",
        names=("job",),
        remedy=("autovacuum_enabled",),
    ),
    Scenario(
        "a queue that was vacuumed",
        (*JOB, WORK_OFF.format(10_000), "VACUUM ANALYZE job"),
        [("worker", NEXT), *[("export", NEXT_MANY)] * 2],
    ),
)
