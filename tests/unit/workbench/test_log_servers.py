"""Which server wrote each log: by pattern, by folder, and what is refused."""

from pathlib import Path

import pytest

from uncork.errors import UsageError
from uncork.profile.logs import LogRequest, read_logs
from uncork.profile.objects.layouts import undated
from uncork.workbench.profile.log_files import log_request
from uncork.workbench.profile.log_servers import LogServers
from uncork.workbench.profile.log_updates import repeated_updates

ENTRY = "2026-01-01 00:00:00.000 UTC [7] u@d app LOG:  duration: 1.500 ms  statement: SELECT 1\n"


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("/logs/a", ["/logs/a/1.log", "/logs/a/2.log"]),
        ("/logs/a/", ["/logs/a/1.log", "/logs/a/2.log"]),
        ("/logs/a/1.log", ["/logs/a/1.log"]),
        ("/logs/./b/../a/1.log", ["/logs/a/1.log"]),
        ("/logs/a*", ["/logs/a/1.log", "/logs/a/2.log", "/logs/a-b.log"]),
        ("/logs/*/1.log", ["/logs/a/1.log"]),
        ("/**/2.log", ["/logs/a/2.log"]),
        ("-", ["-"]),
        ("s3://logs/a", ["s3://logs/a/1", "s3://logs/a/b/2"]),
        ("s3://logs/ab", ["s3://logs/abc"]),
        ("s3://logs/a/*", ["s3://logs/a/1", "s3://logs/a/b/2"]),
        ("S3://logs/*/1", ["s3://logs/a/1"]),
    ],
)
def test_a_pattern_is_a_file_a_folder_a_glob_or_an_address(pattern, matching):
    logs = ["/logs/a/1.log", "/logs/a/2.log", "/logs/a-b.log", "-"]
    logs += ["s3://logs/a/1", "s3://logs/a/b/2", "s3://logs/abc"]
    found = LogServers((("x", pattern),), by_folder=True).of(logs)
    assert [log for log, server in zip(logs, found, strict=True) if server == "x"] == matching


@pytest.mark.parametrize(
    ("logs", "servers"),
    [
        (["/l/db1/x.log", "/l/db2/x.log", "/l/db1/y.log"], ["db1", "db2", "db1"]),
        (["/l/db1/error/x.log", "/l/db2/error/x.log"], ["db1", "db2"]),
        (["/l/x.log", "/l/db2/x.log"], ["l", "db2"]),
        (["/l/db1/x.log"], ["db1"]),
        (["/l/x.log", "/l/l/x.log"], ["/l", "/l/l"]),
        (["-", "/l/db1/x.log"], ["stdin", "l/db1"]),
        # Amazon RDS, Cloud SQL, Azure, and folders of a date.
        (["s3://l/a/error/postgresql.log.2026-11-27-04",
          "s3://l/b/error/postgresql.log.2026-11-28-05"], ["a", "b"]),
        (["gs://l/a/postgres.log/2026/11/27/04:00:00_04:59:59_S0.json",
          "gs://l/b/postgres.log/2026/11/28/05:00:00_05:59:59_S0.json"], ["a", "b"]),
        (["az://l/SERVERS/A/y=2026/m=11/d=27/h=04/m=00/PT1H.json",
          "az://l/SERVERS/B/y=2026/m=11/d=28/h=04/m=00/PT1H.json"], ["A", "B"]),
        (["/l/a/2026-05-31/x.log", "/l/a/2026-06-01/x.log", "/l/b/2026-06-01/x.log"],
         ["a", "a", "b"]),
    ],
)  # fmt: skip
def test_a_folder_names_the_server_but_no_date_does(logs, servers):
    assert list(LogServers(by_folder=True).of(logs)) == servers


def test_only_the_end_of_a_path_is_a_date():
    for name, expected in (
        ("/l/2026/05/31/x.log", "/l/x.log"),
        ("/l/y=2026/m=05/x.log", "/l/x.log"),
        ("/l/dt=2026-05-31/08/x.log", "/l/x.log"),
        ("/l/2026-05-31/a/x.log", "/l/2026-05-31/a/x.log"),
        ("/l/5432/x.log", "/l/5432/x.log"),
        ("/l/12/x.log", "/l/12/x.log"),
    ):
        assert undated(name) == expected, name


@pytest.mark.parametrize(
    ("servers", "message"),
    [
        (LogServers((("a", "/l/c"),), by_folder=True), '--server a=/l/c: no log matches "/l/c"'),
        (LogServers((("a", "/l"), ("b", "/l/b"))),
         "--server: /l/b/x.log matches the patterns of two servers, a and b; make one of them narrower"),
        (LogServers((("a", "/l/a"),)),
         "--server: no pattern matches /l/b/x.log; name the server of each log, or add --servers "
         "by-folder"),
        (LogServers(only=("a",)), "--only-server requires --server or --servers by-folder"),
    ],
)  # fmt: skip
def test_what_is_not_clear_is_refused(servers, message):
    with pytest.raises(UsageError) as refused:
        servers.of(["/l/a/x.log", "/l/b/x.log"])
    assert str(refused.value) == message


def test_one_server_may_have_several_patterns_and_the_logs_keep_their_order(tmp_path: Path):
    for name in ("b/2.log", "a/1.log", "b/1.log", "c/1.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(ENTRY)
    files = [str(tmp_path / name) for name in ("b/2.log", "a", "b/1.log", "c")]
    patterns = (("two", f"{tmp_path}/b"), ("one", f"{tmp_path}/a"), ("two", f"{tmp_path}/c/*"))
    found = log_request(files, None, (None, None), 1, servers=LogServers(patterns))
    assert found.servers == ("one", "two", "two", "two")
    assert [Path(name).relative_to(tmp_path).as_posix() for name in found.names] == [
        *("a/1.log", "b/2.log", "b/1.log", "c/1.log")
    ]
    chosen = log_request(files, None, (None, None), 1, servers=LogServers(patterns, only=("!t*",)))
    assert (chosen.servers, chosen.other_servers) == (("one",), ("two",))
    with pytest.raises(UsageError, match=r"--only-server x: no server is left; the servers are one, two"):
        log_request(files, None, (None, None), 1, servers=LogServers(patterns, only=("x",)))


def test_without_names_nothing_changes(tmp_path: Path):
    (tmp_path / "a.log").write_text(ENTRY)
    plain = log_request([str(tmp_path)], None, (None, None), 1)
    assert log_request([str(tmp_path)], None, (None, None), 1, servers=LogServers()) == plain
    assert plain.servers == ()


def test_equal_keys_on_two_servers_are_two_rows(tmp_path: Path):
    log = "".join(
        ENTRY.replace("SELECT 1", f"UPDATE t SET a = 1 WHERE id = {number}") for number in range(200)
    )
    for name in "ab":
        (tmp_path / f"{name}.log").write_text(log)
    logs = (tmp_path / "a.log", tmp_path / "b.log")
    for servers, followed in (((), 200), (("a", "b"), 0)):
        request = LogRequest(logs, servers=servers)
        (row,) = repeated_updates(request, read_logs(request)).to_pylist()
        assert (row["updates"], row["followed"], row["unchanged"]) == (400, followed, followed)
