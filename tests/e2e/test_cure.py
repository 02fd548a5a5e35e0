"""`uncork advise` and `uncork cure` as people call them."""

import json
import re
import signal
import tomllib
from pathlib import Path

import jsonschema
import psycopg
import pytest

from databases.indexes import SCENARIOS
from databases.scenario import SETTINGS, at_work, lay_out
from uncork.analysis.runs.listing import read_runs
from uncork.engines.embedded import EmbeddedServer
from uncork.serve.progress import run_progress
from uncork.store.run_documents import read_cure
from uncork.store.snapshots import SNAPSHOTS

pytestmark = pytest.mark.postgres

SCHEMA = json.loads((Path(__file__).parents[2] / "schemas" / "cure-result.schema.json").read_text())
SICK = next(one for one in SCENARIOS if one.name == "a missing index")
READING = ("SELECT", "SET", "SHOW", "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "EXPLAIN", "COPY")
READING += ("WITH", "FETCH", "DECLARE", "CLOSE", "DEALLOCATE", "PREPARE")


@pytest.fixture(scope="module")
def server():
    found = EmbeddedServer({**SETTINGS, "log_statement": "all"})
    found.start()
    lay_out(found, SICK, "sick")
    yield found
    found.stop()


def indexes(server):
    with psycopg.connect(server.conninfo("sick")) as connection:
        rows = connection.execute(
            "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'item'::regclass"
        )
        return {name for (name,) in rows}


def execute(server, script):
    with psycopg.connect(server.conninfo("sick"), autocommit=True) as connection:
        for statement in re.split(r";\n(?=\s*(?:--|SET|CREATE|DROP|DO|$))", script):
            if re.sub(r"--[^\n]*", "", statement).strip():
                connection.execute(statement.encode())


def test_a_missing_index_is_proven_on_a_copy_and_handed_over(uncork, server, tmp_path):
    with at_work(server, SICK, "sick"):
        watched = uncork("advise", server.conninfo("sick"), "--for", "2s", "--quiet")
    assert watched.returncode == 0, watched.stderr
    dry = uncork("cure", "last", server.conninfo("sick"), "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "tries the changes of 1 finding" in dry.stderr

    server.take_log(tmp_path / "before.log")
    before = indexes(server)
    out = tmp_path / "change"
    asked = ("cure", "last", server.conninfo("sick"), "--budget", "2min", "--json", "-q", "-o", out)
    done = uncork(*asked)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    jsonschema.validate(found, SCHEMA)
    (tried,) = found["tried"]
    assert (tried["state"], found["chosen"]["state"]) == ("cured", "cured"), found["answer"]
    assert "item" in found["answer"]
    usual = {one["name"]: one for one in found["usual"]}
    assert set(usual) == {"more-memory", "index-on-each-column"}, found["answer"]
    memory = usual["more-memory"]["net"]
    assert memory is None or memory["saved"] < found["chosen"]["net"]["saved"], found["usual"]
    net = found["chosen"]["net"]
    assert 0 < net["low"] <= net["saved"] <= net["high"] <= net["before"]

    server.take_log(tmp_path / "source.log")
    sent = re.findall(
        r"(?:statement|execute [^:]*): +(?:/\*.*?\*/ *)?(\w+)", (tmp_path / "source.log").read_text()
    )
    assert sent and {word.upper() for word in sent} <= set(READING)
    assert indexes(server) == before

    execute(server, (out / "up.sql").read_text())
    (made,) = indexes(server) - before
    assert "customer" in made
    execute(server, (out / "down.sql").read_text())
    assert indexes(server) == before
    assert "CREATE INDEX" in (out / "pull-request.md").read_text()
    planned = uncork("plan", out / "experiment.toml")
    assert planned.returncode == 0, planned.stderr
    shown = uncork("report", "last")
    assert found["answer"].split(":")[0] in " ".join(shown.stdout.split())


@pytest.mark.thorough
def test_the_dashboard_shows_the_step_of_a_cure(uncork, server):
    with at_work(server, SICK, "sick"):
        watched = uncork("advise", server.conninfo("sick"), "--for", "2s", "--quiet")
    assert watched.returncode == 0, watched.stderr
    process = uncork.start("cure", "last", server.conninfo("sick"), "--budget", "60s")
    uncork.wait_for(process, "finding 1 of 1: ")
    run = next(one for one in read_runs(uncork.folder / "runs").runs if one.kind == "cure")
    found = run_progress(run)
    assert run.status == "running"
    # Even a cure that is killed now has a report and can be resumed.
    (tried,) = read_cure(run.folder).tried
    assert (tried.state, tried.reason) == ("not tried", "not reached: uncork was ended")
    assert " of at most 60.0 s: measuring finding 1 of 1: " in found.sentence
    assert {"copying the database", "choosing what to try"} <= {step for _, step, _ in found.rows}
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert not (run.folder / SNAPSHOTS).exists()


def test_bad_input_is_refused_in_words(uncork, server):
    conninfo = server.conninfo("sick")
    for words, said in (
        ((conninfo, "--disk", "much"), "--disk"),
        ((conninfo, "--pg-bin", "/nowhere"), "no such folder"),
        (
            (conninfo, "--for", "0.1s", "--copy", "postgresql://me:secret@127.0.0.1/copy"),
            "leave the password out",
        ),
        (("/nowhere.log", conninfo), "no such log file or run"),
        (("postgresql://127.0.0.1:1/none", "--for", "1s"), "127.0.0.1"),
    ):
        done = uncork("cure", *words)
        assert done.returncode == 1, done.stderr
        assert said in done.stderr
        assert "Traceback" not in done.stderr and "secret" not in done.stderr


SCHEMA_FOLDER = Path(__file__).parents[2] / "schemas"
ADVISE_SCHEMA = json.loads((SCHEMA_FOLDER / "advice.schema.json").read_text())


@pytest.fixture(scope="module")
def advise_server():
    found = EmbeddedServer(dict(SETTINGS))
    found.start()
    lay_out(found, SICK, "sick")
    yield found
    found.stop()


def test_a_server_is_judged_and_its_run_again(uncork, advise_server):
    with at_work(advise_server, SICK, "sick"):
        done = uncork("advise", advise_server.conninfo("sick"), "--for", "2s", "--quiet")
    assert done.returncode == 0, done.stderr
    first = done.stdout.split("\n\n")[0]
    assert "item" in first
    assert "% of the busy time" in first
    assert "s of sessions' time an hour" in " ".join(done.stdout.split())
    assert "Looked at with" in done.stdout
    (folder,) = uncork.runs
    page = (folder / "advice.html").read_text()
    assert "item" in page
    again = uncork("advise", "last", "--json")
    found = json.loads(again.stdout)
    jsonschema.validate(found, ADVISE_SCHEMA)
    (finding,) = found["findings"]
    assert finding["rule"] == "missing-index"
    assert finding["bill"]["low"] <= finding["bill"]["seconds_per_hour"] <= finding["bill"]["high"]
    assert json.loads((folder / "advice.json").read_text()) == found
    written = uncork("advise", "last", advise_server.conninfo("sick"), "--experiment", "1")
    assert written.returncode == 0, written.stderr
    question = tomllib.loads(written.stdout)
    assert question["variants"]["changed"]["values"]["change"].startswith("CREATE INDEX item_customer_idx")
    assert "CREATE TABLE item" in question["setup"]["sql"]
    assert "FILL IN" not in written.stdout.replace('marked with "FILL IN"', "")


def test_a_load_is_followed_by_findings_about_its_database(uncork, advise_server):
    script = uncork.folder / "search.sql"
    script.write_text("\\set c random(1, 1000)\nSELECT count(*) FROM item WHERE customer = :c;\n")
    conninfo = advise_server.conninfo("sick")
    done = uncork("load", "sql", "-f", script, "-c", 2, "-T", 1, "--advise", conninfo)
    assert done.returncode == 0, done.stderr
    assert "sending the load for 5 s more" in done.stderr
    (folder,) = uncork.runs
    result = json.loads((folder / "result.json").read_text())
    jsonschema.validate(result, json.loads((SCHEMA_FOLDER / "load-result.schema.json").read_text()))
    assert result["findings"][0]["rule"] == "missing-index"
    steps = {one["name"]: one for one in result["steps"]}
    assert sum(one["share"] for one in steps.values()) == pytest.approx(1)
    assert steps["execute"]["share"] > 0.5 and 0 < steps["network"]["share"] < 0.3
    assert "Where the time of a transaction went" in " ".join(done.stdout.split())
    assert result["run"]["elapsed_ns"] < 2e9  # the second sending is not in the figures
    assert "CREATE INDEX" in done.stdout and f"uncork cure {folder.name}" in " ".join(done.stdout.split())
    again = uncork("advise", "last", "--json")
    assert json.loads(again.stdout)["findings"][0]["headline"] == result["findings"][0]["headline"]
    tried = uncork("cure", "last", conninfo, "--dry-run", "--quiet")
    assert tried.returncode == 0, tried.stderr
    assert "item_customer_idx" in tried.stdout


def test_a_role_without_rights_learns_what_is_missing(uncork, advise_server):
    with psycopg.connect(advise_server.conninfo("sick"), autocommit=True) as connection:
        connection.execute("CREATE ROLE nothing LOGIN")
    conninfo = advise_server.conninfo("sick").replace("user=uncork", "user=nothing")
    with at_work(advise_server, SICK, "sick"):
        done = uncork("advise", conninfo, "--for", "1s", "--quiet")
    assert done.returncode == 1 and 'is hidden from role "nothing"' in done.stderr
    told = " ".join(done.stdout.split())
    assert told.startswith('Role "nothing" may not see the statements with ')
    assert 'GRANT pg_read_all_stats TO "nothing"' in told
