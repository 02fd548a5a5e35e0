"""The runner against fakes: nothing here waits, connects or touches a disk."""

from dataclasses import replace

import pytest

from fakes.ports import MILLISECOND, measured
from fakes.runners import ADD, FIND, Attempt, experiment
from uncork.errors import LoadError, ServerCrash, SetupError, StoreError
from uncork.experiment.plan.order import cells
from uncork.experiment.run.events import BudgetShort, Recovered, Refused, RoundEnded, RoundStarted, TrialEnded
from uncork.experiment.run.ledger import Ledger
from uncork.model.measurement import Disturbance, Outcome
from uncork.model.server import Snapshot
from uncork.model.trial import Arm, Cell, Trial
from uncork.model.verdict import Verdict

# ---- what is found ----


def test_a_workload_runs_the_variants_that_it_names():
    some = ADD.replace("[workloads.add]", '[workloads.add]\nvariants = ["cheap"]')
    attempt = Attempt(
        experiment(FIND + some, stop="maximum_rounds = 5", variants=("base", "new", "cheap"))
    ).run()
    assert set(attempt.verdicts()) == {
        ("all", "find", "new"),
        ("all", "find", "cheap"),
        ("all", "add", "cheap"),
    }
    ran = {(trial.workload, trial.arm.variant) for trial, _ in attempt.sink.kept}
    assert ran == {("find", "base"), ("find", "new"), ("find", "cheap"), ("add", "base"), ("add", "cheap")}


@pytest.mark.parametrize(
    ("new_ns", "verdict"),
    [
        (0.8 * MILLISECOND, Verdict.FASTER),
        (1.3 * MILLISECOND, Verdict.SLOWER),
        (MILLISECOND, Verdict.NO_PRACTICAL_DIFFERENCE),
    ],
)
def test_a_difference_is_found_and_none_is_not(new_ns, verdict):
    attempt = Attempt(experiment(), {"new": new_ns}).run()
    assert attempt.verdicts() == {("all", "find", "new"): verdict}
    (judged,) = attempt.ledger.judgements()
    assert judged.effect.ratio == pytest.approx(new_ns / MILLISECOND, rel=0.01)
    assert judged.effect.low < new_ns / MILLISECOND < judged.effect.high


def test_more_operations_a_second_are_faster():
    spec = experiment(FIND + 'metric = "throughput"')
    assert Attempt(spec, {"new": 0.5 * MILLISECOND}).run().verdicts() == {
        ("all", "find", "new"): Verdict.FASTER
    }


def test_noise_leaves_not_enough_evidence():
    attempt = Attempt(experiment(stop="maximum_rounds = 6"), noise=0.3).run()
    assert attempt.verdicts() == {("all", "find", "new"): Verdict.NOT_ENOUGH_EVIDENCE}
    assert attempt.finished.reason == "the maximum number of rounds (6) was reached"


def test_each_cell_and_workload_is_judged_by_itself():
    spec = experiment(FIND + ADD, levels="[factors]\nrows = [1, 2]", variants=("base", "new", "odd"))
    attempt = Attempt(spec, {"odd": 2 * MILLISECOND}).run()
    assert set(attempt.verdicts()) == {
        (cell, workload, variant)
        for cell in ("rows=1", "rows=2")
        for workload in ("find", "add")
        for variant in ("new", "odd")
    }
    for (_, _, variant), verdict in attempt.verdicts().items():
        assert verdict == (Verdict.SLOWER if variant == "odd" else Verdict.NO_PRACTICAL_DIFFERENCE)


def test_the_baseline_against_itself_is_the_noise():
    spec = experiment(stop="minimum_rounds = 8\nmaximum_rounds = 8")
    quiet, loud = (Attempt(spec, noise=noise).run().ledger.noise()[0] for noise in (0.001, 0.01))
    assert quiet.ratio == pytest.approx(1, abs=0.002)
    assert 0 < 5 * quiet.floor < loud.floor
    assert Attempt(experiment()).ledger.noise() == (None, [])


