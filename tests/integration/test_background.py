"""A load beside something else: it is there all the time, ends with it, and tells its failures."""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import asdict

import psycopg
import pytest

from uncork.engines.conninfo import resolve
from uncork.errors import LoadError
from uncork.model.load import Arrivals, LoadScript, LoadSpec
from uncork.workbench.experiment.background import going_on

pytestmark = pytest.mark.postgres


def spec(text, rate=40.0):
    return LoadSpec(scripts=(LoadScript("beside", 1, text),), arrivals=Arrivals("constant", rate))


def connection(embedded):
    return {**asdict(resolve(embedded.conninfo())), "application_name": "beside"}


@pytest.fixture
def noted(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as own:
        own.execute("CREATE TABLE noted (at timestamptz DEFAULT clock_timestamp(), application text, n int)")
        yield own
        own.execute("DROP TABLE noted")


NOTE = (
    "\\set n random(1, 1000000)\n"
    "INSERT INTO noted (application, n) VALUES (current_setting('application_name'), :n);\n"
)


def test_it_goes_on_all_the_time_under_its_name_and_ends_with_the_body(embedded, noted):
    with going_on("beside", spec(NOTE), connection(embedded)):
        time.sleep(2.2)
    rows = noted.execute("SELECT application, n, extract(epoch FROM at) FROM noted ORDER BY at").fetchall()
    assert {row[0] for row in rows} == {"beside"}
    assert 60 <= len(rows) <= 130
    assert len({row[1] for row in rows}) > 0.9 * len(rows), "each piece draws its own numbers"
    times = [float(row[2]) for row in rows]
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) < 0.5
    time.sleep(0.3)
    assert noted.execute("SELECT count(*) FROM noted").fetchone() == (len(rows),)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("beside")]


def test_a_statement_that_fails_is_told_at_the_end(embedded):
    with (
        pytest.raises(LoadError, match=r'beside: .*relation "nowhere" does not exist'),
        going_on("beside", spec("SELECT * FROM nowhere;\n"), connection(embedded)),
    ):
        time.sleep(0.1)


def test_what_the_body_raises_comes_first(embedded):
    with (
        pytest.raises(KeyboardInterrupt),
        going_on("beside", spec("SELECT * FROM nowhere;\n"), connection(embedded)),
    ):
        raise KeyboardInterrupt
