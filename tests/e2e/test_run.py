"""Whole experiments on the embedded PostgreSQL, from the file to the report and its exit status."""

from __future__ import annotations

import json
import re
import shutil
import signal
from pathlib import Path

import duckdb
import jsonschema
import pytest

from e2e.conftest import Uncork
from fakes.experiments import QUICK

pytestmark = pytest.mark.postgres
one_group = pytest.mark.xdist_group("one run")

FASTER = re.compile(r"key is .{1,12} (faster than|as fast as)\sscan")


@pytest.fixture(scope="module")
def measured(tmp_path_factory, commands):
    """Run the experiment once for the tests that read its run; they are one group, so one worker does."""
    uncork = Uncork(tmp_path_factory.mktemp("measured"), commands)
    done = uncork("run", uncork.write(QUICK), "--expect", "key=faster")
    assert done.returncode == 0, done.stderr
    (folder,) = uncork.runs
    return done, folder


@pytest.fixture
def copied(uncork, measured):
    """Return the run in a place where a test may add others."""
    _, folder = measured
    return Path(shutil.copytree(folder, uncork.folder / "runs" / folder.name))


@one_group
def test_a_faster_variant_is_found_and_reported_in_every_form(measured):
    done, folder = measured
    assert FASTER.search(done.stdout)
    assert done.stdout.rstrip().endswith(str(folder / "report.html"))
    result = json.loads((folder / "result.json").read_text())
    jsonschema.validate(result, json.loads(_schema("report")))
    (comparison,) = result["comparisons"]
    assert comparison["verdict"] == "faster"
    assert comparison["high"] < 1
    (key,) = [cost for cost in result["costs"] if cost["variant"] == "key"]
    (scan,) = [cost for cost in result["costs"] if cost["variant"] == "scan"]
    assert key["shared_hit"] < scan["shared_hit"]
    assert key["server_user_ns"] + key["server_system_ns"] > 0
    shapes = {plan["variant"]: plan["shape"] for plan in result["plans"]}
    assert shapes["key"].startswith("Index Scan using t_pkey")
    assert shapes["scan"].startswith("Seq Scan on t")
    html = (folder / "report.html").read_text()
    assert FASTER.search(html)
    assert FASTER.search((folder / "report.md").read_text())


def _schema(name: str) -> str:
    return (Path(__file__).parents[2] / "schemas" / f"{name}.schema.json").read_text()


@one_group
def test_every_block_holds_each_arm_once_and_the_stored_plan_says_so(measured):
    _, folder = measured
    rows = duckdb.sql(
        "SELECT round, block, count(*), count(DISTINCT variant || again::text) "
        f"FROM '{folder}/trials/*.parquet' GROUP BY round, block"
    ).fetchall()
    assert rows
    assert all(trials == arms == 3 for _, _, trials, arms in rows)
    jsonschema.validate(json.loads((folder / "plan.json").read_text()), json.loads(_schema("plan")))


def test_a_variant_that_returns_other_rows_is_refused_not_called_faster(uncork):
    wrong = QUICK.replace('"id = :id::int"', '"false AND id = :id::int"')
    done = uncork("run", uncork.write(wrong), "--expect", "key=faster")
    assert done.returncode == 3
    assert "key is refused" in done.stdout
    assert "wrong answer: 0 rows, but the baseline returns 20" in done.stderr
    assert "✓ faster" not in done.stdout


def test_the_same_number_of_other_rows_is_refused_too(uncork):
    wrong = QUICK.replace('"id = :id::int"', '"id = 1 + :id::int % 3000"').replace(
        "SELECT f FROM t", "SELECT id FROM t"
    )
    done = uncork("run", uncork.write(wrong))
    assert done.returncode == 1, "nothing was measured"
    assert (
        "nothing was measured, because every comparison was refused or skipped; the first is key on get"
        in done.stderr
    )
    assert "as precise as asked" not in done.stderr
    (folder,) = uncork.runs
    run = json.loads((folder / "result.json").read_text())["run"]
    assert run["status"] == "failed" and run["stopped_because"].startswith("nothing was measured")
    assert uncork("report", folder.name, "--markdown").returncode == 0, "the refusals are kept"
    assert "as many rows as the baseline returns, but different ones: the first row that d" in done.stderr


@pytest.mark.thorough
def test_other_data_left_behind_is_refused(uncork):
    text = QUICK.replace(
        'sql = "SELECT f FROM t WHERE :condition"',
        'sql = "UPDATE t SET f = :text WHERE id = :id::int"\ncheck = "SELECT id, f FROM t"',
    )
    text = text.replace('condition = "id + 0 = :id::int"', "text = \"'y'\"")
    text = text.replace('condition = "id = :id::int"', "text = \"'z'\"")
    done = uncork("run", uncork.write(text))
    assert done.returncode == 1, done.stderr
    assert "leaves different data behind" in done.stderr


def test_a_question_without_an_answer_ends_with_status_4_when_one_was_demanded(uncork):
    same = QUICK.replace("id + 0 = :id::int", "id = :id::int").replace('"50%"', '"0.1%"')
    same = same.replace('budget = "200s"', 'budget = "200s"\nmaximum_rounds = 3\nminimum_rounds = 3')
    done = uncork("run", uncork.write(same), "--expect", "key=faster")
    assert done.returncode == 4, done.stdout
    assert "expected faster: key on get is not enough evidence" in done.stderr