def test_what_was_never_measured_has_no_verdict():
    ledger = Ledger(experiment(), "round")
    (judged,) = ledger.judgements()
    assert judged.effect is None
    assert judged.judgement.verdict == Verdict.NOT_ENOUGH_EVIDENCE
    assert judged.judgement.reason == "no complete block was measured"


def test_without_restarts_blocks_are_the_units():
    ledger = Ledger(experiment(), "block")
    attempt = Attempt(experiment(), {"new": 0.8 * MILLISECOND}, ledger=ledger).run()
    (judged,) = attempt.ledger.judgements()
    assert judged.effect.rounds == 2 * attempt.finished.rounds


# ---- when to stop ----


def test_it_stops_when_every_comparison_is_precise_and_never_before_five_rounds():
    attempt = Attempt(experiment(stop="minimum_rounds = 4\nprecision = '3%'"), noise=0.001).run()
    assert attempt.finished.rounds == 5
    assert attempt.finished.reason == "every comparison is decided, or as precise as asked (±3.0%)"
    last = attempt.of(RoundEnded)[-1]
    assert (last.settled, last.comparisons, last.widest) == (1, 1, None)


def test_it_stops_when_what_is_asked_instead_of_precision_is_known():
    class TwoRounds:
        reason = "two rounds are enough"

        def open_pairs(self):
            done = {trial.round for trial, _ in attempt.sink.kept}
            return set() if {1, 2} <= done else {(Cell(), "find")}

    attempt = Attempt(experiment(), noise=0.5, until=TwoRounds())
    attempt.run()
    assert (attempt.finished.rounds, attempt.finished.reason) == (2, "two rounds are enough")
    assert [event.settled for event in attempt.of(RoundEnded)] == [0, 1]


def test_the_first_row_that_differs_is_told():
    attempt = Attempt(experiment(), answers={"new": (20, "another")})
    attempt.server.rows = {"base": (("=1",), ("=2",)), "new": (("=1",), ("=3",))}
    attempt.run()
    (reason,) = (event.reason for event in attempt.of(Refused))
    assert reason.startswith("wrong answer: as many rows as the baseline returns, but different ones: the f")
    assert "row 2: (3) where the baseline gives (2) (find, operation 1)" in reason


def test_a_comparison_that_is_settled_is_not_measured_further():
    spec = experiment(FIND + ADD, stop="maximum_rounds = 12")
    ledger = Ledger(spec, "round")
    for number in range(1, 7):
        for block in (1, 2):
            for arm in (Arm("base"), Arm("base", again=True), Arm("new")):
                trial = Trial(number, block, 0, Cell(), "find", arm)
                ledger.add(trial, measured(MILLISECOND + 100 * number * (arm.variant == "new")))
    attempt = Attempt(spec, ledger=ledger, first_round=7).run()
    assert {event.trial.workload for event in attempt.of(TrialEnded)} == {"add"}
    assert attempt.of(RoundStarted)[0].comparisons == 1


def test_a_variant_leaves_the_blocks_when_its_comparison_is_settled_and_the_others_go_on():
    spec = experiment(stop="maximum_rounds = 12", variants=("base", "new", "quick"))
    ledger = Ledger(spec, "round")
    for number in range(1, 7):
        for block in (1, 2):
            for arm in (Arm("base"), Arm("base", again=True), Arm("new"), Arm("quick")):
                trial = Trial(number, block, 0, Cell(), "find", arm)
                late = {"quick": 0.3, "new": 1 + 0.2 * (number % 2)}.get(arm.variant, 1.0)
                ledger.add(trial, measured(int(MILLISECOND * (late + 0.01 * number))))
    assert ledger.settled() == {(Cell(), "find", "quick")}
    attempt = Attempt(spec, ledger=ledger, first_round=7, noise=0.05).run()
    assert {event.trial.arm.name for event in attempt.of(TrialEnded)} == {"base", "base#2", "new"}
    assert attempt.of(RoundStarted)[0].comparisons == 1
    assert (attempt.of(RoundEnded)[0].settled, attempt.of(RoundEnded)[0].comparisons) == (1, 2)
    quick = ledger.effect(Cell(), "find", "quick")
    assert (quick.rounds, quick.warnings) == (6, ())
    assert quick.ratio == pytest.approx(0.31, abs=0.03)


