"""Logs to read: which files of a folder, in which order, and of which server."""

import bz2
import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from uncork.errors import UsageError
from uncork.profile.logs import LogRequest, read_logs
from uncork.profile.objects.layouts import undated
from uncork.workbench.profile.log_files import (
    LogServers,
    could_be_log,
    expand,
    in_order,
    in_order_of_time,
    log_request,
)
from uncork.workbench.profile.logs import repeated_updates

ENTRY = b"2026-01-01 00:00:01.000 UTC [7] u@d app LOG:  duration: 1.000 ms  statement: SELECT 1\n"


@pytest.mark.parametrize(("name", "head"), [
    ("postgresql.log", ENTRY),
    ("postgresql.log.1", ENTRY),
    ("server", b"SELECT 1\n" * 100 + ENTRY),
    ("log.csv", b'2026-01-01 00:00:00.000 UTC,"u","d",7,,1.2,1,"idle",,1/1,0,LOG,00000,"x",,,,,,,,,\n'),
    ("log.json", b'{"timestamp":"2026-01-01","error_severity":"LOG","message":"x"}\n'),
    ("pgbouncer.txt", b"2026-01-01 00:00:00.000 UTC [1] LOG stats: 1 xacts/s\n"),
    ("some.log.gz", gzip.compress(ENTRY, mtime=0)),
    ("some.bz2", bz2.compress(ENTRY)),
    ("some.tar", b"some.log" + b"\0" * 249 + b"ustar"),
    ("new.log", b""),
])  # fmt: skip
def test_logs_in_any_format_can_be_logs(name, head):
    assert could_be_log(name, head)


@pytest.mark.parametrize(("name", "head"), [
    ("README.md", ENTRY),
    ("dump.sql.gz", gzip.compress(b"SELECT 1;", mtime=0)),
    ("postgresql.conf", b"log_statement = all  # LOG\n"),
    ("core", b"\x7fELF\0\0 LOG: "),
    ("letter.txt", b"Dear Sir or Madam,\nno log is this.\n"),
])  # fmt: skip
def test_other_files_cannot_be_logs(name, head):
    assert not could_be_log(name, head)


def test_a_folder_is_its_logs_and_says_what_it_skips(tmp_path):
    for name, data in (("b.log", ENTRY), ("a.log", ENTRY), ("README.md", ENTRY), (".hidden", b"x")):
        (tmp_path / name).write_bytes(data)
    assert [one.name for one in expand([tmp_path])] == ["a.log", "b.log"]
    found = log_request([str(tmp_path)], None, (None, None), 0)
    assert found.names == tuple(str(tmp_path / name) for name in ("a.log", "b.log"))
    assert found.skipped == (str(tmp_path / "README.md"),)
    # A file that is named is read, whatever it is.
    assert expand([tmp_path / "README.md"]) == [tmp_path / "README.md"]
    assert log_request([str(tmp_path / "README.md")], None, (None, None), 0).skipped == ()


def test_a_folder_without_logs_is_refused_with_what_it_has(tmp_path):
    with pytest.raises(UsageError, match="the folder is empty"):
        expand([tmp_path])
    (tmp_path / "db1").mkdir()
    with pytest.raises(UsageError, match=r"no logs, only folders; name them: .*/\*/$"):
        expand([tmp_path])
    for name in "abcd":
        (tmp_path / f"{name}.md").write_bytes(ENTRY)
    with pytest.raises(UsageError, match=r"the folder has no logs, only a\.md, b\.md, c\.md and more;"):
        expand([tmp_path])


LINE = "2026-01-01 08:00:{second:02}.000 UTC [7] LOG:  x\n"


@pytest.mark.parametrize(("servers", "begins", "order"), [
    ("", (), ()),
    ("a", (None,), (0,)),
    ("aaa", (3, 1, 2), (1, 2, 0)),
    ("abab", (4, 3, 2, 1), (2, 3, 0, 1)),
    # Logs whose begin is unknown keep their places, and equal times the order in which they are named.
    ("aaaa", (5, None, 1, 1), (2, 1, 3, 0)),
    ("aabb", (1, 2, None, None), (0, 1, 2, 3)),
])  # fmt: skip
def test_logs_take_each_others_places_by_server(servers, begins, order):
    assert in_order(tuple(servers), begins) == order


