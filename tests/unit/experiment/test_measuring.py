"""Arms that take turns: against fakes, so that nothing waits."""

from contextlib import closing
from dataclasses import replace

import pytest

from fakes.ports import MILLISECOND, measured
from fakes.runners import Attempt, experiment
from uncork.experiment.run.events import Recovered, RoundEnded, RoundStarted
from uncork.experiment.run.ledger import Ledger
from uncork.experiment.run.measuring import without_bursts
from uncork.model.measurement import Slice
from uncork.model.verdict import Verdict

READ = """
[workloads.find]
sql = "SELECT name FROM item WHERE id = :id"
parameters.id = { generator = { kind = "uniform", max = 1000 } }
"""
WRITE = """
[workloads.add]
sql = "INSERT INTO item VALUES (:id)"
check = "SELECT count(*) FROM item"
parameters.id = { generator = { kind = "permutation", max = 5000 } }
"""
BUDGET = "budget = '60s'\nprecision = '0.001%'\npractical = '0.001%'"


def seconds(attempt):
    """How long the rounds took: making the data is not part of the budget."""
    return (attempt.finished.elapsed_ns - attempt.of(RoundStarted)[0].elapsed_ns) / 1e9


def test_arms_take_turns_and_the_budget_is_spent_in_rounds_that_fit():
    attempt = Attempt(experiment(READ, stop=BUDGET)).run()
    assert not attempt.load.requests, "nothing was measured trial by trial"
    rounds = len(attempt.of(RoundEnded))
    assert rounds == 40
    assert 57 < seconds(attempt) < 63
    blocks = [block for block in attempt.load.blocks if block.limit_ns is not None]
    assert all(len(block.arms) == 3 for block in blocks)
    # The baseline, again, and the variant: 20 ms each, 100 ms in every third round.
    assert {size.duration_ns for block in blocks for size in block.sizes} == {20 * 10**6, 100 * 10**6}
    assert rounds <= len(blocks) <= 4 * rounds


def test_trials_of_a_block_are_kept_under_its_number_and_add_up_over_slices():
    attempt = Attempt(experiment(READ, stop=f"{BUDGET}\nmaximum_rounds = 5")).run()
    kept = [(trial.round, trial.block, trial.arm.name) for trial, _ in attempt.sink.kept]
    assert len(kept) == len(set(kept))
    for number in range(1, 6):
        blocks = {block for round_, block, _ in kept if round_ == number}
        assert blocks == set(range(1, max(blocks) + 1))
    assert all(measurement.started > 100 for _, measurement in attempt.sink.kept)


def test_a_slow_workload_still_gets_the_rounds_that_a_verdict_needs():
    slow = {"base": 900 * MILLISECOND, "base#2": 900 * MILLISECOND, "new": 300 * MILLISECOND}
    attempt = Attempt(experiment(READ, stop=BUDGET), slow).run()
    assert len(attempt.of(RoundEnded)) >= 5
    assert attempt.verdicts() == {("all", "find", "new"): Verdict.FASTER}
    assert seconds(attempt) < 69  # a round that has begun is ended


CROWD = READ.replace("[workloads.find]", "[workloads.find]\nclients = 8")


def test_a_block_of_slow_operations_by_several_clients_is_as_short_as_one_cycle():
    slow = {"base": 1500 * MILLISECOND, "base#2": 1500 * MILLISECOND, "new": 400 * MILLISECOND}
    attempt = Attempt(experiment(CROWD, stop="budget = '40s'\nprecision = '0.001%'"), slow).run()
    assert len(attempt.of(RoundEnded)) >= 5
    assert attempt.verdicts() == {("all", "find", "new"): Verdict.FASTER}
    assert {block.together for block in measured_blocks(attempt)} == {1}
    assert seconds(attempt) < 46


def test_trials_one_by_one_warm_up_for_a_short_time_only():
    undone = WRITE.replace("[workloads.add]", '[workloads.add]\nundo = "DELETE FROM item"')
    slow = dict.fromkeys(("base", "base#2", "new"), 100 * MILLISECOND)
    attempt = Attempt(experiment(undone, stop="maximum_rounds = 5"), slow).run()
    assert {request.warmup_operations for request in attempt.load.requests} == {1}
    quick = Attempt(experiment(undone, stop="maximum_rounds = 5")).run()
    assert max(request.warmup_operations for request in quick.load.requests) == 20


@pytest.mark.parametrize("fixed", ['duration = "100ms"', "operations = 100"])
def test_a_file_that_says_how_long_a_trial_is_is_measured_trial_by_trial(fixed):
    workload = READ.replace("[workloads.find]", f"[workloads.find]\n{fixed}")
    attempt = Attempt(experiment(workload, stop="maximum_rounds = 5")).run()
    assert not attempt.load.blocks
    assert attempt.load.requests


