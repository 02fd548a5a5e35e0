"""`uncork advise` as people call it: a server, a stored run, its logs, an experiment; and bad input."""

import json
import tomllib
from pathlib import Path

import jsonschema
import psycopg
import pytest

from databases.indexes import SCENARIOS
from databases.scenario import SETTINGS, at_work, lay_out
from uncork.engines.embedded import EmbeddedServer

pytestmark = pytest.mark.postgres
SCHEMA_FOLDER = Path(__file__).parents[2] / "schemas"
SCHEMA = json.loads((SCHEMA_FOLDER / "advice.schema.json").read_text())
SICK = next(one for one in SCENARIOS if one.name == "a missing index")


@pytest.fixture(scope="module")
def server():
    found = EmbeddedServer(dict(SETTINGS))
    found.start()
    lay_out(found, SICK, "sick")
    yield found
    found.stop()


def test_a_server_is_judged_and_its_run_again(uncork, server):
    with at_work(server, SICK, "sick"):
        done = uncork("advise", server.conninfo("sick"), "--for", "2s", "--quiet")
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
    jsonschema.validate(found, SCHEMA)
    (finding,) = found["findings"]
    assert finding["rule"] == "missing-index"
    assert finding["bill"]["low"] <= finding["bill"]["seconds_per_hour"] <= finding["bill"]["high"]
    assert json.loads((folder / "advice.json").read_text()) == found
    written = uncork("advise", "last", server.conninfo("sick"), "--experiment", "1")
    assert written.returncode == 0, written.stderr
    question = tomllib.loads(written.stdout)
    assert question["variants"]["changed"]["values"]["change"].startswith("CREATE INDEX item_customer_idx")
    assert "CREATE TABLE item" in question["setup"]["sql"]
    assert "FILL IN" not in written.stdout.replace('marked with "FILL IN"', "")


def test_a_load_is_followed_by_findings_about_its_database(uncork, server):
    script = uncork.folder / "search.sql"
    script.write_text("\\set c random(1, 1000)\nSELECT count(*) FROM item WHERE customer = :c;\n")
    conninfo = server.conninfo("sick")
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


def test_a_role_without_rights_learns_what_is_missing(uncork, server):
    with psycopg.connect(server.conninfo("sick"), autocommit=True) as connection:
        connection.execute("CREATE ROLE nothing LOGIN")
    conninfo = server.conninfo("sick").replace("user=uncork", "user=nothing")
    with at_work(server, SICK, "sick"):
        done = uncork("advise", conninfo, "--for", "1s", "--quiet")
    assert done.returncode == 1 and 'is hidden from role "nothing"' in done.stderr
    told = " ".join(done.stdout.split())
    assert told.startswith('Role "nothing" may not see the statements with ')
    assert 'GRANT pg_read_all_stats TO "nothing"' in told
