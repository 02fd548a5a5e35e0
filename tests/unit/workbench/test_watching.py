"""What the workbench joins: watches, records of runs, and signals."""

import importlib.util
import json
import math
import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pytest

from uncork.analysis.runs import figures
from uncork.engines import process
from uncork.engines.watch.connection import Look
from uncork.errors import SetupError, StoreError, UsageError
from uncork.experiment.plan.switching import turns
from uncork.experiment.run.events import BudgetShort, Preparing, RoundEnded, RoundStarted
from uncork.model.http import HttpServer, HttpSpec, Request
from uncork.model.load import LoadProgress
from uncork.model.results.observer_cost import ObserverCost, Pushes, Slice
from uncork.model.results.service import WorkerFacts
from uncork.model.tables.load import LoadTimes
from uncork.store.layout import check_writable, read_manifest, write_manifest
from uncork.workbench import run_record
from uncork.workbench.advice.sources import tell_apart
from uncork.workbench.event_words import RunSteps, event_line, progress_line
from uncork.workbench.load.monitor import Sample, SessionsSeen, database_use
from uncork.workbench.overhead.agent_cost import agent_source, pushes_of
from uncork.workbench.overhead.costs import _by_switching
from uncork.workbench.overhead.session import switched_seconds
from uncork.workbench.overhead.switched import SLICES_FILE, judge_switched, write_slices
from uncork.workbench.profile.database_plans import top_statements
from uncork.workbench.profile.database_watch import Samples, next_tick
from uncork.workbench.profile.service_slices import plan_slices
from uncork.workbench.profile.services import choose_sampler, code_times, costliest_requests
from uncork.workbench.run_record import RunRecord, draft, start_run
from uncork.workbench.signals import uninterrupted


def test_without_sources_the_server_of_the_environment_is_watched(tmp_path):
    found = tell_apart(tmp_path, [])
    assert (found.server, found.folders, found.logs) == ("", (), ())


def test_a_server_and_its_logs(tmp_path):
    log = tmp_path / "today.log"
    log.write_text("")
    found = tell_apart(tmp_path / "runs", ["postgresql:///shop", str(log)])
    assert (found.server, found.logs) == ("postgresql:///shop", (str(log),))
    assert tell_apart(tmp_path, ["host=db dbname=shop"]).server == "host=db dbname=shop"


def test_an_address_of_objects_is_a_log_and_no_server(tmp_path):
    found = tell_apart(tmp_path, ["s3://logs/error/", "postgres://h/shop", "https://h/a.log?x=1"])
    assert (found.server, found.logs) == ("postgres://h/shop", ("s3://logs/error/", "https://h/a.log?x=1"))


def test_what_does_not_exist_is_refused_with_what_to_write(tmp_path):
    with pytest.raises(UsageError, match=r'shop: there is no such log file or run .*write "dbname=shop"'):
        tell_apart(tmp_path / "runs", ["shop"])


def test_two_servers_are_refused(tmp_path):
    with pytest.raises(UsageError, match="one server"):
        tell_apart(tmp_path, ["postgresql:///shop", "dbname=other"])


ASKED = {"clients": 3, "practical": "2%", "budget": "30s", "precision": "1%", "seed": 9}


def test_off_and_on_differ_in_nothing_but_the_agent():
    pytest.importorskip("pyroscope")
    source = agent_source(**ASKED)
    spec = source.spec
    assert set(source.files) == {"service.py", "sink.py"}
    off, on = spec.variants["nothing"], spec.variants["agent"]
    assert off.baseline and (off.values, on.values) == ({"agent": "off"}, {"agent": "on"})
    same = {"title", "baseline", "values"}
    assert off.model_dump(exclude=same) == on.model_dump(exclude=same)
    assert (spec.workloads["work"].clients, spec.stop.practical, spec.experiment.seed) == (3, 0.02, 9)


def test_without_the_agent_installed_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="the module pyroscope is not installed"):
        agent_source(**ASKED)


