"""What `--shard` and the options around it ask for, and what they refuse."""

from datetime import UTC, datetime

import pytest

from uncork.errors import UsageError
from uncork.model.load import Arrivals, LoadPart
from uncork.requests.http import read_http, sweep_of_http
from uncork.requests.http_options import HttpOptions
from uncork.requests.jobs import LoadJob
from uncork.requests.option import from_values, from_words
from uncork.requests.part import read_part
from uncork.requests.sql import read_request
from uncork.requests.sql_options import SqlOptions
from uncork.requests.sweep import sweep_request

NOON_NS = 1_780_228_800 * 10**9


def sql(**values) -> LoadJob:
    options = from_values(SqlOptions, {"database": "bench", **values})
    job = read_request(
        options, read=lambda _: "SELECT 1;", draw_seed=lambda: 1, now_seed=2, log_id="3", command="uncork"
    )
    assert isinstance(job, LoadJob)
    return job


def test_a_part_is_read_from_words_and_from_values():
    words = from_words(SqlOptions, {"shard": "2/4", "start_at": "2026-05-31T12:00:00Z", "end_after": "90s"})
    assert (words.shard, words.start_at, words.end_after) == ((2, 4), NOON_NS, 90 * 10**9)
    job = sql(shard=(2, 4), start_at=datetime(2026, 5, 31, 12, tzinfo=UTC), clients=8, random_seed=5)
    assert job.spec.part == LoadPart(2, 4, NOON_NS)
    assert (job.spec.clients, job.spec.part.name) == (8, "2/4")
    assert sql(lease="lease").spec.part == LoadPart(lease="lease")
    assert sql().spec.part is None


@pytest.mark.parametrize(("text", "ns"), [
    ("1780228800", NOON_NS),
    ("1780228800.25", NOON_NS + 250_000_000),
    ("2026-05-31T14:00:00+02:00", NOON_NS),
    ("2026-05-31 12:00:00.000001+00:00", NOON_NS + 1000),
])  # fmt: skip
def test_a_start_is_a_time_of_the_wall_clock(text, ns):
    assert from_words(SqlOptions, {"start_at": text}).start_at == ns


@pytest.mark.parametrize(("values", "message"), [
    ({"shard": "4"}, "write PART/PARTS"),
    ({"shard": "0/4"}, "numbered from 1 to 4"),
    ({"shard": "5/4"}, "numbered from 1 to 4"),
    ({"start_at": "noon"}, '"noon" is not a time'),
    ({"shard": "1/2", "clients": 8}, "requires --random-seed"),
    ({"shard": "1/2", "random_seed": 5}, "-c 1 is too few"),
    ({"shard": "1/2", "random_seed": 5, "clients": 2, "embedded": True, "database": None}, "--embedded"),
    ({"lease": "-", "script": ["-"]}, "needs standard input"),
])  # fmt: skip
def test_what_cannot_be_a_part_is_refused(values, message):
    with pytest.raises(UsageError, match=message):
        sql(**values)


def test_a_part_needs_an_operation_unless_arrivals_decide():
    options = from_values(HttpOptions, {"urls": ["http://h/"], "shard": "1/4", "random_seed": 1})
    few = {"clients": 4, "operations": 3, "read_files": ()}
    with pytest.raises(UsageError, match="3 operations are too few"):
        read_part(options, arrivals=None, **few)
    assert read_part(options, arrivals=Arrivals("constant", 5.0), **few) == LoadPart(1, 4)


def test_only_the_first_part_vacuums():
    given = {"clients": 4, "random_seed": 5, "builtin": ["tpcb-like"]}
    assert sql(shard="1/2", **given).vacuum == "usual"
    assert sql(shard="2/2", **given).vacuum == "none"


def test_a_sweep_cannot_be_cut():
    given = {"urls": ["http://h/"], "shard": "1/2", "clients": 2, "random_seed": 1, "sweep": "clients"}
    options = from_values(HttpOptions, given)
    spec = read_http(options, read=lambda _: b"", seed=1, environment={})
    with pytest.raises(UsageError, match="--shard cannot be combined with --sweep clients"):
        sweep_request(sweep_of_http(options, spec))