def test_the_server_restarts_between_rounds():
    attempt = Attempt(experiment(stop="minimum_rounds = 3\nmaximum_rounds = 3")).run()
    assert attempt.finished.rounds == 3
    assert len(attempt.server.called("restart")) == 2
    assert [event.number for event in attempt.of(RoundStarted)] == [1, 2, 3]


def test_it_stops_at_the_budget_and_keeps_only_whole_blocks():
    attempt = Attempt(experiment(stop="budget = '2s'"), noise=0.3).run()
    assert attempt.finished.reason == "the budget of 2.00 s is spent"
    per_block = {}
    for trial, _ in attempt.sink.kept:
        per_block.setdefault((trial.round, trial.block), set()).add(trial.arm.name)
    assert all(arms == {"base", "base#2", "new"} for arms in per_block.values())
    assert len(per_block) == 6
    assert attempt.finished.elapsed_ns < 2.1e9
    assert attempt.finished.trials == len(attempt.sink.kept) == 18


def test_making_the_data_is_part_of_the_budget():
    attempt = Attempt(
        experiment(stop="budget = '60s'\nmaximum_rounds = 1000"), noise=0.3, build_ns=8 * 10**9
    ).run()
    assert attempt.finished.reason == "the budget of 60.0 s is spent"
    assert 55e9 < attempt.finished.elapsed_ns < 60e9
    assert not attempt.of(BudgetShort)


def test_a_slow_set_up_makes_a_run_hardly_longer_than_its_budget_and_a_line_says_so():
    attempt = Attempt(experiment(stop="budget = '10s'"), noise=0.3, build_ns=46 * 10**8).run()
    early, short = attempt.of(BudgetShort)
    assert early.message.startswith("set-up has taken 4.60 s of the budget of 10.0 s so far (1 of 2 steps)")
    assert short.message.startswith(
        "the budget of 10.0 s is enough for 1 round (set-up took 9.20 s), but a verdict needs 5: raise it"
    )
    assert attempt.finished.elapsed_ns == pytest.approx(10e9, rel=0.1)


def test_a_budget_that_holds_not_one_trial_is_an_error_that_says_so():
    attempt = Attempt(experiment(stop="budget = '1s'"))
    attempt.server.restart, warm = lambda: None, attempt.server.warm

    def warming(cell, arm):
        attempt.clock.advance(10**9)
        warm(cell, arm)

    attempt.server.warm = warming
    with pytest.raises(SetupError, match=r"nothing was measured: set-up has taken 3.00 s.*--budget"):
        attempt.run()
    assert attempt.sink.kept == []


# ---- the same answer ----


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"answers": {"new": (19, "the same")}},
         "wrong answer: 19 rows, but the baseline returns 20 for the same operations"),
        ({"answers": {"new": (20, "another")}},
         "wrong answer: as many rows as the baseline returns, but different ones"),
        ({"checks": {"new": "another"}},
         "wrong answer: it leaves different data behind than the baseline (the check query's rows differ)"),
    ],
)  # fmt: skip
def test_a_variant_with_a_wrong_answer_is_refused_and_not_measured(options, reason):
    attempt = Attempt(experiment(ADD, variants=("base", "new", "good")), **options).run()
    assert [event.reason for event in attempt.of(Refused)] == [reason]
    assert attempt.sink.refusals == [("all", "add", "new", reason)]
    assert {trial.arm.name for trial, _ in attempt.sink.kept} == {"base", "base#2", "good"}
    assert attempt.verdicts() == {("all", "add", "good"): Verdict.NO_PRACTICAL_DIFFERENCE}