def test_pushes_are_counted_from_the_receivers_log(tmp_path):
    assert pushes_of(tmp_path) is None
    (tmp_path / "services").mkdir()
    log = tmp_path / "services" / "agent.sink.log"
    log.write_text("")
    assert pushes_of(tmp_path) == Pushes(0, 0)
    log.write_text("/push.v1.PusherService/Push 378 bytes\n/push.v1.PusherService/Push 22 bytes\n")
    assert pushes_of(tmp_path) == Pushes(2, 400)


@pytest.mark.parametrize(("tick", "elapsed", "following"), [
    (0, 3, 1),  # in time
    (0, 100, 1),  # just due
    (0, 160, 1),  # late, and taken at once
    (0, 200, 2),  # the one after it is due too: 1 is missed
    (4, 990, 9),
])  # fmt: skip
def test_ticks_are_due_at_whole_periods_and_lateness_does_not_add_up(tick, elapsed, following):
    assert next_tick(tick, elapsed, 100) == following


def test_texts_of_sessions_without_an_id_get_that_of_their_template():
    """PostgreSQL 13 tells no ids of statements in sessions."""
    row = {"query_id": None, "backend": "client backend", "comment": None, "wait_class": "", "database": "d"}
    texts = ["SELECT * FROM item WHERE id = 7", "SELECT * FROM item WHERE id = 8", "COMMIT"]
    found = Samples(0, 0)
    for text in (*texts, texts[0]):
        found.add(Look(0, 1, ({**row, "text": text},), 0), blockers=False)
    found.find_ids({5: "SELECT * FROM item WHERE id = $1", 6: "SELECT * FROM other WHERE id = $1"})
    assert found.seen == {5: texts[:2]}


def test_a_text_of_a_session_that_has_no_id_yet_is_kept_beside_those_with_one():
    """A session has no id while its statement is parsed."""
    row = {"backend": "client backend", "comment": None, "wait_class": "", "database": "d"}
    found = Samples(0, 0)
    for query_id, key in ((5, 7), (None, 8), (5, 9), (None, 7)):
        text = f"SELECT * FROM item WHERE id = {key}"
        found.add(Look(0, 1, ({**row, "query_id": query_id, "text": text},), 0), blockers=False)
    found.find_ids({5: "SELECT * FROM item WHERE id = $1"})
    assert found.seen == {5: [f"SELECT * FROM item WHERE id = {key}" for key in (7, 9, 8)]}


PROGRESS = LoadProgress(
    elapsed_ns=5_000_000_000, seconds=5.0, succeeded=256_171, failed=3, skipped=2, retries=4,
    backlog=12, clients=14, mean_ns=156_000.0, stddev_ns=33_000.0, p50_ns=150_000, p99_ns=310_000,
    max_ns=2_100_000, lateness_p99_ns=50_000,
)  # fmt: skip


def line(progress=PROGRESS, **changes):
    return progress_line(progress, **{"open_loop": False, **changes})


def test_a_line_begins_as_pgbench_s_does():
    assert line() == (
        "progress: 5.0 s, 51234.2 tps, lat 0.156 ms stddev 0.033, 3 failed, p50 0.150 p99 0.310 max 2.100"
    )


def test_an_open_loop_tells_its_backlog_and_lateness():
    assert line(open_loop=True, limited=True, tries=True).endswith(
        "3 failed, 2 skipped, 4 retries, p50 0.150 p99 0.310 max 2.100, backlog 12, clients 14, "
        "late p99 0.050 ms"
    )


def test_a_load_by_http_sends_requests_over_connections():
    assert line(http=True).startswith("progress: 5.0 s, 51234.2 requests/s, lat 0.156 ms")
    assert ", backlog 12, connections 14, " in line(http=True, open_loop=True)


def test_unix_time_can_take_the_place_of_the_time_elapsed():
    assert line(at=1_700_000_000.25).startswith("progress: 1700000000.250 s, ")


def test_nothing_done_is_no_division_by_zero():
    assert line(replace(PROGRESS, seconds=0.0)).startswith("progress: 5.0 s, 0.0 tps")


