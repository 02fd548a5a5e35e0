"""Variants on existing servers of their own: data, plans and load of each are on its server, and go."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

from uncork.engines.embedded import EmbeddedServer
from uncork.errors import UsageError
from uncork.experiment.spec.schema import parse_spec
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, Source
from uncork.store.query import RunReader
from uncork.workbench.documents.experiments import read_experiment
from uncork.workbench.experiment.session import new_run

pytestmark = pytest.mark.postgres

FILE = """
[experiment]
name = "apart"
question = "Is the other server slower?"

[variants.baseline]
baseline = true
server = "baseline"

[variants.candidate]
server = "candidate"

[setup]
sql = "CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 2000)"
shared = true

[workloads.count]
sql = "SELECT count(*) FROM t WHERE id > :id"
operations = 20
parameters.id = { generator = { kind = "uniform", min = 1, max = 20 } }

[stop]
budget = "12s"
blocks = 2
minimum_rounds = 3
maximum_rounds = 3
precision = "90%"
"""


@pytest.fixture(scope="module")
def servers():
    started = {
        "baseline": EmbeddedServer({"shared_buffers": "16MB"}),
        "candidate": EmbeddedServer({"shared_buffers": "16MB", "enable_seqscan": False}),
    }
    for server in started.values():
        server.start()
    yield {name: server.conninfo() for name, server in started.items()}
    for server in started.values():
        server.stop()


def source(text=FILE):
    return Source(parse_spec(text, file="x", read=str, overrides={}), text, {}, Options())


def databases(conninfo):
    with psycopg.connect(conninfo) as connection:
        return [name for (name,) in connection.execute("SELECT datname FROM pg_database ORDER BY 1")]


def test_each_variant_is_measured_on_its_server(servers, tmp_path):
    before = {name: databases(conninfo) for name, conninfo in servers.items()}
    with_secret = {name: f"{conninfo} password=secret" for name, conninfo in servers.items()}
    session = new_run(tmp_path, source(), ServerChoice(apart=with_secret))
    during = {}
    with closing(session.events()) as events:
        for _ in events:
            if len(during) < 2:
                during = {name: set(databases(one)) - set(before[name]) for name, one in servers.items()}
    assert {name: databases(conninfo) for name, conninfo in servers.items()} == before
    result = read_experiment(session.folder)
    assert result.comparisons[0].value is not None
    shapes = {plan.variant: plan.shape for plan in result.plans}
    assert ("Index" in shapes["baseline"], "Index" in shapes["candidate"]) == (False, True)
    assert {size.variant for size in result.sizes} == {"baseline", "candidate"}
    assert result.environment["server of candidate"]["kind"].startswith("existing")
    with closing(RunReader(session.folder)) as reader:
        assert reader.manifest.unit == "block"
        assert reader.manifest.server.startswith("existing: baseline: ")
        (blind,) = reader.ask("SELECT count(*) FROM trials WHERE server_user_ns IS NULL")[1]
    assert blind == (0,), "the processes of both servers are seen"
    kept = b"".join(path.read_bytes() for path in session.folder.rglob("*.*") if path.is_file())
    assert b"secret" not in kept


def test_each_variant_has_a_server_started_for_it(tmp_path):
    text = FILE + '[checks.buffers]\nsql = "SHOW shared_buffers"\n'
    text += '[server.settings]\nshared_buffers = "24MB"\n'
    own = {"baseline": {}, "candidate": {"shared_buffers": "16MB"}}
    session = new_run(tmp_path, source(text), ServerChoice(own=own))
    with closing(session.events()) as events:
        for _ in events:
            pass
    result = read_experiment(session.folder)
    found = {check.variant: check.value for check in result.data_checks}
    assert found == {"baseline": "24MB", "candidate": "16MB"}
    with closing(RunReader(session.folder)) as reader:
        assert reader.manifest.unit == "round"


def test_a_server_that_nobody_names_is_told(tmp_path):
    with pytest.raises(UsageError, match=r'variants.baseline.server: there is no server "baseline"'):
        new_run(tmp_path, source(), ServerChoice())
    assert not list(tmp_path.iterdir())