@pytest.mark.parametrize(("name", "workload", "texts"), [("add", ADD, 2), ("find", FIND, 1)])
def test_a_baseline_that_differs_from_itself_is_not_a_wrong_variant(name, workload, texts):
    answers = {"base": [(20, "first"), (20, "second")], "new": (20, "another")}
    attempt = Attempt(experiment(workload), answers=answers)
    attempt.server.rows = {"base": [(("=1",),)] * texts + [(("=2",),)] * texts}
    attempt.run()
    (refused,) = attempt.of(Refused)
    assert refused.reason == (
        "not comparable: the baseline returns other rows when it is asked again (the first row that differs "
        f"in sorted order is row 1: (2) where it first gave (1) ({name}, operation 1)); remove what changes "
        "between executions, such as now(), random() or LIMIT without a unique ORDER BY, or set "
        f'answer = "may differ" in workloads.{name}'
    )


def test_a_baseline_that_leaves_changes_is_not_asked_again():
    answers = {"base": [(20, "first")], "new": (20, "another")}
    attempt = Attempt(experiment(f'{ADD}state = "keep"'), answers=answers).run()
    (refused,) = attempt.of(Refused)
    assert refused.reason.startswith("wrong answer: as many rows as the baseline returns")


def test_where_every_variant_is_refused_nothing_is_measured():
    attempt = Attempt(experiment(), answers={"new": (0, "")}).run()
    assert attempt.sink.kept == []
    assert attempt.finished.rounds == 0
    assert attempt.finished.is_empty
    assert attempt.finished.reason == (
        "nothing was measured, because every comparison was refused or skipped; the first is new on find: "
        "wrong answer: 0 rows, but the baseline returns 20 for the same operations"
    )


def test_answers_that_may_differ_are_not_compared():
    attempt = Attempt(experiment(FIND + 'answer = "may differ"'), answers={"new": (0, "")}).run()
    assert attempt.of(Refused) == []
    assert {request.digest for request in attempt.load.checks} == {"none"}


def test_only_what_a_check_query_returns_is_compared_if_asked():
    text = ADD + 'answer = "check"\n'
    attempt = Attempt(experiment(text), answers={"new": (0, "")}, checks={"new": "another"}).run()
    (refused,) = attempt.of(Refused)
    assert refused.reason.endswith("(the check query's rows differ)")


@pytest.mark.parametrize(("answer", "digest"), [("same", "multiset"), ("same order", "ordered")])
def test_answers_are_compared_as_asked(answer, digest):
    attempt = Attempt(experiment(FIND + f'answer = "{answer}"')).run()
    assert {request.digest for request in attempt.load.checks} == {digest}
    assert all(request.digest == "none" for request in attempt.load.requests)
    assert {request.operations for request in attempt.load.checks} == {20}


def test_a_statement_that_fails_in_the_answer_check_ends_the_run_before_it_begins():
    attempt = Attempt(experiment())

    def run(request):
        raise LoadError('relation "item" does not exist')

    attempt.load.run = run
    with pytest.raises(SetupError, match=r'workload find, variant base: relation "item" does not exist'):
        attempt.run()


def test_a_parameter_whose_query_gives_no_rows_ends_the_run_before_it_begins():
    spec = experiment(FIND.replace('generator = { kind = "uniform", max = 1000 }', 'query = "SELECT id"'))
    with pytest.raises(SetupError, match="parameter id: its query returned no rows to draw from"):
        Attempt(spec, columns={"SELECT id": []}).run()


def test_a_parameters_query_is_read_once_a_cell_and_variant():
    spec = experiment(FIND.replace('generator = { kind = "uniform", max = 1000 }', 'query = "SELECT id"'))
    attempt = Attempt(spec, columns={"SELECT id": ["1", "2"]}).run()
    assert sorted(attempt.server.called("column")) == [("all", "base"), ("all", "new")]
    drawn = {value for request in attempt.load.requests for value in request.parameters[0]}
    assert drawn == {"1", "2"}