def log(folder: Path, name: str, second: int) -> Path:
    path, text = folder / name, LINE.format(second=second).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def test_rotated_files_are_read_oldest_first(tmp_path: Path):
    new, old, oldest = (log(tmp_path, *one) for one in (("log", 30), ("log.1", 20), ("log.2.gz", 10)))
    nothing, stream = tmp_path / "nothing", Path("-")
    nothing.write_text("")
    request = LogRequest((new, nothing, old, stream, oldest, tmp_path / "missing"))
    assert in_order_of_time(request).paths == (oldest, nothing, old, stream, new, tmp_path / "missing")
    apart = LogRequest((new, old, oldest), servers=("a", "b", "b"))
    assert in_order_of_time(apart).paths == (new, oldest, old)


def test_a_prefix_that_is_none_is_refused(tmp_path: Path):
    paths = (log(tmp_path, "a", 1), log(tmp_path, "b", 2))
    with pytest.raises(UsageError, match="log_line_prefix"):
        in_order_of_time(LogRequest(paths, prefix="%z"))


STATEMENT = "2026-01-01 00:00:00.000 UTC [7] u@d app LOG:  duration: 1.500 ms  statement: SELECT 1\n"


@pytest.mark.parametrize(("pattern", "matching"), [
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
])  # fmt: skip
def test_a_pattern_is_a_file_a_folder_a_glob_or_an_address(pattern, matching):
    logs = ["/logs/a/1.log", "/logs/a/2.log", "/logs/a-b.log", "-"]
    logs += ["s3://logs/a/1", "s3://logs/a/b/2", "s3://logs/abc"]
    found = LogServers((("x", pattern),), by_folder=True).of(logs)
    assert [log for log, server in zip(logs, found, strict=True) if server == "x"] == matching


@pytest.mark.parametrize(("logs", "servers"), [
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
    (["/l/a/2026-05-31/x.log", "/l/a/2026-06-01/x.log", "/l/b/2026-06-01/x.log"], ["a", "a", "b"]),
])  # fmt: skip
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


@pytest.mark.parametrize(("servers", "message"), [
    (LogServers((("a", "/l/c"),), by_folder=True), '--server a=/l/c: no log matches "/l/c"'),
    (LogServers((("a", "/l"), ("b", "/l/b"))),
     "--server: /l/b/x.log matches the patterns of two servers, a and b; make one of them narrower"),
    (LogServers((("a", "/l/a"),)),
     "--server: no pattern matches /l/b/x.log; name the server of each log, or add --servers "
     "by-folder"),
    (LogServers(only=("a",)), "--only-server requires --server or --servers by-folder"),
])  # fmt: skip
def test_what_is_not_clear_is_refused(servers, message):
    with pytest.raises(UsageError) as refused:
        servers.of(["/l/a/x.log", "/l/b/x.log"])
    assert str(refused.value) == message


def test_one_server_may_have_several_patterns_and_the_logs_keep_their_order(tmp_path: Path):
    for name in ("b/2.log", "a/1.log", "b/1.log", "c/1.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(STATEMENT)
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
    (tmp_path / "a.log").write_text(STATEMENT)
    plain = log_request([str(tmp_path)], None, (None, None), 1)
    assert log_request([str(tmp_path)], None, (None, None), 1, servers=LogServers()) == plain
    assert plain.servers == ()


def test_equal_keys_on_two_servers_are_two_rows(tmp_path: Path):
    log = "".join(
        STATEMENT.replace("SELECT 1", f"UPDATE t SET a = 1 WHERE id = {number}") for number in range(200)
    )
    for name in "ab":
        (tmp_path / f"{name}.log").write_text(log)
    logs = (tmp_path / "a.log", tmp_path / "b.log")
    for servers, followed in (((), 200), (("a", "b"), 0)):
        request = LogRequest(logs, servers=servers)
        (row,) = repeated_updates(request, read_logs(request)).to_pylist()
        assert (row["updates"], row["followed"], row["unchanged"]) == (400, followed, followed)


HEAVY = (
    "asyncio",
    "postgast",
    "google.protobuf",
    "uncork.model.results.database",
    "uncork.model.system",
)


def test_a_log_without_plans_loads_nothing_for_servers_objects_and_parse_trees(tmp_path):
    log = tmp_path / "postgresql.log"
    log.write_text(
        "".join(
            f"2026-03-01 10:00:0{second}.000 UTC [7] LOG:  duration: 250.000 ms  statement: SELECT {second}\n"
            for second in range(9)
        )
    )
    code = (
        "import sys; from pathlib import Path; from uncork.profile.logs import LogRequest; "
        "from uncork.workbench.profile.logs import profile_logs; "
        "run = profile_logs(Path(sys.argv[1]), LogRequest((Path(sys.argv[2]),)), command='uncork'); "
        f"print(run.result.entries, [name for name in {HEAVY!r} if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "runs"), str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "9 []"
