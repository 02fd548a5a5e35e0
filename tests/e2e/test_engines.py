"""Variants on several engines, from the file to the report and its exit status."""

from __future__ import annotations

import json

import pytest

from uncork.engines.places import servers_folder

pytestmark = pytest.mark.postgres

STORES = '''
[experiment]
name = "stores"
question = "Row or column?"

[variants.postgres]
baseline = true

[variants.duckdb]
engine = "duckdb"
settings = { threads = 1 }
setup.sql = """
CREATE TABLE t (id integer, zone text, amount decimal(9, 2));
INSERT INTO t SELECT n, 'z' || (n % 7), n / 4.0 FROM range(1, 30001) AS r(n);
"""

[variants.sqlite]
engine = "sqlite"
setup.sql = """
CREATE TABLE t (id integer PRIMARY KEY, zone text, amount real);
INSERT INTO t WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 30000)
SELECT n, 'z' || (n % 7), n / 4.0 FROM r;
"""

[setup]
sql = """
CREATE TABLE t (id integer, zone text, amount numeric(9, 2));
INSERT INTO t SELECT n, 'z' || (n % 7), n / 4.0 FROM generate_series(1, 30000) AS n
"""

[workloads.sum]
sql = "SELECT zone, sum(amount), avg(amount), NULL FROM t WHERE id > :least GROUP BY zone"
operations = 4
warmup_operations = 1
parameters.least = { generator = { kind = "uniform", max = 9 } }

[stop]
blocks = 2
budget = "200s"
precision = "50%"
'''


@pytest.fixture
def nothing_left():
    yield
    assert list(servers_folder().glob("db-*")) == []


def result(uncork):
    (folder,) = uncork.runs
    return json.loads((folder / "result.json").read_text())


@pytest.mark.thorough
@pytest.mark.slow
def test_a_row_store_and_column_stores_answer_one_question(uncork, nothing_left):
    done = uncork("run", uncork.write(STORES), "--expect", "duckdb=faster")
    assert done.returncode == 0, done.stderr
    found = result(uncork)
    assert [one["verdict"] for one in found["comparisons"]].count("refused") == 0, "numeric meets real"
    assert {one["name"]: one["shares_process"] for one in found["engines"]} == {
        "postgresql": False,
        "duckdb": True,
        "sqlite": True,
    }
    assert all(one["overhead_p50_ns"] > 0 and one["version"] for one in found["engines"])
    costs = {cost["variant"]: cost for cost in found["costs"]}
    assert costs["duckdb"]["client_user_ns"] is None
    assert costs["duckdb"]["server_user_ns"] + costs["duckdb"]["server_system_ns"] > 0
    page = (uncork.runs[0] / "report.html").read_text()
    assert "Engines and their clients" in page
    assert {size["variant"] for size in found["sizes"]} == {"postgres", "duckdb", "sqlite"}


def test_a_wrong_answer_on_another_engine_is_refused_with_the_row_that_differs(uncork, nothing_left):
    wrong = STORES.replace(
        "SELECT n, 'z' || (n % 7), n / 4.0 FROM range", "SELECT n, 'z' || (n % 7), n // 4 FROM range"
    )
    assert wrong != STORES
    done = uncork("run", uncork.write(wrong), "--expect", "duckdb=faster", "--precision", "90%")
    assert done.returncode == 3, done.stderr
    assert (
        "duckdb is refused on sum: wrong answer: the first row that differs in sorted order is row 1: (z0, "
        in done.stderr
    )
    assert "where the baseline gives (z0, " in done.stderr


def test_what_is_not_to_be_had_is_skipped_with_the_reason(uncork, nothing_left):
    text = STORES.replace('engine = "duckdb"', 'engine = "dbapi:no_such_driver"').replace(
        "settings = { threads = 1 }", ""
    )
    done = uncork("run", uncork.write(text), "--precision", "90%")
    assert done.returncode == 0, done.stderr
    reason = "cannot be run here: no_such_driver: its driver no_such_driver is not installed for this Python"
    assert reason in done.stderr
    (skipped,) = [one for one in result(uncork)["comparisons"] if one["verdict"] == "skipped"]
    assert skipped["reason"].startswith(reason)