def test_every_arm_of_a_block_gets_the_same_parameters():
    attempt = Attempt(experiment()).run()
    trials = [event.trial for event in attempt.of(TrialEnded)]
    drawn = {}
    for trial, request in zip(trials, attempt.load.requests, strict=True):
        drawn.setdefault((trial.round, trial.block), []).append(request.parameters)
    assert all(tables == [tables[0]] * 3 for tables in drawn.values())
    assert len({str(tables[0]) for tables in drawn.values()}) == len(drawn)


# ---- what goes wrong ----


def test_failing_operations_are_counted_and_kept_out_of_the_statistics():
    clean = Attempt(experiment(stop="minimum_rounds = 6\nmaximum_rounds = 6\nprecision = '0.001%'")).run()
    attempt = Attempt(
        experiment(stop="minimum_rounds = 6\nmaximum_rounds = 6\nprecision = '0.001%'"), errors_at={4, 5}
    ).run()
    failed = [measurement for _, measurement in attempt.sink.kept if measurement.outcome == Outcome.ERRORS]
    assert len(failed) == attempt.finished.failed == 2
    assert clean.finished.failed == 0
    assert attempt.finished.trials == clean.finished.trials == 36
    effect = attempt.ledger.effect(Cell(), "find", "new")
    assert any("missed a trial" in warning for warning in effect.warnings)
    assert clean.ledger.effect(Cell(), "find", "new").warnings == ()


def test_after_a_crash_the_server_recovers_and_the_next_round_goes_on():
    spec = experiment(stop="minimum_rounds = 3\nmaximum_rounds = 4\nprecision = '0.001%'")
    attempt = Attempt(spec, crash_at={8}).run()
    assert [event.message for event in attempt.of(Recovered)] == [
        "the server crashed and was restarted: the server closed the connection"
    ]
    assert len(attempt.server.called("recover")) == 1
    assert [event.number for event in attempt.of(RoundEnded)] == [1, 2, 3, 4]
    by_round = [sum(trial.round == number for trial, _ in attempt.sink.kept) for number in (1, 2, 3, 4)]
    assert by_round == [6, 2, 6, 6]
    lost = [trial for trial, measurement in attempt.sink.kept if measurement.outcome != Outcome.COMPLETE]
    assert [(trial.round, trial.block, trial.position) for trial in lost] == [(2, 1, 1)]
    assert attempt.finished.failed == 1
    assert attempt.ledger.effect(Cell(), "find", "new").rounds == 3


def test_after_a_crash_the_cells_data_is_restored():
    attempt = Attempt(experiment(stop="maximum_rounds = 5\nprecision = '0.001%'"), crash_at={8}).run()
    calls = [what for what, _, _ in attempt.server.calls]
    assert calls[calls.index("recover") :].count("restore") == 3


def test_a_crash_that_gives_no_measurement_is_recovered_from_as_well():
    spec = experiment(stop="maximum_rounds = 5\nprecision = '0.001%'")
    attempt = Attempt(spec, crash_at={8}, crash_raises=True).run()
    assert len(attempt.of(Recovered)) == 1
    assert len(attempt.sink.kept) == 6 + 1 + 3 * 6


def test_three_crashes_end_the_run_with_everything_kept():
    attempt = Attempt(experiment(), crash_at={2, 5, 8})
    with pytest.raises(ServerCrash, match=r"crashed 3 times, most recently: .*; results so far are kept"):
        attempt.run()
    assert len(attempt.of(Recovered)) == 2
    assert [measurement.outcome for _, measurement in attempt.sink.kept].count(Outcome.CONNECTION_LOST) == 3
    assert len(attempt.sink.kept) == 8


def test_a_full_disk_ends_the_run_with_earlier_trials_kept():
    attempt = Attempt(experiment(), full_at=3)
    with pytest.raises(StoreError, match="No space left on device"):
        attempt.run()
    assert {trial.round for trial, _ in attempt.sink.kept} == {1, 2}
    assert len(attempt.sink.kept) == 12