@pytest.mark.parametrize("cache", ["cold", "as-is", "warm"])
def test_what_is_in_memory_when_a_trial_begins(cache):
    workload = READ.replace("[workloads.find]", "[workloads.find]\noperations = 100").replace(
        "warmup_operations", "#"
    )
    spec = experiment(workload, stop="maximum_rounds = 5", cache=cache)
    attempt = Attempt(spec).run()
    trials = len(attempt.sink.kept)
    assert trials == 5 * 2 * 3
    cooled = attempt.asked("cool")
    assert len(cooled) == (trials if cache == "cold" else 0)
    assert (len(attempt.asked("warm")) > 0) == (cache == "warm")
    if cache == "cold":
        assert cooled == [trial.arm.name for trial, _ in attempt.sink.kept]
        assert len(attempt.load.checks) > trials  # the fake takes what has no warm-up for a check of answers
        assert attempt.load.requests == []


def test_what_is_undone_by_statements_is_measured_trial_by_trial():
    undone = WRITE.replace("[workloads.add]", '[workloads.add]\nundo = "DELETE FROM item"')
    attempt = Attempt(experiment(undone, stop="maximum_rounds = 5")).run()
    assert not attempt.load.blocks
    assert {request.duration_ns for request in attempt.load.requests} == {250 * 10**6}


# ---- data that changes ----


def measured_blocks(attempt):
    return [block for block in attempt.load.blocks if block.limit_ns is not None]


def test_arms_that_write_do_equally_many_operations_and_never_take_a_value_twice():
    attempt = Attempt(experiment(WRITE, stop=f"{BUDGET}\nmaximum_rounds = 5")).run()
    for block in measured_blocks(attempt):
        assert len({size.operations for size in block.sizes}) == 1
        assert len({arm.warmup_operations for arm in block.arms}) == 1
        used = len(block.cycles) * block.sizes[0].operations + block.arms[0].warmup_operations
        assert len(block.arms[0].parameters[0]) >= used
        assert len({tuple(arm.parameters[0]) for arm in block.arms}) == 1


def test_data_is_put_back_when_a_part_of_it_has_changed_and_not_before():
    # A table of 10 rows allows two operations: every block meets data as it was made.
    attempt = Attempt(experiment(WRITE, stop=f"{BUDGET}\nmaximum_rounds = 5")).run()
    assert len(attempt.asked("restore")) >= 3 * len(measured_blocks(attempt))

    class Larger(Attempt):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            relations = self.server.relations
            self.server.relations = lambda cell, arm: [
                type(one)(one.name, one.kind, one.table, one.bytes, 1e6, one.depth)
                for one in relations(cell, arm)
            ]

    larger = Larger(experiment(WRITE, stop=f"{BUDGET}\nmaximum_rounds = 5")).run()
    rounds, blocks = len(larger.of(RoundEnded)), len(measured_blocks(larger))
    assert blocks > rounds
    assert len(larger.asked("restore")) <= 3 * (rounds + 1)


def test_a_workload_that_reads_never_meets_what_another_has_written():
    attempt = Attempt(experiment(WRITE + READ, stop=f"{BUDGET}\nmaximum_rounds = 6"))
    dirty, met = set(), []
    restore, run_block = attempt.server.restore, attempt.load.run_block

    def restoring(cell, arm):
        dirty.discard(f"{cell.name}/{arm.name}")
        restore(cell, arm)

    def running(block):
        for request in block.arms:
            if request.statements[0].sql.startswith("INSERT"):
                dirty.add(request.target.database)
            else:
                met.append(request.target.database in dirty)
        return run_block(block)

    attempt.server.restore, attempt.load.run_block = restoring, running
    attempt.run()
    assert len(met) >= 6 * 3
    assert not any(met)


def test_a_crash_in_a_block_ends_the_round_and_keeps_what_was_measured():
    attempt = Attempt(experiment(READ, stop=f"{BUDGET}\nmaximum_rounds = 6"), crash_at={4})
    with closing(attempt.runner.events()):
        attempt.run()
    assert len(attempt.of(Recovered)) == 1
    assert len(attempt.of(RoundEnded)) == 6
    assert attempt.verdicts()


def test_arms_that_share_a_database_are_counted_one_by_one_once_a_round():
    spec = experiment(READ, stop=f"{BUDGET}\nmaximum_rounds = 5")
    shared = spec.model_copy(update={"setup": spec.setup.model_copy(update={"shared": True})})
    attempt = Attempt(shared).run()
    alone = [block for block in attempt.load.blocks if len(block.arms) == 1]
    assert len(alone) == 3 * len(attempt.of(RoundEnded))
    for trial, measurement in attempt.sink.kept:
        counted = measurement.counters.shared_hit is not None
        assert counted == (trial.block == 1)