def test_a_stage_of_preparing_is_told_once_and_a_round_when_it_begins():
    steps = RunSteps(60_000_000_000)
    assert steps.line(Preparing("data of scan", 0, 3)) == "data of scan (1 of 3)"
    assert steps.line(Preparing("data of key", 1, 3)) is None
    begun = RoundStarted(2, 12, 4, 40_000_000_000, 15_000_000_000)
    assert steps.line(begun) == "round 2: measuring 4 comparisons, at most 45.0 s left"


@pytest.mark.parametrize(("event", "line"), [
    (RoundStarted(1, 12, 4, 0), None),
    (RoundEnded(3, 2, 4, 0.123, "key on get", 0),
     "round 3 done: 2 of 4 comparisons settled; widest interval ±12.3% (key on get)"),
    (BudgetShort("the budget holds 2 rounds"), "warning: the budget holds 2 rounds"),
])  # fmt: skip
def test_events_that_are_worth_a_line_get_one(event, line):
    assert event_line(event) == line


SECOND = 1_000_000
ASLEEP = ("Timeout", "PgSleep")


def seen_of(samples):
    """Samples at even times over ten seconds."""
    count = len(samples)
    rows = tuple(
        Sample(round(at * 10 * SECOND / count), {ASLEEP: busy}, {"select ?": busy}, idle)
        for at, (busy, idle) in enumerate(samples)
    )
    return SessionsSeen(rows, 10 * SECOND, 9, 100, 3)


def test_sessions_are_counted_on_average_over_the_load_alone():
    found = database_use(seen_of([(0, 0)] * 50 + [(3, 1)] * 50), 5 * 10**9)
    assert found.waits == {ASLEEP: 3.0}
    assert (found.sessions, found.templates) == (4.0, {"select ?": 1.0})
    assert (found.connections, found.max_connections, found.reserved) == (9, 100, 3)


def test_nothing_was_at_work_and_nothing_is_made_up():
    found = database_use(seen_of([(0, 0)] * 10), 10**9)
    assert (found.busy, found.sessions, found.templates) == (0.0, 0.0, {})


LENGTH_NS = 100_000_000


def slices(count, cost, *, noise=0.01, seed=1):
    """Return quadruples in which `system` costs what is said and `sessions` 5 %, among bursts of others."""
    generator = np.random.default_rng(seed)
    order = turns(("sessions", "system"), seed)
    found = []
    for quadruple in range(count):
        for on in next(order):
            others = generator.uniform(0, 0.4)
            slowed = (1 - cost * ("system" in on)) * (1 - 0.05 * ("sessions" in on)) * math.exp(-others)
            done = 4000 * slowed * math.exp(generator.normal(0, noise))
            work = 190_000_000 * (1 - others)
            found.append(
                Slice(
                    quadruple, tuple(sorted(on)), LENGTH_NS, done, round(work), round(others * LENGTH_NS), 0
                )
            )
    return found


def test_each_observer_is_told_by_itself():
    seen = slices(200, 0.004)
    system, sessions = (judge_switched(seen, name, 0.95, 0.99) for name in ("system", "sessions"))
    assert system.quadruples == sessions.quadruples == 200
    assert system.slice_ns == LENGTH_NS
    assert system.adjusted.low < 0.996 < system.adjusted.high
    assert sessions.adjusted.low < 0.95 < sessions.adjusted.high
    assert system.adjusted.high - system.adjusted.low < 0.005
    # What others took is most of the noise of what was counted.
    assert system.plain.high - system.plain.low > 5 * (system.adjusted.high - system.adjusted.low)
    assert system.sure.low < system.adjusted.low and system.adjusted.high < system.sure.high
    assert system.others == pytest.approx(0.2, abs=0.02) and system.stolen == 0
    assert not system.apart
    assert judge_switched(seen, "perf", 0.95, 0.99) is None
    assert judge_switched([], "system", 0.95, 0.99) is None