@pytest.mark.parametrize("seen", [1, 2, 5, 9])
def test_closing_it_keeps_every_trial_that_was_told(seen):
    attempt = Attempt(experiment())
    events = attempt.runner.events()
    told = []
    for event in events:
        if isinstance(event, TrialEnded):
            told.append(event.trial)
            if len(told) == seen:
                break
    events.close()
    assert [trial for trial, _ in attempt.sink.kept] == told


def test_an_interrupt_keeps_every_trial_before_it():
    attempt = Attempt(experiment())
    run = attempt.load.run

    def interrupted(request):
        if len(attempt.load.requests) == 8:
            raise KeyboardInterrupt
        return run(request)

    attempt.load.run = interrupted
    with pytest.raises(KeyboardInterrupt):
        attempt.run()
    assert len(attempt.sink.kept) == 8


# ---- going on ----


def test_a_resumed_run_goes_on_where_it_stopped():
    spec = experiment(stop="maximum_rounds = 3\nprecision = '0.001%'\nminimum_rounds = 3\npractical = '2%'")
    first = Attempt(spec, {"new": 0.98 * MILLISECOND}).run()
    ledger = Ledger(spec, "round")
    for trial, measurement in first.sink.kept:
        ledger.add_value(trial, measurement.metric("latency_p50"))
    second = Attempt(spec, {"new": 0.98 * MILLISECOND}, seed=2, ledger=ledger, first_round=4).run()
    assert [event.number for event in second.of(RoundStarted)] == [4, 5, 6]
    assert len(second.server.called("restart")) == 2
    assert second.ledger.effect(Cell(), "find", "new").rounds == 6
    assert second.verdicts() == {("all", "find", "new"): Verdict.FASTER}
    assert second.finished.rounds == 6


# ---- known state ----


def test_every_arm_is_warmed_in_every_round():
    attempt = Attempt(experiment(stop="minimum_rounds = 3\nmaximum_rounds = 3")).run()
    warmed = [arm for _, arm in attempt.server.called("warm")]
    # Once more when the data has just been made, for the answer check.
    assert sorted(warmed) == sorted(["base", "base#2", "new"] * 4)


def test_data_that_the_answer_checks_left_alone_is_not_restored():
    attempt = Attempt(experiment(stop="minimum_rounds = 3\nmaximum_rounds = 3")).run()
    assert attempt.asked("restore") == []


def test_data_that_is_kept_is_restored_before_the_first_round_if_the_server_cannot_tell_what_changed():
    spec = experiment(stop="minimum_rounds = 3\nmaximum_rounds = 3")
    assert sorted(Attempt(spec, counts=False).run().asked("restore")) == ["base", "base#2", "new"]


def test_data_that_a_trial_changed_is_restored_before_the_next_trial_of_its_arm():
    attempt = Attempt(experiment(ADD, stop="minimum_rounds = 3\nmaximum_rounds = 3")).run()
    asked = [(what, arm) for what, _, arm in attempt.measuring if what in ("restore", "warm")]
    restores = [arm for what, arm in asked if what == "restore"]
    # 3 rounds of 2 blocks: once a trial, but the answer checks left the data of the repeated baseline alone
    assert sorted(restores) == sorted([*["base", "new"] * 6, *["base#2"] * 5])
    for place, (what, arm) in enumerate(asked):
        if what == "restore":
            assert asked[place + 1] == ("warm", arm)


def test_data_that_a_trial_did_not_change_is_not_restored():
    reads = FIND.replace('state = "keep"', 'state = "reset"')
    attempt = Attempt(experiment(reads, stop="minimum_rounds = 3\nmaximum_rounds = 3")).run()
    assert attempt.asked("restore") == []


def test_where_the_server_cannot_tell_what_changed_everything_is_restored():
    reads = FIND.replace('state = "keep"', 'state = "reset"')
    spec = experiment(reads, stop="minimum_rounds = 3\nmaximum_rounds = 3")
    attempt = Attempt(spec, counts=False).run()
    assert sorted(attempt.asked("restore")) == sorted(["base", "base#2", "new"] * 6)