# ---- bursts of other programs ----


def test_cycles_that_other_programs_disturbed_do_not_count_towards_mean_and_throughput():
    slices = [
        Slice(arm, cycle, 0, 20_000_000, 20, 20, 20_000_000 if cycle != 7 else 60_000_000, waited)
        for cycle in range(20)
        for arm in (0, 1)
        for waited in (20_000_000 if cycle == 7 else 10_000,)
    ]
    judged = without_bursts(slices)
    assert {one.cycle for one in judged if one.aside} == {7}
    trial = replace(measured(MILLISECOND, 400), slices=tuple(one for one in judged if one.arm == 0))
    assert trial.metric("latency_mean") == MILLISECOND
    assert trial.metric("throughput") == 1000.0
    unknown = [replace(one, waited_ns=None) for one in slices]
    assert without_bursts(unknown) == tuple(unknown)


# ---- short slices against long ones ----

CHECKED = "budget = '90s'\nprecision = '0.001%'\npractical = '2%'\nminimum_rounds = 30\nmaximum_rounds = 30"


def lengths(attempt):
    """Return the length of the slices in each round, in milliseconds."""
    found = {}
    for (trial, one), block in zip(
        attempt.sink.kept[::3], [b for b in attempt.load.blocks if b.limit_ns], strict=True
    ):
        found.setdefault(trial.round, set()).add((block.sizes[0].duration_ns // 10**6, one.long_slices))
    return found


def test_every_third_round_has_long_slices():
    found = lengths(Attempt(experiment(READ, stop=CHECKED)).run())
    assert len(found) == 30
    for number, seen in found.items():
        assert seen == {(100, True) if number % 3 == 0 else (20, False)}, number


def test_where_lengths_agree_all_rounds_count():
    attempt = Attempt(experiment(READ, stop=CHECKED), {"new": 0.5 * MILLISECOND}).run()
    (check,) = attempt.ledger.slice_checks()
    assert check.ratio.low < 1.0 < check.ratio.high
    assert check.rounds == 10
    assert not attempt.ledger.is_disturbed(attempt.ledger.compared()[0][:2])
    (judged,) = attempt.ledger.judgements()
    assert judged.effect.rounds == 30


def test_where_short_slices_disturb_an_arm_only_long_ones_count_from_then_on():
    # The variant finds cold caches in each slice: 2 ms of 20, and of 100.
    attempt = Attempt(experiment(READ, stop=CHECKED), switch_ns={"new": 2 * MILLISECOND}).run()
    (check,) = attempt.ledger.slice_checks()
    assert check.ratio.ratio == pytest.approx(1.10 / 1.02, rel=0.01)
    assert attempt.ledger.is_disturbed(attempt.ledger.compared()[0][:2])
    (judged,) = attempt.ledger.judgements()
    assert judged.effect.ratio == pytest.approx(1.02, rel=0.002)
    found = lengths(attempt)
    assert all(seen == {(100, True)} for number, seen in found.items() if number > 15)
    assert judged.effect.rounds == sum(seen == {(100, True)} for seen in found.values())


def test_the_same_is_found_from_the_trials_read_again():
    attempt = Attempt(experiment(READ, stop=CHECKED), switch_ns={"new": 2 * MILLISECOND}).run()
    again = Ledger(attempt.spec, "round")
    for trial, one in attempt.sink.kept:
        value = one.metric("latency_mean")
        again.add_value(trial, value, one.succeeded, one.started, long_slices=one.long_slices)
    assert again.slice_checks() == attempt.ledger.slice_checks()
    assert again.judgements() == attempt.ledger.judgements()


def test_arms_that_write_change_no_more_by_long_slices_than_data_allows():
    attempt = Attempt(experiment(WRITE, stop=CHECKED)).run()
    for block in attempt.load.blocks:
        for place, size in enumerate(block.sizes):
            turns = sum(cycle.count(place) for cycle in block.cycles)
            assert (size.operations or 0) * turns <= 5000


def test_what_a_round_takes_too_much_is_not_lacking_in_the_last_one():
    # A block ends after a whole cycle, so that each of four workloads takes a little more than its share.
    four = "".join(READ.replace("find", name) for name in ("one", "two", "three", "four"))
    slow = {"base": 250 * MILLISECOND, "base#2": 250 * MILLISECOND, "new": 100 * MILLISECOND}
    attempt = Attempt(experiment(four, stop="budget = '20s'"), slow).run()
    measured = {(trial.workload, trial.round) for trial, _ in attempt.sink.kept}
    assert {round_ for _, round_ in measured} == {1, 2, 3, 4, 5}
    assert len(measured) == 20, "each workload was measured in each of the five rounds"
