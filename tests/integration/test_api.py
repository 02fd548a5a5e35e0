"""Every verb from Python, on real servers: in a thread beside a running event loop, and interrupted."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from typer.testing import CliRunner

import uncork
from fakes.experiments import QUICK
from fakes.http_servers import answer, scripted
from uncork.api.experiments import DoctorRun
from uncork.api.runs import CpuRun, DatabaseRun, ExperimentRun, GuardRun, LoadRun, LogRun, SweepRun
from uncork.cli.app import app
from uncork.engines.places import servers_folder
from uncork.errors import ConnectError, ExpectationError, SetupError, SpecError, UsageError

SHORT = QUICK.replace('"50%"', '"90%"\nminimum_rounds = 5\nmaximum_rounds = 6\nblocks = 2')
FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def heard():
    return []


@pytest.fixture(scope="module")
def found(runs, heard):
    """An experiment, measured in a thread while an event loop runs: signals are not for threads."""

    async def measure():
        ticks = 0
        task = asyncio.create_task(
            asyncio.to_thread(uncork.run, SHORT, budget="120s", runs=runs, progress=heard.append)
        )
        while not task.done():
            ticks += 1
            await asyncio.sleep(0.05)
        assert ticks > 20
        return await task

    return asyncio.run(measure())


@pytest.fixture(scope="module")
def load(runs, embedded):
    """A load, sent from within a running event loop, as a notebook's cell is."""

    async def measure():
        return uncork.load_sql(
            embedded.conninfo(), script="SELECT 1;", clients=2, time="1s", random_seed=7, runs=runs
        )

    return asyncio.run(measure())


pytestmark = pytest.mark.postgres


def test_an_experiment_gives_verdicts_tables_and_reports(found, heard, runs):
    assert isinstance(found, ExperimentRun)
    assert found.status == "complete"
    assert heard[0] == f"run {found.id}"
    assert any(line.startswith("round 1: ") for line in heard)
    assert found["key"].faster
    assert not found["key"].undecided
    (one,) = found.comparisons
    assert one.high < 1
    assert re.search(r"^key is .{1,12} (faster than|as fast as) scan", found.answer)
    assert repr(found) == f"<uncork run {found.id}: {found.answer}>"
    found.expect("key=faster")
    with pytest.raises(KeyError, match="it compares: key"):
        found["kye"]
    assert json.loads(found.json())["answer"] == found.answer
    assert found.markdown().startswith("# ")
    assert "<!doctype html>" in found.html().lower()


def test_the_tables_of_a_run_are_the_same_in_three_forms(found):
    assert {"comparisons", "trials", "statements", "plans"} <= set(found.tables)
    for name in ("comparisons", "trials"):
        arrow = found.arrow(name)
        assert arrow.num_rows == len(found.pandas(name)) == found.polars(name).height > 0
        assert arrow.column_names == list(found.pandas(name).columns) == found.polars(name).columns
        assert "filename" not in arrow.column_names
    counted = found.sql("SELECT variant, count(*)::INT AS n FROM trials GROUP BY ALL ORDER BY ALL").rows()
    assert [row["variant"] for row in counted] == ["key", "scan"]
    with pytest.raises(UsageError, match=f'run {found.id} has no table "trails"; it has comparisons, '):
        found.table("trails")
    with pytest.raises(UsageError, match="nope"):
        found.sql("SELECT nope FROM trials")


def test_uncork_sql_has_the_tables_of_the_python_api(found, runs):
    def asked(*words):
        done = CliRunner().invoke(app, ["sql", *words, "--json", "--runs", str(runs)])
        assert done.exit_code == 0, done.output
        return [json.loads(line) for line in done.stdout.splitlines()]

    assert [row["table"] for row in asked(found.id)] == list(found.tables)
    rows = asked(found.id, "SELECT variant, ratio, verdict FROM comparisons")
    assert rows == found.sql("SELECT variant, ratio, verdict FROM comparisons").rows()
    assert rows == uncork.sql("SELECT variant, ratio, verdict FROM comparisons", run=found, runs=runs).rows()
    assert rows[0]["verdict"] == found.comparisons[0].verdict
    newest = uncork.open(runs=runs)
    assert set(newest.tables) <= {row["name"] for row in asked("SHOW TABLES")}


