"""Batches on a real server: each strategy leaves the same rows, in the waits and transactions it says."""

from __future__ import annotations

from dataclasses import asdict

import psycopg
import pytest

from uncork.engines.conninfo import resolve
from uncork.experiment.spec.batches import carry
from uncork.load.sql import SqlLoad
from uncork.model.measurement import Outcome
from uncork.model.request import LoadRequest
from uncork.model.server import Target

pytestmark = pytest.mark.postgres

STRATEGIES = ["rows", "transaction", "pipeline", "values", "unnest", "copy"]
COLUMNS = {"id": "integer", "name": "text", "raw": "bytea", "at": "timestamptz"}
INSERT = "INSERT INTO item SELECT * FROM :batch ON CONFLICT (id) DO NOTHING"
AWKWARD = ["plain", "a\tb\nc", 'quote " and \\', "{braces, comma}", "", None, "NULL", "\\N", "ünïcode", "'"]


@pytest.fixture
def items(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS item")
        connection.execute(
            "CREATE TABLE item (id integer PRIMARY KEY, name text, raw bytea, at timestamptz, "
            "CHECK (name <> 'refused'))"
        )
        connection.execute("INSERT INTO item VALUES (0, 'known already')")
        yield connection
        connection.execute("DROP TABLE item")


def parameters(rows):
    return [
        [str(row) for row in range(rows)],
        [AWKWARD[row % len(AWKWARD)] for row in range(rows)],
        [f"\\x{row:04x}" for row in range(rows)],
        [f"2026-01-01 00:00:{row % 60:02d}+00" for row in range(rows)],
    ]


def send(server, strategy, table, *, rows, operations=1, protocol="prepared", texts=(INSERT,), **more):
    chunk = rows // 2 if strategy in ("values", "unnest") else None
    carried = carry("add", texts, COLUMNS, strategy=strategy, rows=rows, chunk=chunk)
    target = Target("postgres", asdict(resolve(server.conninfo())))
    request = LoadRequest(
        target=target,
        statements=carried.statements,
        parameters=table,
        transaction=carried.transaction,
        clients=1,
        threads=1,
        protocol=protocol,
        warmup_operations=0,
        operations=operations,
        duration_ns=None,
        deadline_ns=60_000_000_000,
        prepare="first use" if strategy == "copy" else "ahead",
        **more,
    )
    return carried, SqlLoad().run(request)


def left(items):
    query = "SELECT id, name, raw, at::text FROM item ORDER BY id"
    return items.execute(query).fetchall()


@pytest.mark.parametrize("protocol", ["prepared", "extended", "simple"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_leaves_the_same_rows(embedded, items, strategy, protocol):
    if protocol == "simple" and strategy == "pipeline":
        pytest.skip("a pipeline needs the extended protocol")
    table = parameters(20)
    _, measured = send(embedded, strategy, table, rows=20, protocol=protocol)
    assert measured.outcome is Outcome.COMPLETE, measured.message
    expected = [(0, "known already", None, None)]
    expected += [
        (int(id_), name, bytes.fromhex(raw[2:]), at)
        for id_, name, raw, at in zip(*(column[1:] for column in table), strict=True)
    ]
    assert left(items) == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_batches_take_their_rows_in_turn_and_wait_as_often_as_they_say(embedded, items, strategy):
    carried, measured = send(embedded, strategy, parameters(60), rows=20, operations=3)
    assert measured.outcome is Outcome.COMPLETE, measured.message
    assert measured.succeeded == 3
    assert measured.round_trips == 3 * carried.round_trips
    assert items.execute("SELECT count(*) FROM item").fetchone() == (60,)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_failing_row_leaves_nothing_of_a_batch_but_of_single_commits(embedded, items, strategy):
    table = parameters(20)
    table[1][10] = "refused"
    _, measured = send(embedded, strategy, table, rows=20)
    assert measured.outcome is Outcome.ERRORS
    assert measured.errors == {"23514": 1}
    found = {id_ for id_, *_ in left(items)}
    if strategy == "rows":
        assert set(range(10)) <= found
        assert 10 not in found
    else:
        assert found == {0}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_batch_is_as_many_transactions_as_it_says(embedded, items, strategy):
    items.execute("CREATE TABLE IF NOT EXISTS seen (transaction xid8)")
    items.execute("TRUNCATE seen")
    texts = ["INSERT INTO seen SELECT pg_current_xact_id() FROM :batch"]
    carried, measured = send(embedded, strategy, parameters(20), rows=20, texts=texts)
    assert measured.outcome is Outcome.COMPLETE, measured.message
    distinct = items.execute("SELECT count(DISTINCT transaction) FROM seen").fetchone()
    items.execute("DROP TABLE seen")
    assert distinct == (carried.commits,)


def test_settings_go_with_the_connection(embedded, items):
    texts = ["INSERT INTO item SELECT id, current_setting('synchronous_commit') FROM :batch WHERE id > 0"]
    send(embedded, "unnest", parameters(2), rows=2, texts=texts, settings={"synchronous_commit": "off"})
    assert left(items)[1][1] == "off"


def test_settings_may_hold_spaces(embedded, items):
    texts = ["INSERT INTO item SELECT id, current_setting('search_path') FROM :batch WHERE id > 0"]
    settings = {"search_path": "pg_catalog, public"}
    send(embedded, "unnest", parameters(2), rows=2, texts=texts, settings=settings)
    assert left(items)[1][1] == "pg_catalog, public"