DYING = """
import os, sqlite3
from sqlite3 import *
paramstyle = "qmark"

class Cursor(sqlite3.Cursor):
    def execute(self, sql, *values):
        if "sum" in sql and os.path.exists(os.environ["DIE"]):
            os._exit(9)
        return super().execute(sql, *values)

class Connection(sqlite3.Connection):
    def cursor(self):
        return super().cursor(Cursor)

def connect(**options):
    return sqlite3.connect(**options, factory=Connection)
"""


@pytest.mark.thorough
@pytest.mark.slow
def test_an_engine_that_dies_ends_the_run_with_status_2_and_what_was_measured_is_kept(uncork, nothing_left):
    uncork.write(DYING, "dying.py")
    text = STORES.replace(
        'engine = "sqlite"', 'engine = "dbapi:dying"\nconnect = { database = "{folder}/data.db" }'
    ).replace('precision = "50%"', 'precision = "1%"')
    mark = uncork.folder / "die"
    uncork.environment |= {"PYTHONPATH": str(uncork.folder), "DIE": str(mark)}
    process = uncork.start("run", uncork.write(text))
    uncork.wait_for(process, "round 1 done")
    mark.touch()
    _, err = process.communicate(timeout=200)
    assert process.returncode == 2, err
    assert "the server crashed 3 times" in err
    assert "the engine's process ended (exit status 9)" in err
    assert "Traceback" not in err
    found = result(uncork)
    assert found["run"]["status"] == "failed"
    assert found["run"]["trials"] >= 8


MISTAKES = [
    ("an unknown engine", ('"duckdb"', '"duckbd"'), 1, 'variants.duckdb.engine: there is no engine "duckbd"; did you mean "duckdb"?'),
    ("an error in a set-up", ("INSERT INTO t SELECT n, 'z' || (n % 7), n / 4.0 FROM range", "INSERT INTO u SELECT n, 'z' || (n % 7), n / 4.0 FROM range"), 1, "set-up of variant duckdb: line 2: Catalog Error: Table with name u does not exist!"),
    ("an error in a statement", ("settings = { threads = 1 }", 'workloads.sum.sql = "SELECT zone FROM t WHERE nope > :least"'), 1, 'workload sum, variant duckdb: Binder Error: Referenced column "nope" not found'),
    ("a setting that is none", ("threads = 1", "treads = 1"), 1, 'unrecognized configuration parameter "treads"'),
    ("a variable that is not set", ('engine = "duckdb"\nsettings = { threads = 1 }', 'engine = "dbapi:sqlite3"\nconnect = { database = "$NOT_SET" }'), 1, "variants.duckdb.connect.database: environment variable NOT_SET is not set"),
    ("a baseline that is not to be had", ("baseline = true", 'baseline = true\nengine = "dbapi:no_such"'), 1, "the baseline postgres cannot be run here: no_such: its driver no_such is not installed"),
]  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("change", "status", "message"), [one[1:] for one in MISTAKES], ids=[one[0] for one in MISTAKES]
)
def test_a_mistake_is_told_in_the_words_of_the_engine(uncork, nothing_left, change, status, message):
    assert change[0] in STORES
    done = uncork("run", uncork.write(STORES.replace(*change, 1)))
    assert done.returncode == status, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert uncork.runs == []


def test_an_existing_server_is_of_no_use_where_no_variant_runs_on_postgres(uncork):
    text = STORES.replace("baseline = true", 'baseline = true\nengine = "sqlite"')
    done = uncork("run", uncork.write(text), "--dsn", "host=127.0.0.1 port=1")
    assert done.returncode == 1
    assert "--dsn: no variant of this experiment runs on PostgreSQL" in done.stderr
    assert [path.name for path in uncork.folder.iterdir()] == ["experiment.toml"]