def test_a_guard_says_which_gates_are_broken(runs, tmp_path):
    file = tmp_path / "quick.toml"
    file.write_text(SHORT)
    guarded = uncork.guard(
        file, baseline="variant=key", candidate="variant=scan", gates="p50 < +30%", confirm=False, runs=runs
    )
    assert isinstance(guarded, GuardRun)
    assert (guarded.passed, guarded.undecided) == (False, False)
    assert [one.outcome.value for one in guarded.checks] == ["broken"]
    with pytest.raises(ExpectationError, match=r"p50 < \+30% on get: broken"):
        guarded.check()
    with pytest.raises(UsageError, match="has ended; see it with: uncork report"):
        uncork.guard(resume=guarded, runs=runs)
    again = uncork.open(guarded.id, runs=runs)
    assert isinstance(again, GuardRun)
    assert again.answer == guarded.answer
    command = guarded.result.reproduce
    assert command.endswith("--gate 'p50 < +30%' --no-confirm")


def test_a_plan_measures_nothing(runs):
    before = len(uncork.runs(runs=runs))
    assert uncork.plan(QUICK, budget="1min").comparisons == 1
    assert len(uncork.runs(runs=runs)) == before


def test_a_load_gives_its_figures(load):
    assert isinstance(load, LoadRun)
    assert load.ok
    assert load.result.counts.succeeded > 100
    assert load.pandas("load_totals")["succeeded"].tolist() == [load.result.counts.succeeded]


def test_a_sweep_gives_its_levels(runs, embedded):
    heard = []
    swept = uncork.sweep_sql(
        embedded.conninfo(),
        script="SELECT 1;",
        sweep="clients",
        to=2,
        time="200ms",
        budget="3s",
        runs=runs,
        progress=heard.append,
    )
    assert isinstance(swept, SweepRun)
    assert swept.result.levels
    assert any("clients: " in line for line in heard)


def test_a_service_is_loaded_by_http(runs):
    with scripted(lambda connection, _: answer(connection)) as port:
        load = uncork.load_http(
            f"http://127.0.0.1:{port}/",
            requests=20,
            header={"X-Api-Key": "hush"},
            expect_status=200,
            runs=runs,
        )
        swept = uncork.sweep_http(f"http://127.0.0.1:{port}/", to=2, duration="200ms", budget="2s", runs=runs)
    assert (load.ok, load.result.counts.succeeded) == (True, 20)
    assert "hush" not in load.result.run.reproduce
    assert swept.result.levels


def test_a_server_is_watched(runs, embedded):
    watched = uncork.profile_db(embedded.conninfo(), lasting="1s", runs=runs)
    assert isinstance(watched, DatabaseRun)
    assert watched.result.answer == watched.answer


