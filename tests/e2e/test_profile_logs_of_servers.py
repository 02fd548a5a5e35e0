"""`uncork profile logs` of several servers as a person runs it: their table, one alone, and bad input."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uncork as api
from uncork.errors import UsageError

LINE = "2026-01-01 00:00:{second:02}.000 UTC [7] u@d app LOG:  duration: {ms} ms  statement: {text}\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Return a folder of two servers with equal processes; each has two files, and one is compressed."""
    for server, ms in (("db1", 1.5), ("db2", 4.5)):
        folder = tmp_path / "logs" / server
        folder.mkdir(parents=True)
        halves = [
            "".join(
                LINE.format(second=second, ms=ms, text=f"SELECT {server} FROM t WHERE id = {second}")
                for second in seconds
            )
            for seconds in (range(30), range(30, 60))
        ]
        (folder / "postgresql-1.log.gz").write_bytes(gzip.compress(halves[0].encode()))
        (folder / "postgresql-2.log").write_text(halves[1])
    return tmp_path / "logs"


def test_the_table_of_servers_names_what_each_is_busy_with(uncork, fleet):
    for how in (
        ("--servers", "by-folder"),
        ("--server", f"db1={fleet}/db1", "--server", f"db2={fleet}/*2/*"),
        ("--server", f"db2={fleet}/db2/", "--servers", "by-folder"),
    ):
        done = uncork("profile", "logs", fleet / "db2", fleet / "db1", *how, "-q")
        assert done.returncode == 0, done.stderr
        table = done.stdout.partition("Servers\n")[2].partition("Templates by")[0]
        assert [row.split()[:2] for row in table.splitlines() if row.startswith("db")] == [
            ["db2", "60"],
            ["db1", "60"],
        ]
    query = "SELECT server, sum(executions) AS n FROM log_origins GROUP BY ALL ORDER BY ALL"
    assert uncork("sql", "last", query, "--csv").stdout == "server,n\ndb1,60\ndb2,60\n"
    query = "SELECT server, max(sum_us) AS us FROM log_templates_by_server GROUP BY ALL ORDER BY ALL"
    assert uncork("sql", "last", query, "--csv").stdout == "server,us\ndb1,90000\ndb2,270000\n"
    query = "SELECT server, executions, p95_us > 4000 AS slow FROM log_hours_by_server ORDER BY ALL"
    expected = "server,executions,slow\ndb1,60,False\ndb2,60,True\n"
    assert uncork("sql", "last", query, "--csv").stdout.lower() == expected.lower()
    page = (uncork.runs[-1] / "report.html").read_text()
    assert "Statements at once, by server" in page


def test_files_may_be_named_in_any_order_but_those_of_several_servers_need_names(uncork, fleet):
    files = (fleet / "db1/postgresql-2.log", fleet / "db1/postgresql-1.log.gz")
    found = json.loads(uncork("profile", "logs", *files, "--json", "-q").stdout)
    assert [Path(one["name"]).name for one in found["files"]] == ["postgresql-1.log.gz", "postgresql-2.log"]
    assert found["warnings"] == []
    mixed = json.loads(uncork("profile", "logs", fleet / "db1", fleet / "db2", "--json", "-q").stdout)
    (warning,) = mixed["warnings"]
    assert "overlap in time" in warning and "--servers by-folder" in warning


def test_events_name_their_server(uncork, fleet, tmp_path):
    logs = (fleet / "db1", fleet / "db2")
    done = uncork("profile", "logs", *logs, "--servers", "by-folder", "-q", "--events", tmp_path / "events")
    assert done.returncode == 0, done.stderr
    query = "SELECT server, kind, count(*) AS n FROM log_events GROUP BY ALL ORDER BY ALL"
    expected = "server,kind,n\ndb1,duration,60\ndb2,duration,60\n"
    assert uncork("sql", "last", query, "--csv").stdout == expected
    (part, *_) = sorted((tmp_path / "events").glob("events-*.parquet"))
    assert pa.types.is_dictionary(pq.read_schema(part).field("server").type)
    single = uncork("profile", "logs", fleet / "db1", "-q", "--events", tmp_path / "single")
    assert single.returncode == 0, single.stderr
    assert uncork("sql", "last", query, "--csv").stdout == "server,kind,n\n,duration,60\n"