def test_processor_time_an_operation_grows_by_what_throughput_loses():
    system = judge_switched(slices(200, 0.03), "system", 0.95, 0.99)
    assert system.processor.low < 1 / 0.97 < system.processor.high


def test_of_all_processors_it_takes_the_part_that_the_load_had():
    seen = slices(200, 0.03)
    system = judge_switched(seen, "system", 0.95, 0.99, processors=4)
    assert system.work == pytest.approx(1.9 * 0.8, rel=0.02)
    for side in ("low", "high"):
        of_load, of_all = getattr(system.processor_sure, side), getattr(system.bound, side)
        assert of_all - 1 == pytest.approx((of_load - 1) * system.work / 4)
    assert judge_switched(seen, "system", 0.95, 0.99).bound is None
    assert judge_switched(slices(20, 0.03), "system", 0.95, 0.99, processors=4).bound is None


@pytest.mark.parametrize(
    ("cost", "verdict"), [(0.003, "costs less"), (0.03, "costs more"), (0.01, "not enough evidence")]
)
def test_verdicts_rest_on_what_switching_found(cost, verdict):
    found = judge_switched(slices(200, cost), "system", 0.95, 0.99)
    before = ObserverCost("system", "", "w", "all", None, None, "costs more", None, None, None, None)
    after = _by_switching(before, found, 0.01)
    if verdict == "not enough evidence":
        assert after.verdict in (verdict, "costs something")
    else:
        assert after.verdict == verdict
        assert after.processor_verdict == verdict
    assert after.switched == found


def test_few_quadruples_tell_nothing_and_empty_slices_break_nothing():
    few = judge_switched(slices(20, 0.003), "system", 0.95, 0.99)
    assert (few.quadruples, few.plain, few.adjusted, few.sure) == (20, None, None, None)
    seen = slices(40, 0.0)
    stopped = [Slice(one.quadruple, one.on, one.length_ns, 0.0, 0, 0, 0) for one in seen]
    still = judge_switched(stopped, "system", 0.95, 0.99)
    assert still.plain is None and still.quadruples == 40


def test_slices_are_kept_by_field(tmp_path):
    seen = slices(2, 0.0)
    write_slices(tmp_path, seen)
    stored = json.loads((tmp_path / SLICES_FILE).read_text())
    assert stored["operations"] == [one.operations for one in seen]
    assert [tuple(on) for on in stored["on"]] == [one.on for one in seen]


@pytest.mark.parametrize(
    ("whole", "switched", "observers", "seconds"),
    [(240, 2, 2, 204), (240, 2, 8, 60), (60, 1, 1, 30), (20, 2, 2, 10), (20, 1, 8, 2.5)],
)
def test_the_experiment_has_time_to_make_its_data(whole, switched, observers, seconds):
    assert switched_seconds(whole, switched, observers) == pytest.approx(seconds)


@pytest.fixture(autouse=True)
def commit(monkeypatch):
    """Spare each test a question to git."""
    monkeypatch.setenv("UNCORK_COMMIT", "abc")


def started(root, kind="load", **more):
    manifest = draft(kind=kind, name="a-run", question="?", server="s", options={"command": "uncork"})
    return start_run(root, manifest, **more)


def stored(run):
    return json.loads((run.folder / "manifest.json").read_text())


def test_a_run_that_has_started_is_seen_with_its_process_and_its_files(tmp_path):
    run = started(tmp_path, files={"plan.json": "{}\n", "files/a.sql": "SELECT 1"})
    manifest = read_manifest(run.folder)
    assert (manifest.id, manifest.name, manifest.status) == (run.folder.name, "a-run", "running")
    assert manifest.owner == process.identity(os.getpid())
    assert (run.folder / "plan.json").read_text() == "{}\n"
    assert (run.folder / "files" / "a.sql").read_text() == "SELECT 1"


def test_a_run_that_is_not_announced_has_no_manifest_before_it_ends(tmp_path):
    with started(tmp_path, announce=False) as run:
        assert not (run.folder / "manifest.json").exists()
        run.end("interrupted", "interrupted", elapsed_ns=7)
    (attempt,) = read_manifest(run.folder).attempts
    assert (attempt.elapsed_ns, attempt.outcome) == (7, "interrupted")