@contextmanager
def slow_lookups(server):
    """Look rows up in a table without an index until the block ends."""
    over = threading.Event()

    def work():
        with psycopg.connect(server.conninfo(), autocommit=True) as connection:
            while not over.is_set():
                connection.execute("SELECT note FROM letter WHERE sender = %s", (7,))

    with psycopg.connect(server.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE TABLE letter (id int PRIMARY KEY, sender int, note text)")
        connection.execute(
            "INSERT INTO letter SELECT n, n % 50000, repeat('x', 80) FROM generate_series(1, 200000) AS n"
        )
        connection.execute("VACUUM ANALYZE letter")
    worker = threading.Thread(target=work)
    worker.start()
    try:
        yield
    finally:
        over.set()
        worker.join()


def test_advice_is_what_the_command_says(runs, embedded):
    with slow_lookups(embedded):
        advice = uncork.advise(embedded.conninfo(), lasting="2s", runs=runs)
    finding = advice.findings[0]
    assert finding.rule == "missing-index" and "letter (sender)" in finding.candidates[0].sql
    assert advice.answer in repr(advice) and advice.answer in advice.markdown()
    assert "missing-index" in advice.json() and "<html" in advice.html()
    assert "CREATE INDEX" in advice.experiment(1)
    with pytest.raises(UsageError, match=r"^experiment 99: there "):
        advice.experiment(99)
    stored = uncork.open("last", runs=runs)
    assert isinstance(stored, DatabaseRun)
    again = uncork.advise(stored, runs=runs)
    assert again.findings == advice.findings and stored.id in again.result.reproduce
    done = CliRunner().invoke(app, ["advise", stored.id, "--runs", str(runs), "--json"])
    told, mine = json.loads(done.stdout), json.loads(again.json())
    assert {**told, "reproduce": ""} == {**mine, "reproduce": ""}
    log = FIXTURES / "logs" / "same-events.stderr.log.gz"
    both = uncork.advise(stored.id, log, runs=runs)
    assert [one.kind for one in both.result.sources] == ["database", "log"]


def test_logs_and_stacks_are_profiled_and_two_of_them_compared(runs):
    name = FIXTURES / "logs" / "same-events.stderr.log.gz"
    logs = [uncork.profile_logs(name, runs=runs) for _ in range(2)]
    assert isinstance(logs[0], LogRun)
    assert logs[0].result.executions.count > 0
    assert "log_templates" in logs[0].tables
    stacks = uncork.profile_cpu(imports=[FIXTURES / "stacks" / "cpu.pb.gz"], runs=runs)
    assert isinstance(stacks, CpuRun)
    assert stacks.answer
    compared = uncork.compare(*logs, runs=runs)
    assert compared.answer == compared.result.answer
    assert compared.markdown()


def test_the_stored_runs_are_listed_opened_named_compared_and_asked(found, load, runs):
    listed = uncork.runs(runs=runs)
    assert {run.id for run in listed} >= {found.id, load.id}
    assert [run.kind for run in uncork.runs(kind="load", last=1, runs=runs)] == ["load"]
    assert listed.table().arrow().num_rows == len(listed)
    assert found.question in listed._repr_html_()
    assert uncork.open(found.id, runs=runs) == found
    uncork.name(load, "baseline", runs=runs)
    assert uncork.open("baseline", runs=runs) == load
    other = uncork.load_sql(dsn=load_place(load), script="SELECT 1;", clients=2, time="1s", runs=runs)
    assert uncork.compare(other, runs=runs).result.before.id == load.id
    history = uncork.history("throughput", like=load, runs=runs)
    assert history.table().rows()[0]["id"] == load.id
    assert history.markdown()
    rows = uncork.sql("SELECT run, kind FROM runs ORDER BY run", runs=runs).rows()
    assert {"run": found.id, "kind": "experiment"} in rows
    one = uncork.sql("SELECT count(*)::INT AS n FROM trials", run=found, runs=runs)
    assert one.rows() == [{"n": found.arrow("trials").num_rows}]


def load_place(load):
    """Return the connection string that a load was given."""
    return load.result.run.reproduce.split("'")[1]


def test_what_the_doctor_says_is_made_of_a_stored_run(found):
    diagnosis = DoctorRun(found.folder).diagnosis
    assert diagnosis.comparisons == 1
    assert diagnosis.lines[0] == ("noise floor", found.noise.sentence)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda runs: uncork.run(runs=runs),
            UsageError,
            "name an experiment file, give its text",
        ),
        (lambda runs: uncork.run("nope.toml", runs=runs), UsageError, "cannot read nope.toml"),
        (lambda runs: uncork.run("[experimnt]\n", runs=runs), SpecError, 'did you mean "experiment"'),
        (lambda runs: uncork.run(QUICK, sets={"rows": 1}, runs=runs), SpecError, "no such factor"),
        (
            lambda runs: uncork.run(QUICK, dsn="x=y", port=2000, runs=runs),
            UsageError,
            "^dsn names a running server",
        ),
        (lambda runs: uncork.run_case("nope", runs=runs), UsageError, 'there is no case "nope"'),
        (lambda runs: uncork.doctor(budget="5", runs=runs), UsageError, "^budget: expected a time"),
        (lambda runs: uncork.load_sql(clients=0, runs=runs), UsageError, "^clients must be in range"),
        (lambda runs: uncork.load_sql(time=5, runs=runs), UsageError, "^time=5: write a time with its unit"),
        (
            lambda runs: uncork.load_sql("host=127.0.0.1 port=1", script="SELECT 1;", runs=runs),
            ConnectError,
            "Connection refused",
        ),
        (
            lambda runs: uncork.load_http("nope", runs=runs),
            UsageError,
            '"nope" has no scheme; write http://nope/',
        ),
        (lambda runs: uncork.sweep_sql("x", to=0, runs=runs), UsageError, "^to 0 must be between 1"),
        (
            lambda runs: uncork.profile_db(rate=1000, runs=runs),
            UsageError,
            "^rate 1000: give from 0.1 to 200",
        ),
        (lambda runs: uncork.profile_logs(runs=runs), UsageError, "name a log to read"),
        (lambda runs: uncork.advise("nope", runs=runs), UsageError, "no such log file or run"),
        (lambda runs: uncork.advise("a=b", "c=d", runs=runs), UsageError, "give one connection string"),
        (lambda runs: uncork.advise(rate=1000, runs=runs), UsageError, "^rate 1000: give from 0.1 to 200"),
        (lambda runs: uncork.profile_cpu(runs=runs), UsageError, "name what to profile: pids, postgres"),
        (lambda runs: uncork.guard("nope.toml", runs=runs), UsageError, "nope.toml"),
        (lambda runs: uncork.guard("x.toml", gates="fast", runs=runs), UsageError, "fast"),
        (lambda runs: uncork.open("x", runs=runs), SetupError, "there are no runs in"),
        (lambda runs: uncork.sql(runs=runs), SetupError, "there are no runs in"),
        (lambda runs: uncork.compare(runs=runs), UsageError, "name the runs to compare"),
    ],
)
def test_a_mistake_is_one_error_that_says_what_and_leaves_no_run(tmp_path, call, error, message):
    folder = tmp_path / "none"
    with pytest.raises(error, match=message):
        call(folder)
    assert not [run for run in folder.glob("*") if "load" not in run.name]


