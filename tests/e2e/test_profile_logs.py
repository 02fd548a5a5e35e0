"""`uncork profile logs` as a person runs it: what it says, what it keeps, what it refuses."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import tarfile
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import uncork as api
from uncork.analysis.log.result import MOST_TEMPLATES
from uncork.errors import UsageError

FIXTURES = Path(__file__).parents[1] / "fixtures" / "logs"
STDERR = FIXTURES / "same-events.stderr.log.gz"
LINE = "2026-01-01 00:00:0{second}.000 UTC [{pid}] u@d app LOG:  duration: {ms} ms  statement: {text}\n"


def line(text: str, *, second: int = 1, pid: int = 7, ms: str = "1.500") -> str:
    return LINE.format(second=second, pid=pid, ms=ms, text=text)


def test_the_first_sentence_says_where_the_time_went(uncork):
    done = uncork("profile", "logs", STDERR)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        '"update orders set status = ?, updated_at = now() where id …" took 26 % of 4 min 51 s of statement '
        "time."
    )
    for part in ("13 errors", "update orders set status = ?", "app_user"):
        assert part in done.stdout
    (folder,) = uncork.runs
    assert {path.name for path in folder.iterdir()} >= {
        "manifest.json",
        "facts.json",
        "report.html",
        "result.json",
    }
    page = (folder / "report.html").read_text()
    assert "update orders set status" in page and "<script src" not in page


def test_a_stored_log_is_reported_again(uncork):
    assert uncork("profile", "logs", STDERR, "-q").returncode == 0
    first = json.loads((uncork.runs[0] / "result.json").read_text())
    again = uncork("report", "last", "--json")
    assert json.loads(again.stdout) == first
    assert uncork("report", "last", "--markdown").stdout.startswith("# ")
    assert " log " in uncork("runs").stdout
    assert uncork("report", "last", "--go-bench").returncode == 1
    rerun = uncork("rerun", "last")
    assert rerun.returncode == 1 and "is a log, not an experiment" in rerun.stderr


def test_sql_can_be_asked_of_it(uncork):
    assert uncork("profile", "logs", STDERR, "-q").returncode == 0
    query = "SELECT kind, count FROM log_activity WHERE kind = 'lock wait' ORDER BY ALL"
    assert uncork("sql", "last", query, "--csv").stdout == "kind,count\nlock wait,2\n"
    assert json.loads(uncork("sql", "last", query, "--json").stdout) == {"kind": "lock wait", "count": 2}
    assert "log_templates" in uncork("sql", "last").stdout
    wrong = uncork("sql", "last", "SELECT nothing FROM nowhere")
    assert wrong.returncode == 1 and "nowhere" in wrong.stderr and "Traceback" not in wrong.stderr


def test_every_entry_is_written_for_any_tool(uncork, tmp_path):
    events = tmp_path / "events of a day"
    done = uncork("profile", "logs", STDERR, "-q", "--events", events)
    assert done.returncode == 0, done.stderr
    assert "FROM log_events" in done.stdout
    counted = uncork("sql", "last", "SELECT count(*) FROM log_events WHERE kind <> 'addition'", "--csv")
    result = json.loads((uncork.runs[0] / "result.json").read_text())
    assert counted.stdout.splitlines() == ["count_star()", str(result["entries"])]
    # Each template has as many events as executions, and they took as long.
    query = (
        "SELECT count(*) FROM log_templates AS template FULL JOIN (SELECT template, count(*) AS executions, "
        "sum(duration_us) AS sum_us FROM log_events WHERE kind = 'duration' AND step <> 'plan' GROUP BY 1) "
        "AS event USING (template) WHERE template.executions > 0 AND (event.executions, event.sum_us) IS "
        "DISTINCT FROM (template.executions, template.sum_us)"
    )
    assert uncork("sql", "last", query, "--csv").stdout.splitlines()[1] == "0"
    again = uncork("profile", "logs", STDERR, "-q", "--events", events)
    assert again.returncode == 1 and "is not empty" in again.stderr
    nothing = uncork(
        "profile", "logs", Path(__file__).with_name("conftest.py"), "-q", "--events", tmp_path / "other"
    )
    assert nothing.returncode == 1 and not (tmp_path / "other").exists()


def test_anonymised_nothing_of_the_data_is_kept(uncork, tmp_path):
    secret = "INSERT INTO people VALUES (4711081547, 'Ada Lovelace', '1815-12-10')"
    failed = "2026-01-01 00:00:09.000 UTC [7] ada@d app {severity}:  {text}\n"
    log = tmp_path / "a.log"
    log.write_text(
        line(secret).replace("u@d", "ada@d") * 3
        + line("GRANT SELECT ON people TO ada")
        + failed.format(severity="ERROR", text='duplicate key value violates unique constraint "people_pkey"')
        + failed.format(severity="DETAIL", text="Key (name)=(Ada Lovelace) already exists.")
        + failed.format(severity="STATEMENT", text=secret)
        + "Ada Lovelace was here\n" * 2
    )
    done = uncork("profile", "logs", log, "-q", "--anonymize", "--rejected", "--events", tmp_path / "events")
    assert done.returncode == 0, done.stderr
    tables = ("log_events", "log_examples", "log_errors", "log_origins", "log_incidents", "log_transactions")
    rows = [uncork("sql", "last", f"SELECT * FROM {table}", "--json").stdout for table in tables]
    pages = [path.read_text() for path in uncork.runs[0].iterdir() if path.is_file()]
    for text in (done.stdout, *rows, *pages):
        assert not [
            word for word in ("Ada", "4711081547", "1815-12-10", "ada@", '"ada"', "to ada") if word in text
        ]
    assert "insert into people values (?" in rows[0] and '"user": "user-' in rows[3]


COMPARISON = json.loads((Path(__file__).parents[2] / "schemas" / "log-comparison.schema.json").read_text())


def test_two_logs_are_compared(uncork):
    before = "".join(
        line(f"INSERT INTO vuln VALUES ({number}, 'x')", second=number % 10, ms="25.000")
        for number in range(400)
    )
    after = "".join(
        line("INSERT INTO vuln VALUES " + ", ".join(["(1, 'x')"] * 100), second=number, ms="50.000")
        for number in (0, 3, 6, 9) * 3
    )
    both = "".join(
        line(f"SELECT a FROM t WHERE id = {number}", second=number % 10, pid=9) for number in range(20)
    )
    uncork.write(before + both + line("DELETE FROM old", second=9), "before.log")
    uncork.write(after + both + line("SELECT new FROM t", second=9), "after.log")
    done = uncork("profile", "logs", "after.log", "--against", "before.log", "--json", "-q")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    jsonschema.validate(found, COMPARISON)
    changes = {one["text"]: one for one in found["templates"]}
    assert {text: one["change"] for text, one in changes.items()} == {
        "insert into vuln values (?, ?)": "slower",
        "select a from t where id = ?": "same",
        "delete from old": "gone",
        "select new from t": "new",
    }
    insert = found["templates"][0]
    assert (insert["before"]["executions"], insert["after"]["executions"]) == (400, 12)
    assert (insert["before"]["list_mean"], insert["after"]["list_mean"]) == (1, 100)
    assert insert["busy"] == pytest.approx(insert["by_count"] + insert["by_mean"])
    assert insert["by_count"] < 0 < insert["by_mean"]
    for period, length in (("before", 9), ("after", 9)):
        assert found[period]["seconds"] == length
    shown = uncork("profile", "logs", "after.log", "--against", "before.log", "-q")
    assert shown.stdout.startswith("Statement time went from 1.11 s to 70.2 ms a second (÷16).\n\nExecutions")
    assert "lists of 1 → 100" in shown.stdout
    assert any((folder / "comparison.html").is_file() for folder in uncork.runs)


@pytest.mark.thorough
def test_templates_that_only_one_of_two_reports_shows_are_neither_new_nor_gone(uncork):
    names = [f"t{number}" for number in range(MOST_TEMPLATES + 300)]
    for file, costliest_last in (("before.log", names), ("after.log", names[::-1])):
        lines = [line(f"SELECT a FROM {name}", ms=f"{1 + at}.000") for at, name in enumerate(costliest_last)]
        extra = f"SELECT a FROM only_{file[:-4]}"
        uncork.write("".join([*lines, line(extra, ms="2000.000")]), file)
    fresh = uncork("profile", "logs", "after.log", "--against", "before.log", "--json", "-q")
    stored = uncork("compare", "log-before", "log-after", "--json")
    assert fresh.stdout == stored.stdout
    changes = {one["text"]: one["change"] for one in json.loads(stored.stdout)["templates"]}
    assert len(changes) == len(names) + 2
    assert [text for text, word in changes.items() if word == "gone"] == ["select a from only_before"]
    assert [text for text, word in changes.items() if word == "new"] == ["select a from only_after"]


def test_two_periods_of_one_log_are_compared(uncork):
    fast = "".join(line("SELECT 1", second=number % 5, ms="1.000") for number in range(50))
    slow = "".join(line("SELECT 1", second=5 + number % 5, ms="3.000") for number in range(50))
    uncork.write(fast + slow, "some.log")
    at = "2026-01-01T00:00:05"
    done = uncork("profile", "logs", "some.log", "-b", at, "--against-end", at, "--json", "-q")
    (change,) = json.loads(done.stdout)["templates"]
    assert (change["change"], change["before"]["mean_ns"], change["after"]["mean_ns"]) == ("slower", 1e6, 3e6)
    assert change["by_count"] == 0


def test_files_streams_folders_globs_and_archives_tell_the_same(uncork, tmp_path):
    plain = gzip.decompress(STDERR.read_bytes())
    folder = tmp_path / "logs"
    folder.mkdir()
    half = plain.index(b"\n2025", len(plain) // 2) + 1
    (folder / "a.log").write_bytes(plain[:half])
    (folder / "b.log").write_bytes(plain[half:])
    archive = tmp_path / "logs.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, path.name)
    figures = []
    for arguments in ([STDERR], [folder], [folder / "*.log"], [archive], ["-j", 1, folder]):
        done = uncork("profile", "logs", "--json", "-q", *arguments)
        assert done.returncode == 0, done.stderr
        result = json.loads(done.stdout)
        kept = ("executions", "histogram", "applications", "users", "entries", "first_us", "last_us")
        figures.append({name: result[name] for name in kept} | {"templates": len(result["templates"])})
    assert all(one == figures[0] for one in figures)


def test_lines_that_are_not_understood_are_counted_and_shown(uncork):
    log = "".join(line(f"SELECT {number}") for number in range(20))
    path = uncork.write("what is this\n" + log, "some.log")
    done = uncork("profile", "logs", path, "--rejected")
    assert done.returncode == 0
    told = " ".join(done.stdout.split())
    assert "1 of 21 lines (4.8 %) belongs to no entry and is not counted" in told
    assert "Lines: 21: 20 start an entry or add to one, 1 belong to no entry." in told
    assert "some.log:1: what is this" in done.stdout


def test_a_prefix_of_its_own_is_found_out_or_given(uncork):
    log = "".join(f"{n}|app|db|LOG:  duration: 2.000 ms  statement: SELECT {n}\n" for n in range(1, 9))
    path = uncork.write(log, "own.log")
    done = uncork("profile", "logs", path, "-p", "%p|%a|%d|", "--json")
    result = json.loads(done.stdout)
    assert (result["entries"], result["applications"][0]["name"]) == (8, "app")


def test_no_entry_is_lost_in_silence(uncork):
    def log(*applications):
        return "".join(
            line(f"SELECT {n}").replace("u@d app", f"usr=u,db=d,appli={applications[n % len(applications)]}")
            for n in range(100)
        )

    path = uncork.write(log("psql", "web", "web"), "some.log")
    found = json.loads(uncork("profile", "logs", path, "--json").stdout)
    assert (found["entries"], found["rejected"]) == (100, 0)
    # A prefix that is given and fits only some; and one that changes where it is no longer looked for.
    wrong = uncork("profile", "logs", path, "-p", "%m [%p] usr=u,db=d,appli=psql ")
    assert "66 of 100 lines (66 %) belong to no entry and are not counted" in " ".join(wrong.stdout.split())
    begin = "".join(line(f"SELECT {n},\n\t2") for n in range(20_000))
    path = uncork.write(begin + log("psql"), "changed.log")
    found = json.loads(uncork("profile", "logs", path, "--json").stdout)
    assert (found["entries"], found["rejected"]) == (20_000, 100)
    assert found["rejected_lines"][0]["line"] == 40_001
    (file,) = found["files"]
    assert file["lines"] == 40_100 == file["heads"] + file["continuations"] + file["rejected"]
    assert file["continuations"] == 20_000


def test_passwords_of_the_log_are_not_kept(uncork):
    lost = "no entry: ALTER USER a PASSWORD 'hunter2'\n"
    path = uncork.write(lost + line("CREATE USER a PASSWORD 'hunter2'"), "some.log")
    assert uncork("profile", "logs", path).returncode == 0
    (folder,) = uncork.runs
    files = [one for one in folder.rglob("*") if one.is_file()]
    assert files and not any(b"hunter2" in one.read_bytes() for one in files)
    assert "PASSWORD '***'" in (folder / "report.html").read_text().replace("&#39;", "'")


def test_a_log_that_is_cut_short_is_told_and_ends_with_2(uncork):
    whole = gzip.compress("".join(line(f"SELECT {number}") for number in range(50_000)).encode(), 1)
    (uncork.folder / "cut.log.gz").write_bytes(whole[: len(whole) * 3 // 4])
    done = uncork("profile", "logs", "cut.log.gz")
    assert done.returncode == 2
    assert "cut.log.gz was read only in part" in " ".join(done.stdout.split())
    assert json.loads((uncork.runs[0] / "result.json").read_text())["entries"] > 20_000


def test_ctrl_c_keeps_what_was_read(uncork):
    os.mkfifo(uncork.folder / "pipe.log")
    process = uncork.start("profile", "logs", "pipe.log")
    with (uncork.folder / "pipe.log").open("w") as pipe:
        for number in range(60_000):
            pipe.write(line(f"SELECT {number}"))
        pipe.flush()
        uncork.wait_for(process, "entries")
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(BrokenPipeError):
            for _ in range(1_000):
                pipe.write(line("SELECT 1") * 10_000)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Reading was interrupted" in " ".join(out.split())
    (folder,) = uncork.runs
    assert json.loads((folder / "manifest.json").read_text())["status"] == "interrupted"


def test_a_log_is_followed_while_it_grows_and_is_rotated(uncork):
    logs = uncork.folder / "logs"
    logs.mkdir()
    (logs / "a.log").write_text("".join(line(f"SELECT {number}") for number in range(50)))
    process = uncork.start("profile", "logs", "logs", "--follow", "--every", "200ms", "--json")
    uncork.wait_for(process, "50 entries")
    with (logs / "a.log").open("a") as log:
        log.write("".join(line(f"SELECT {number}") for number in range(20)))
    # Renamed, the rest goes into a new file of the same name; the folder gets another one too.
    (logs / "a.log").rename(uncork.folder / "a.log.1")
    (logs / "a.log").write_text(line("SELECT 'after the rotation'") * 3)
    (logs / "b.log").write_text(line("UPDATE t SET a = 1") * 2)
    uncork.wait_for(process, "75 entries")
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    result = json.loads(out)
    assert [(one["text"], one["executions"]) for one in result["templates"]] == [
        ("select ?", 73),
        ("update t set a = ?", 2),
    ]
    assert result["run"]["status"] == "complete"
    assert result["rejected"] == 0


def test_filters_name_what_they_leave_out(uncork, tmp_path):
    log = tmp_path / "a.log"
    log.write_text(
        line("SELECT 1") * 3
        + line("SELECT 2").replace("u@d", "ada@stock")
        + line("SELECT 3").replace("app", "cron")
    )
    done = uncork("profile", "logs", log, "-q", "--database", "d", "--application", "!cron")
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert "left out 2 of 5 entries: 1 by application (cron 1); 1 by database (stock 1)" in words
    nothing = uncork("profile", "logs", log, "-q", "--user", "eve")
    assert nothing.returncode == 1
    assert 'most fail --user first: the log\'s names of the user are "u", "ada"' in nothing.stderr
    bare = uncork("profile", "logs", log, "-q", "--host", "10.0.0.7")
    assert bare.returncode == 1 and "add %h to the server's log_line_prefix" in bare.stderr


SERVERS_LINE = "2026-01-01 00:00:{second:02}.000 UTC [7] u@d app LOG:  duration: {ms} ms  statement: {text}\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Return a folder of two servers with equal processes; each has two files, and one is compressed."""
    for server, ms in (("db1", 1.5), ("db2", 4.5)):
        folder = tmp_path / "logs" / server
        folder.mkdir(parents=True)
        halves = [
            "".join(
                SERVERS_LINE.format(second=second, ms=ms, text=f"SELECT {server} FROM t WHERE id = {second}")
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
    (earlier / "a.log").write_text(SERVERS_LINE.format(second=1, ms=1, text="SELECT 1"))
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