def test_a_folder_of_runs_is_checked_before_anything_is_measured(tmp_path):
    check_writable(tmp_path / "new" / "runs")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match=r"cannot write .*/file/runs: Not a directory; --runs names another"):
        check_writable(tmp_path / "file" / "runs")


def test_an_interruption_while_a_run_is_created_leaves_no_folder(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_record, "write_manifest", interrupted)
    with pytest.raises(KeyboardInterrupt):
        started(tmp_path, files={"plan.json": "{}\n"})
    assert list(tmp_path.iterdir()) == []


def test_success_is_recorded_and_has_no_owner(tmp_path):
    with started(tmp_path) as run:
        run.rounds, run.reason = 3, "enough"
    manifest = read_manifest(run.folder)
    assert (manifest.status, manifest.owner) == ("complete", None)
    (attempt,) = manifest.attempts
    assert (attempt.started_at, attempt.rounds, attempt.outcome, attempt.reason) == (
        manifest.started_at,
        3,
        "complete",
        "enough",
    )


@pytest.mark.parametrize(("error", "status", "reason"), [
    (StoreError("the disk is full"), "failed", "the disk is full"),
    (ValueError("odd"), "failed", "ValueError: odd"),
    (KeyboardInterrupt(), "interrupted", "interrupted"),
    (GeneratorExit(), "interrupted", "interrupted"),
])  # fmt: skip
def test_what_broke_a_run_off_is_recorded_if_it_holds_results(tmp_path, error, status, reason):
    with pytest.raises(type(error)), started(tmp_path) as run:
        (run.folder / "load_totals").mkdir()
        raise error
    assert (stored(run)["status"], stored(run)["attempts"][0]["reason"]) == (status, reason)


@pytest.mark.parametrize(
    "kind", ["experiment", "load", "sweep", "guard", "log", "database", "cpu", "import", "cure"]
)
def test_a_run_that_broke_off_and_holds_nothing_leaves_nothing(tmp_path, kind):
    with pytest.raises(KeyboardInterrupt), started(tmp_path, kind) as run:
        raise KeyboardInterrupt
    assert not run.folder.exists()