def test_one_server_may_be_read_alone(uncork, fleet):
    logs = (fleet / "db1", fleet / "db2")
    done = uncork("profile", "logs", *logs, "--servers", "by-folder", "--only-server", "*1", "--json", "-q")
    found = json.loads(done.stdout)
    assert (found["entries"], found["servers"], found["other_servers"]) == (60, [], ["db2"])
    assert "The logs of 1 other server were not read (--only-server): db2." in found["warnings"]
    plain = json.loads(uncork("profile", "logs", fleet / "db1", "--json", "-q").stdout)
    for key in ("templates", "series", "histogram", "applications"):
        assert found[key] == plain[key]


def test_two_periods_of_several_servers_are_compared(uncork, fleet, tmp_path):
    earlier = tmp_path / "earlier" / "db1"
    earlier.mkdir(parents=True)
    (earlier / "a.log").write_text(LINE.format(second=1, ms=1, text="SELECT 1"))
    patterns = ("--server", f"db1={tmp_path}/*/db1", "--server", f"db2={fleet}/db2")
    done = uncork("profile", "logs", fleet / "db1", fleet / "db2", "--against", earlier, *patterns, "-q")
    assert done.returncode == 0, done.stderr


def test_followed_logs_have_their_servers_too(uncork, fleet):
    for path in fleet.glob("*/*.gz"):
        path.unlink()
    logs = (fleet / "db1", fleet / "db2")
    for how in (("--servers", "by-folder"), ("--server", f"db1={fleet}/db1", "--server", f"db2={fleet}/db2")):
        done = uncork("profile", "logs", *logs, *how, "--follow", "--for", "1s", "--json", "-q")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert [(one["name"], one["entries"]) for one in found["servers"]] == [("db2", 30), ("db1", 30)]
    alone = uncork(
        *("profile", "logs", *logs, "--servers", "by-folder", "--only-server", "db2"),
        *("--follow", "--for", "1s", "--json", "-q"),
    )
    assert json.loads(alone.stdout)["entries"] == 30
    wrong = uncork("profile", "logs", *logs, "--server", f"a={fleet}/db1", "--follow", "--for", "1s")
    assert wrong.returncode == 1 and "--server: no pattern matches" in wrong.stderr


def test_python_names_servers_too(fleet, tmp_path):
    logs = (fleet / "db1", fleet / "db2")
    runs = tmp_path / "runs"
    for how in ({"servers": "by-folder"}, {"server": {"db1": f"{fleet}/db1", "db2": f"{fleet}/db2"}}):
        run = api.profile_logs(*logs, runs=runs, progress=False, **how)
        assert set(run.table("log_origins").arrow()["server"].to_pylist()) == {"db1", "db2"}
    with pytest.raises(UsageError, match=r'server x=/nope: no log matches "/nope"'):
        api.profile_logs(*logs, runs=runs, progress=False, server={"x": "/nope"})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--server", "db1"], "--server db1: write NAME=PATTERN, such as db1=/logs/db1/"),
        (["--server", "=logs"], "--server =logs: write NAME=PATTERN"),
        (["--server", "a*=logs"], "--server a*=logs: write NAME=PATTERN"),
        (["--server", "a="], "--server a=: write NAME=PATTERN"),
        (["--server", "a=/nope"], '--server a=/nope: no log matches "/nope"'),
        (["--server", "a=FLEET/db1"], "--server: no pattern matches FLEET/db2/postgresql-1.log.gz, "),
        (
            ["--server", "a=FLEET", "--server", "b=FLEET/db2"],
            "--server: FLEET/db2/postgresql-1.log.gz matches the patterns of two servers, a and b; make one "
            "of them narrower",
        ),
        (["--servers", "by-host"], '--servers "by-host": expecting by-folder'),
        (["--only-server", "db1"], "--only-server requires --server or --servers by-folder"),
        (
            ["--servers", "by-folder", "--only-server", "db3"],
            "--only-server db3: no server is left; the servers are db1, db2",
        ),
    ],
)
def test_a_mistake_is_told_before_anything_is_read(uncork, fleet, words, message):
    words = [word.replace("FLEET", str(fleet)) for word in words]
    done = uncork("profile", "logs", fleet / "db1", fleet / "db2", *words)
    assert done.returncode == 1
    assert message.replace("FLEET", str(fleet)) in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and "Traceback" not in done.stderr
    assert not uncork.runs
