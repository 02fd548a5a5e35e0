"""What `--nodes` and the options around it ask for, and what they refuse."""

import pytest

from uncork.errors import UsageError
from uncork.model.load import ClusterRequest
from uncork.requests.http import cluster_of_http, read_http, sweep_of_http
from uncork.requests.http_options import HttpOptions
from uncork.requests.option import from_values
from uncork.requests.sql import cluster_of_sql, read_request
from uncork.requests.sql_options import SqlOptions
from uncork.requests.sweep import sweep_request


def http(**values):
    options = from_values(HttpOptions, {"urls": ["http://h/"], "clients": 8, "requests": 100, **values})
    return options, read_http(options, read=lambda _: b"", seed=1, environment={})


def sql(**values):
    options = from_values(SqlOptions, {"clients": 8, **values})
    job = read_request(
        options, read=lambda _: "SELECT 1;", draw_seed=lambda: 1, now_seed=2, log_id="3", command="uncork"
    )
    return options, job.spec


def test_nodes_are_on_this_machine_and_stop_together_unless_told_otherwise():
    assert cluster_of_http(*http()) is None
    assert cluster_of_http(*http(nodes=4)) == ClusterRequest(4, "local", "stop")
    asked = {"nodes": 4, "cluster": "ray://head:10001", "on_lost": "continue", "uncapped": True}
    assert cluster_of_sql(*sql(**asked)) == ClusterRequest(4, "ray://head:10001", "continue", uncapped=True)
    assert cluster_of_sql(*sql(nodes=2, end_after="90s")) == ClusterRequest(2)


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


def test_a_load_of_sql_from_nodes_needs_a_server_of_all_and_no_log():
    with pytest.raises(UsageError, match="name a server that all nodes can reach"):
        cluster_of_sql(*sql(nodes=2, embedded=True))
    with pytest.raises(UsageError, match="their own log"):
        cluster_of_sql(*sql(nodes=2, log=True))
    with pytest.raises(UsageError, match="--exit-on-abort: the other nodes would continue"):
        cluster_of_sql(*sql(nodes=2, exit_on_abort=True))
    with pytest.raises(UsageError, match="--debug: send the load from this machine"):
        cluster_of_sql(*sql(nodes=2, debug=True))


def test_the_largest_step_of_a_sweep_has_a_client_for_each_node():
    options, spec = http(nodes=16, sweep="clients", to=32.0, clients=16, requests=None)
    sweep = sweep_request(sweep_of_http(options, spec))
    assert cluster_of_http(options, spec, sweep) == ClusterRequest(16)
    options, spec = http(nodes=16, sweep="clients", to=12.0, requests=None)
    with pytest.raises(UsageError, match="-c 12 is too few"):
        cluster_of_http(options, spec, sweep_request(sweep_of_http(options, spec)))
    with pytest.raises(UsageError, match="--on-lost cannot be combined with --sweep clients"):
        sweep_request(sweep_of_http(*http(nodes=2, on_lost="stop", sweep="clients", requests=None)))