@one_group
def test_a_run_can_be_repeated_listed_and_reported_again(uncork, copied):
    again = uncork("rerun", "last", "--json", "--html", uncork.folder / "page.html")
    assert again.returncode == 0, again.stderr
    assert len(uncork.runs) == 2
    assert again.stdout == uncork("report", uncork.runs[1].name, "--json").stdout
    assert FASTER.search((uncork.folder / "page.html").read_text())
    assert "page.html" not in again.stdout + again.stderr, "only the document is printed"
    first, second = (json.loads((run / "manifest.json").read_text()) for run in uncork.runs)
    assert first["seed"] == second["seed"]
    assert (uncork.runs[0] / "experiment.toml").read_text() == (
        uncork.runs[1] / "experiment.toml"
    ).read_text()
    listed = uncork("runs")
    assert listed.stdout.count("complete") == 2
    report = uncork("report", uncork.runs[0].name, "--json")
    assert json.loads(report.stdout)["run"]["id"] == uncork.runs[0].name
    assert uncork("report", "--markdown").stdout.startswith("# ")


@one_group
def test_a_damaged_run_is_said_and_the_others_stay_readable(uncork, copied):
    broken = copied.with_name("broken-20200101-000000")
    broken.mkdir()
    (broken / "manifest.json").write_text("{")
    listed = uncork("runs")
    assert listed.returncode == 0
    assert copied.name in listed.stdout
    assert "damaged" in listed.stderr
    again = uncork("report", broken.name)
    assert again.returncode == 2
    assert "manifest.json: damaged" in again.stderr
    assert "Traceback" not in again.stderr


LONG = QUICK.replace('"50%"', '"0.01%"\nblocks = 2\nminimum_rounds = 3\nmaximum_rounds = 3').replace(
    "operations = 40", 'duration = "100ms"'
)


def interrupted(uncork, number):
    """Send a run a signal in its second round; return the run's folder and the rounds that it kept."""
    process = uncork.start("run", uncork.write(LONG), "--markdown")
    uncork.wait_for(process, "round 2:")
    process.send_signal(number)
    out, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    assert error.endswith("uncork: interrupted\n")
    assert "Traceback" not in error
    (folder,) = uncork.runs
    assert f"uncork run --resume {folder.name}" in error
    assert out == uncork("report", folder.name, "--markdown").stdout
    rounds = _rounds(folder)
    assert rounds[:1] == [1]
    return folder, rounds


def test_a_terminated_run_keeps_what_was_measured(uncork):
    interrupted(uncork, signal.SIGTERM)


@pytest.mark.thorough
def test_an_interrupted_run_keeps_what_was_measured_and_goes_on(uncork):
    folder, rounds = interrupted(uncork, signal.SIGINT)
    done = uncork("run", "--resume", folder.name, "--budget", "200s")
    assert done.returncode == 0, done.stderr
    after = _rounds(folder)
    assert after[: len(rounds)] == rounds
    assert len(after) > len(rounds)
    assert json.loads((folder / "manifest.json").read_text())["status"] == "complete"


@pytest.mark.thorough
def test_a_killed_run_leaves_no_server_for_the_next_one(uncork):
    process = uncork.start("run", uncork.write(LONG))
    uncork.wait_for(process, "round 2:")
    process.kill()
    process.communicate()
    (folder,) = uncork.runs
    assert _rounds(folder) == [1]
    assert "killed" in uncork("runs").stdout
    done = uncork("run", "--resume", "last")
    assert done.returncode == 0, done.stderr
    assert _rounds(folder)[0] == 1


def _rounds(folder) -> list[int]:
    rows = duckdb.sql(f"SELECT DISTINCT round FROM '{folder}/trials/*.parquet' ORDER BY round").fetchall()
    return [number for (number,) in rows]


@pytest.mark.thorough
def test_a_server_that_crashes_in_mid_trial_is_reported_and_the_run_goes_on(uncork):
    from uncork.engines.places import servers_folder

    before = set(servers_folder().glob("pg-*"))
    process = uncork.start("run", uncork.write(LONG))
    uncork.wait_for(process, "round 2:")
    (own,) = set(servers_folder().glob("pg-*")) - before
    postmaster = json.loads((own / "owner.json").read_text())["server"]["pid"]
    import os

    os.kill(postmaster, signal.SIGQUIT)
    seen = uncork.wait_for(process, "crashed")
    assert any("was restarted" in line for line in seen)
    uncork.wait_for(process, "round 3:")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130


def test_an_existing_server_is_measured_by_blocks_and_the_report_says_what_that_cannot_see(uncork):
    from uncork.engines.embedded import EmbeddedServer

    server = EmbeddedServer({})
    server.start()
    try:
        text = QUICK.replace('[server.settings]\nshared_buffers = "32MB"\n', "")
        done = uncork(
            "run",
            uncork.write(text),
            "--dsn",
            f"host={server.host} port={server.port} user=uncork dbname=postgres",
        )
        assert done.returncode == 0, done.stderr
        (folder,) = uncork.runs
        result = json.loads((folder / "result.json").read_text())
        assert any("not restarted between blocks" in warning for warning in result["warnings"])
        assert result["comparisons"][0]["verdict"] == "faster"
    finally:
        server.stop()