LONG = """
import uncork

TEXT = '''{text}'''
try:
    uncork.run(TEXT, progress=True)
except KeyboardInterrupt as error:
    print(*error.__notes__)
again = uncork.run(resume="last", budget="200s")
print(again.status, again.arrow("trials").num_rows)
"""


@pytest.mark.thorough
def test_ctrl_c_ends_a_run_leaves_no_server_and_the_run_goes_on_later(tmp_path):
    text = QUICK.replace('"50%"', '"0.01%"\nminimum_rounds = 3\nmaximum_rounds = 3\nblocks = 2').replace(
        "\\", "\\\\"
    )
    before = set(servers_folder().glob("pg-*"))
    process = subprocess.Popen(
        [sys.executable, "-c", LONG.format(text=text)],
        cwd=tmp_path,
        env={**os.environ, "UNCORK_RUNS": str(tmp_path / "runs")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stderr:
        if "round 2:" in line:
            break
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    (folder,) = (tmp_path / "runs").glob("quick-*")
    kept, ended = out.splitlines()
    assert kept == f"kept what was measured; continue with uncork.run(resume={folder.name!r})"
    status, trials = ended.split()
    assert status == "complete"
    assert int(trials) >= 3 * 2 * 3
    attempts = json.loads((folder / "manifest.json").read_text())["attempts"]
    assert [one["outcome"] for one in attempts] == ["interrupted", "complete"]
    assert set(servers_folder().glob("pg-*")) == before
