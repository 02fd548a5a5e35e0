"""Variants on existing servers of their own: data, plans and load of each are on its server, and go."""

from __future__ import annotations

import os
import re
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest

from uncork.engines.embedded import EmbeddedServer
from uncork.errors import UsageError
from uncork.experiment.spec.schema import parse_spec
from uncork.model.verdict import Verdict
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, Source
from uncork.spawn.reaper import processes
from uncork.store.layout import read_manifest
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
budget = "8s"
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


OWN = """
[variants.small]
settings = { shared_buffers = "16MB", work_mem = "3MB" }

[variants.same_server]
settings = { shared_buffers = "16MB", work_mem = "5MB" }

[variants.too_large]
settings = { max_connections = 250, shared_buffers = "1000TB" }

[checks.buffers]
sql = "SHOW shared_buffers"

[checks.memory]
sql = "SHOW work_mem"

[server.settings]
shared_buffers = "24MB"
"""


def test_variants_with_settings_of_a_whole_server_have_servers_of_their_own(tmp_path):
    text = re.sub(r'server = ".*"\n', "", FILE).replace("[variants.candidate]\n", "") + OWN
    text = text.replace("shared = true", "").replace("8s", "5s")
    before = living_servers()
    session = new_run(tmp_path, source(text), ServerChoice())
    servers = set()
    with closing(session.events()) as events:
        for _ in events:
            servers |= living_servers() - before
    assert living_servers() == before
    (attempt,) = read_manifest(session.folder).attempts
    # Two servers, which restart for each round; those of the preparation may have ended between two events.
    assert len(servers) in (2 * attempt.rounds, 2 * (attempt.rounds + 1))
    result = read_experiment(session.folder)
    found = {(one.variant, one.name): one.value for one in result.data_checks}
    assert [found[name, "buffers"] for name in ("baseline", "small", "same_server")] == ["24MB"] + [
        "16MB"
    ] * 2
    assert [found[name, "memory"] for name in ("small", "same_server")] == ["3MB", "5MB"]
    compared = {one.variant: one.value for one in result.comparisons}
    assert compared["small"] is not None and compared["same_server"] is not None
    (absent,) = (one for one in result.comparisons if one.variant == "too_large")
    assert absent.verdict is Verdict.SKIPPED and "shared_buffers" in absent.reason
    with closing(RunReader(session.folder)) as reader:
        assert reader.manifest.unit == "round"


def living_servers():
    """Return the servers that this process started."""
    names = {one: Path(f"/proc/{one.pid}/cmdline") for one in processes() if one.parent == os.getpid()}
    found = set()
    for one, path in names.items():
        with suppress(OSError):
            found |= {(one.pid, one.start)} if b"/postgres\0" in path.read_bytes() else set()
    return found


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        (
            {"dsn": "host=a"},
            r"variants.small.settings.shared_buffers: it applies to a whole server, and uncork",
        ),
        ({"port": 5555}, r"so the variant has a server of its own; leave out --port"),
    ],
)
def test_a_server_that_uncork_cannot_configure_is_refused(tmp_path, choice, told):
    text = (
        FILE.replace('server = "baseline"\n', "")
        .replace("candidate", "small")
        .replace('server = "small"', 'settings = { shared_buffers = "16MB" }')
    )
    with pytest.raises(UsageError, match=told):
        new_run(tmp_path, source(text), ServerChoice(**choice))
    assert not list(tmp_path.iterdir())


def test_a_server_that_nobody_names_is_told(tmp_path):
    with pytest.raises(UsageError, match=r'variants.baseline.server: there is no server "baseline"'):
        new_run(tmp_path, source(), ServerChoice())
    assert not list(tmp_path.iterdir())
