"""What `--shard`, `--nodes` and the options around them ask for, and what they refuse."""

from datetime import UTC, datetime

import pytest

from uncork.errors import UsageError
from uncork.model.load import Arrivals, ClusterRequest, LoadPart
from uncork.requests.http import cluster_of_http, read_http, sweep_of_http
from uncork.requests.http_options import HttpOptions
from uncork.requests.jobs import LoadJob
from uncork.requests.option import from_values, from_words
from uncork.requests.part import read_part
from uncork.requests.sql import cluster_of_sql, read_request
from uncork.requests.sql_options import SqlOptions
from uncork.requests.sweep import sweep_request

NOON_NS = 1_780_228_800 * 10**9


def sql_request(**values) -> tuple[SqlOptions, LoadJob]:
    options = from_values(SqlOptions, values)
    job = read_request(
        options, read=lambda _: "SELECT 1;", draw_seed=lambda: 1, now_seed=2, log_id="3", command="uncork"
    )
    assert isinstance(job, LoadJob)
    return options, job


def sql(**values) -> LoadJob:
    return sql_request(**{"database": "bench", **values})[1]


def http(**values):
    options = from_values(HttpOptions, {"urls": ["http://h/"], "clients": 8, "requests": 100, **values})
    return options, read_http(options, read=lambda _: b"", seed=1, environment={})


def sql_cluster(**values):
    options, job = sql_request(**{"clients": 8, **values})
    return cluster_of_sql(options, job.spec)


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
    options, spec = http(shard="1/2", clients=2, random_seed=1, sweep="clients", requests=None)
    with pytest.raises(UsageError, match="--shard cannot be combined with --sweep clients"):
        sweep_request(sweep_of_http(options, spec))


# ---- nodes ----


def test_nodes_are_on_this_machine_and_stop_together_unless_told_otherwise():
    assert cluster_of_http(*http()) is None
    assert cluster_of_http(*http(nodes=4)) == ClusterRequest(4, "local", "stop")
    asked = {"nodes": 4, "cluster": "ray://head:10001", "on_lost": "continue", "uncapped": True}
    assert sql_cluster(**asked) == ClusterRequest(4, "ray://head:10001", "continue", uncapped=True)
    assert sql_cluster(nodes=2, end_after="90s") == ClusterRequest(2)


@pytest.mark.parametrize(("values", "message"), [
    ({"cluster": "auto"}, "--cluster requires --nodes"),
    ({"on_lost": "stop"}, "--on-lost requires --nodes"),
    ({"nodes": 9}, "-c 8 is too few"),
    ({"nodes": 4, "clients": 4, "requests": 3, "rate": None}, "is below the 4 connections|3 operations"),
    ({"nodes": 2, "lease": "file"}, "leave out --lease"),
    ({"nodes": 2, "shard": "1/2", "random_seed": 1}, "leave out --shard"),
    ({"nodes": 2, "service_pid": [1]}, "--nodes cannot be combined with --service-pid"),
    ({"nodes": 2, "postgres": "dbname=x"}, "--nodes cannot be combined with --postgres"),
    ({"nodes": 2, "cluster": "head"}, "write local, auto, HOST:PORT or ray://HOST:PORT"),
    ({"nodes": 2, "cluster": "http://head:8265"}, "write local, auto"),
    ({"nodes": 2, "cluster": "head:99999"}, "write local, auto"),
])  # fmt: skip
def test_what_nodes_cannot_send_is_refused(values, message):
    with pytest.raises(UsageError, match=message):
        cluster_of_http(*http(**values))


@pytest.mark.parametrize(("values", "message"), [
    ({"embedded": True}, "name a server that all nodes can reach"),
    ({"log": True}, "their own log"),
    ({"exit_on_abort": True}, "--exit-on-abort: the other nodes would continue"),
    ({"debug": True}, "--debug: send the load from this machine"),
])  # fmt: skip
def test_a_load_of_sql_from_nodes_needs_a_server_of_all_and_no_log(values, message):
    with pytest.raises(UsageError, match=message):
        sql_cluster(nodes=2, **values)


def test_the_largest_step_of_a_sweep_has_a_client_for_each_node():
    options, spec = http(nodes=16, sweep="clients", to=32.0, clients=16, requests=None)
    sweep = sweep_request(sweep_of_http(options, spec))
    assert cluster_of_http(options, spec, sweep) == ClusterRequest(16)
    options, spec = http(nodes=16, sweep="clients", to=12.0, requests=None)
    with pytest.raises(UsageError, match="-c 12 is too few"):
        cluster_of_http(options, spec, sweep_request(sweep_of_http(options, spec)))
    with pytest.raises(UsageError, match="--on-lost cannot be combined with --sweep clients"):
        sweep_request(sweep_of_http(*http(nodes=2, on_lost="stop", sweep="clients", requests=None)))