@pytest.mark.parametrize(("kind", "path"), [
    ("experiment", "trials/000001.parquet"),
    ("load", "load_totals/000001.parquet"),
    ("sweep", "sweep_visits/000001.parquet"),
    ("guard", "legs/0001-baseline/manifest.json"),
    ("cure", "cure.json"),
])  # fmt: skip
def test_results_keep_a_run_that_broke_off(tmp_path, kind, path):
    with pytest.raises(KeyboardInterrupt), started(tmp_path, kind) as run:
        (run.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (run.folder / path).touch()
        raise KeyboardInterrupt
    assert stored(run)["status"] == "interrupted"


def test_the_turn_that_only_warms_up_does_not_keep_a_guard(tmp_path):
    with pytest.raises(KeyboardInterrupt), started(tmp_path, "guard") as run:
        (run.folder / "legs" / "0000-baseline").mkdir(parents=True)
        raise KeyboardInterrupt
    assert not run.folder.exists()


def test_an_interruption_after_the_end_is_known_does_not_change_it(tmp_path):
    with pytest.raises(KeyboardInterrupt), started(tmp_path, "experiment") as run:
        run.status, run.reason = "complete", "every comparison is settled"
        raise KeyboardInterrupt
    assert stored(run)["status"] == "complete"


def test_a_resumed_run_is_running_again_and_gets_another_attempt(tmp_path):
    with started(tmp_path, "experiment") as run:
        run.keep, run.status, run.reason = True, "interrupted", "interrupted"
    manifest = read_manifest(run.folder)
    with RunRecord(run.folder, manifest, keep=True, resumed=True):
        assert stored(run)["status"] == "running"
        assert stored(run)["owner"] == process.identity(os.getpid())
    assert [one["outcome"] for one in stored(run)["attempts"]] == ["interrupted", "complete"]


def test_a_manifest_that_cannot_be_written_at_the_end_deletes_an_unannounced_run(tmp_path, monkeypatch):
    def full(_folder, _manifest):
        raise StoreError("no space")

    with pytest.raises(StoreError), started(tmp_path, "import", announce=False) as run:
        monkeypatch.setattr(run_record, "write_manifest", full)
        run.end("complete", "imported")
    assert not run.folder.exists()


def test_a_folder_that_cannot_be_made_says_what_was_not_done(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match=r"; nothing was imported \(--runs names another folder\)$"):
        started(tmp_path / "file", undone="nothing was imported")


def test_only_complete_runs_that_are_compared_remember_their_metrics(tmp_path, monkeypatch):
    remembered = []
    monkeypatch.setattr(figures, "remember", remembered.append)
    for kind in ("load", "log", "guard", "sweep", "experiment"):
        with started(tmp_path, kind):
            pass
    with started(tmp_path) as run:
        run.end("failed", "none of 4 operations succeeded")
    assert [folder.name[:5] for folder in remembered] == ["a-run"] * 3


def test_a_manifest_is_written_as_it_always_was(tmp_path):
    run = started(tmp_path)
    write_manifest(run.folder, run.manifest)
    assert " ".join(stored(run)) == (
        "id name question status started_at seed unit server uncork_version case options attempts owner kind "
        "commit branch version"
    )


def worker(pid, runtime, cpu_ns=10**8):
    return WorkerFacts(pid, 1, "shop", runtime, cpu_ns, 0, 0, 1, 0.1, None, 10**9)


@pytest.mark.parametrize(("workers", "py_spy", "pprof", "mapped", "tool", "missing"), [
    ([worker(5, "python")], "/bin/py-spy", "", False, "py-spy", ""),
    ([worker(5, "python")], None, "", False, "perf", "functions of Python"),
    ([worker(5, "python")], None, "", True, "perf", ""),
    ([worker(5, "go")], None, "http://here/debug/pprof/profile", False, "pprof", ""),
    ([worker(5, "go")], None, "", False, "perf", ""),
    ([worker(5, "node")], None, "", False, "perf", "--perf-basic-prof"),
    ([worker(5, "node")], None, "", True, "perf", ""),
    ([worker(5, "native")], "/bin/py-spy", "", False, "perf", ""),
    # A shell starts the service: what works decides, and the tree is recorded from its root.
    ([worker(5, "native", 0), worker(6, "python")], "/bin/py-spy", "", False, "py-spy", ""),
])  # fmt: skip
def test_the_sampler_fits_the_runtime(workers, py_spy, pprof, mapped, tool, missing):
    found = choose_sampler(workers, py_spy=py_spy, pprof=pprof, mapped=lambda _: mapped)
    assert found.tool == tool
    assert found.pid == 5
    assert missing in found.missing
    assert bool(found.missing) == bool(missing)


@pytest.mark.parametrize(
    ("kinds", "seconds", "rounds"), [(1, 7.0, 3), (3, 7.0, 3), (9, 7.0, 2), (60, 7.0, 1)]
)
def test_slices_use_the_time_that_is_there(kinds, seconds, rounds):
    plan = plan_slices(kinds, seconds)
    assert plan.rounds == rounds
    assert plan.slice_s >= 0.3
    assert plan.rounds * (kinds + 1) * plan.slice_s <= max(seconds, 0.3 * (kinds + 1)) + 1e-9


def test_rounds_are_left_out_if_answers_take_longer_than_slices():
    plan = plan_slices(1, 3.6)  # three rounds of two slices of 0.6 s
    assert (plan.rounds, plan.slice_s) == (3, pytest.approx(0.6))
    assert plan.allows_another(1, 1.3, 1)
    assert plan.allows_another(2, 2.6, 1)
    assert not plan.allows_another(1, 3.5, 1)
    assert not plan.allows_another(2, 4.2, 1)


@pytest.mark.parametrize(
    ("seconds", "kinds", "expected"), [(20, 1, (5.0, 0.0)), (20, 5, (3.0, 3.0)), (600, 5, (15.0, 15.0))]
)
def test_functions_of_several_requests_are_recorded_together_and_apart(seconds, kinds, expected):
    found = code_times(seconds, kinds)
    assert (found.together_s, found.apart_s) == expected


def test_the_requests_with_most_time_are_recorded_first():
    requests = [Request(name, "GET", name) for name in ("/a", "/b", "/c")]
    spec = HttpSpec(HttpServer("127.0.0.1", 80), tuple(requests))
    times = [
        LoadTimes(kind, name, name, None, 1, 0, 0, spent, 0.0, *[None] * 9)
        for kind, name, spent in (("script", "/a", 5), ("script", "/b", 9), ("operation", "", 99))
    ]
    found = costliest_requests(spec, times)
    assert [one.name for one in found] == ["/b", "/a", "/c"]


@pytest.fixture
def interruptible():
    """Ctrl-C and SIGTERM as the command line has them."""

    def interrupt(_number, _frame):
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    yield interrupt
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_comes_meanwhile_is_postponed_until_the_block_is_done(interruptible, number):
    steps = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(number)
        signal.raise_signal(number)
        steps.append("done")
    assert steps == ["done"]
    assert signal.getsignal(number) is interruptible


def test_nothing_comes_where_nothing_came(interruptible):
    with uninterrupted():
        assert signal.getsignal(signal.SIGINT) is not interruptible
    assert signal.getsignal(signal.SIGINT) is interruptible


def test_within_another_block_it_waits_for_that_too(interruptible):
    steps = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
        steps.append("outer")
    assert steps == ["outer"]


def test_an_error_of_the_block_is_the_context_of_what_was_postponed(interruptible):
    with pytest.raises(KeyboardInterrupt) as caught, uninterrupted():
        signal.raise_signal(signal.SIGINT)
        raise ValueError("no room")
    assert isinstance(caught.value.__context__, ValueError)


def test_what_was_ignored_before_stays_so(interruptible):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with uninterrupted():
        signal.raise_signal(signal.SIGTERM)


def test_other_threads_leave_signals_alone(interruptible):
    seen = []

    def work():
        with uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [interruptible]


TEXTS = {number: f"select {number}" for number in range(1, 6)}


def counted(number, milliseconds):
    row = {"database": "shop", "query_id": number, "execution_ns": milliseconds * 1e6, "calls": 2, "rows": 6}
    return None, {**row, "user_oid": 10, "database_oid": 5, "toplevel": True}


def first(changed, sampled):
    return [
        one.query_id
        for one in top_statements(
            changed, "shop", TEXTS, (), {("shop", key): many for key, many in sampled}, {}
        )
    ]


def test_a_statement_that_has_not_ended_is_planned_before_cheap_ones_that_have():
    changed = [counted(1, 900), counted(2, 20), counted(3, 10)]
    assert first(changed, [(4, 700), (1, 90), (5, 300)]) == [1, 4, 2, 5, 3]


def test_without_samples_the_execution_time_decides():
    changed = [counted(1, 10), counted(2, 900)]
    assert first(changed, []) == [2, 1]
    assert top_statements(changed, "shop", TEXTS, (), {}, {})[0].rows == 3


def test_what_uncork_executed_itself_has_no_plan():
    changed = [counted(1, 10), counted(2, 900)]
    assert [one.query_id for one in top_statements(changed, "shop", TEXTS, {(10, 5, 2, True)}, {}, {})] == [1]


def test_statements_about_temporary_tables_of_other_sessions_are_not_planned():
    texts = {
        1: "INSERT INTO public.totals SELECT (diff.newdata).* FROM pg_temp_6.pg_temp_16449_2 diff",
        2: "select 2",
    }
    found = top_statements([counted(1, 900), counted(2, 10)], "shop", texts, (), {("shop", 1): 99}, {})
    assert [one.query_id for one in found] == [2]