def test_a_workload_that_keeps_its_data_never_meets_what_another_workload_wrote():
    attempt = Attempt(experiment(FIND + ADD, stop="minimum_rounds = 3\nmaximum_rounds = 6"))
    dirty, met = set(), []
    restore, run = attempt.server.restore, attempt.load.run

    def restoring(cell, arm):
        dirty.discard(f"{cell.name}/{arm.name}")
        restore(cell, arm)

    def running(request):
        if request.warmup_operations:
            met.append(request.target.database in dirty)
        if request.statements[0].sql.startswith("INSERT"):
            dirty.add(request.target.database)
        return run(request)

    attempt.server.restore, attempt.load.run = restoring, running
    attempt.run()
    assert len(met) >= 3 * 2 * 2 * 3
    assert not any(met)


# ---- what else is kept ----


def test_counters_cover_warm_up_and_measured_operations():
    attempt = Attempt(experiment(ADD)).run()
    counters = attempt.sink.kept[0][1].counters
    assert counters.operations == 105
    assert (counters.wal_records, counters.wal_bytes, counters.temp_bytes) == (100, 10_000, 100 * 8192)


@pytest.mark.parametrize(
    ("before", "after", "queries"), [(5, 110, 105), (5, 5, 0), (110, 5, None), (None, 5, None)]
)
def test_a_counter_that_fell_tells_nothing(before, after, queries):
    attempt = Attempt(experiment(stop="minimum_rounds = 3\nmaximum_rounds = 3"))
    snapshots = [Snapshot("0/1", 0, queries=before), Snapshot("0/1", 0, queries=after)] * 50
    attempt.server.snapshot = lambda cell, arm, **of_a_trial: (
        snapshots.pop(0) if of_a_trial else Snapshot("0/1", 0)
    )
    attempt.run()
    assert {measurement.counters.queries for _, measurement in attempt.sink.kept} == {queries}


@pytest.mark.parametrize(
    ("before", "after", "changes", "found"),
    [
        (Snapshot("0/1", 0), Snapshot("0/1", 0), {}, set()),
        (Snapshot("0/1", 0), Snapshot("0/2", 0), {}, {Disturbance.CHECKPOINT}),
        (Snapshot("0/1", 1), Snapshot("0/1", 0), {}, {Disturbance.AUTOVACUUM}),
        (Snapshot("0/1", 0), Snapshot("0/1", 2), {}, {Disturbance.AUTOVACUUM}),
        (Snapshot("0/1", 0), Snapshot("0/1", 0), {"steal_ns": 10**8}, {Disturbance.STEAL}),
        (Snapshot("0/1", 0), Snapshot("0/1", 0), {"steal_ns": 1000}, set()),
        (Snapshot("0/1", 0), Snapshot("0/1", 0), {"throttled_ns": 1}, {Disturbance.THROTTLING}),
    ],
)
def test_what_disturbed_a_trial_is_kept_with_it(before, after, changes, found):
    attempt = Attempt(experiment(stop="minimum_rounds = 3\nmaximum_rounds = 3"))
    snapshots = [before, after] * 50
    run = attempt.load.run
    attempt.server.snapshot = lambda cell, arm, **_: snapshots.pop(0)
    attempt.load.run = lambda request: replace(run(request), **changes)
    attempt.run()
    assert all(measurement.disturbances == found for _, measurement in attempt.sink.kept)


def test_plans_sizes_and_surroundings_are_kept():
    spec = experiment(FIND + ADD, levels="[factors]\nrows = [1, 2]")
    attempt = Attempt(spec).run()
    names = [cell.name for cell in cells(spec)]
    assert attempt.sink.facts == {"server": {"version": "PostgreSQL, a fake"}}
    assert attempt.sink.kept_relations == [(cell, variant) for cell in names for variant in ("base", "new")]
    assert sorted(attempt.sink.kept_plans) == sorted(
        (cell, workload, variant)
        for cell in names
        for workload in ("find", "add")
        for variant in ("base", "new")
    )
