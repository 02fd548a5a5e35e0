"""Evidence is gathered after all that is timed, once for each variant, and never judged."""

import pytest

from fakes.ports import FakeClock, FakeLoad, FakeServer, MemorySink
from uncork.errors import ServerCrash, SpecError
from uncork.experiment.plan.evidence_time import evidence_ns, sampling
from uncork.experiment.plan.order import plan_document
from uncork.experiment.run.events import BudgetShort, Evidenced, Finished, TrialEnded
from uncork.experiment.run.evidence_trials import evidence_places
from uncork.experiment.run.ledger import Ledger
from uncork.experiment.run.runner import Runner
from uncork.experiment.spec.schema import parse_spec

TEXT = """
[experiment]
name = "fake"
question = "Which one?"
evidence = [EVIDENCE]
[variants.base]
baseline = true
[variants.new]
[factors]
rows = [10, 20]
[setup]
sql = "CREATE TABLE item (id integer)"
[workloads.find]
sql = "SELECT name FROM item WHERE id = :rows"
operations = 100
state = "STATE"
[stop]
blocks = 2
minimum_rounds = 5
maximum_rounds = 5
"""


def experiment(evidence='"stacks", "syscalls"', state="keep", stop=""):
    text = TEXT.replace("EVIDENCE", evidence).replace("STATE", state) + stop
    return parse_spec(text, file="fake.toml", read=str, overrides={})


class Gatherer:
    """Keeps what it was asked for; says or raises what it was told to."""

    def __init__(self, answer=None, clock=None):
        self.asked, self.answer, self.clock = [], answer, clock

    def gather(self, place, kinds, request, load, lengths):
        self.asked.append((place, tuple(kinds), request))
        if self.clock is not None:
            self.clock.advance(evidence_ns(lengths))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def run(spec, gatherer):
    clock = gatherer.clock or FakeClock(10**12)
    server = FakeServer(clock)
    load = FakeLoad(server, clock, None)
    sink = MemorySink(full_at=None)
    runner = Runner(spec, server, load, sink, clock, Ledger(spec, "round"), evidence=gatherer)
    return list(runner.events()), sink


def test_each_variant_is_looked_at_once_in_the_last_cell_when_all_trials_are_over():
    gatherer = Gatherer()
    events, sink = run(experiment(), gatherer)
    kinds = [type(event) for event in events]
    assert kinds[-3:] == [Evidenced, Evidenced, Finished]
    assert max(at for at, kind in enumerate(kinds) if kind is TrialEnded) < kinds.index(Evidenced)
    places = [
        (dict(cell.levels)["rows"], workload, variant) for (cell, workload, variant), *_ in gatherer.asked
    ]
    assert places == [("20", "find", "base"), ("20", "find", "new")]
    assert {kinds for _, kinds, _ in gatherer.asked} == {("stacks", "syscalls")}
    assert len(sink.kept) == sum(kind is TrialEnded for kind in kinds), "evidence is no trial"


@pytest.mark.parametrize(
    ("kinds", "places", "budget_s", "watch_s", "syscalls_s"),
    [
        (["stacks", "syscalls"], 2, 180, 5.0, 3.0),
        (["stacks"], 2, 180, 5.0, 0.0),
        (["stacks", "syscalls"], 2, 30, 1.25, 0.75),
        (["stacks"], 2, 30, 3.0, 0.0),
        (["stacks", "syscalls"], 6, 30, 1.0, 0.6),
    ],
)
def test_samples_are_shorter_if_the_budget_is(kinds, places, budget_s, watch_s, syscalls_s):
    lengths = sampling(kinds, places, budget_s * 10**9)
    assert (lengths.watch_ns / 1e9, lengths.syscalls_ns / 1e9) == (watch_s, syscalls_s)
    if watch_s > 1:
        assert places * evidence_ns(lengths) <= budget_s * 10**9 / 3


@pytest.mark.parametrize("budget_s", [30, 100])
def test_evidence_is_part_of_the_budget(budget_s):
    gatherer = Gatherer(clock=FakeClock())
    spec = experiment(stop=f"budget = '{budget_s}s'")
    events, _ = run(spec, gatherer)
    assert len(gatherer.asked) == 2
    assert not [one for one in events if isinstance(one, BudgetShort)]
    assert events[-1].rounds == 5
    assert events[-1].elapsed_ns <= budget_s * 10**9


def test_nothing_is_looked_at_unless_it_is_asked_for():
    for evidence in ("", '"plans"'):
        gatherer = Gatherer()
        events, _ = run(experiment(evidence), gatherer)
        assert not gatherer.asked
        assert not any(isinstance(event, Evidenced) for event in events)


def test_what_cannot_be_seen_is_told_and_ends_nothing():
    for answer, said in (("no perf", "no perf"), (ServerCrash("gone"), "the server crashed: gone")):
        events, _ = run(experiment(), Gatherer(answer))
        assert [event.lack for event in events if isinstance(event, Evidenced)] == [said, said]
        assert isinstance(events[-1], Finished)


def test_refused_variants_are_left_out():
    spec = experiment()
    (cell, workload, _), *_ = evidence_places(spec)
    assert evidence_places(spec, {(cell, workload, "new")}) == [(cell, workload, "base")]


def test_the_plan_names_it():
    assert plan_document(experiment()).evidence == ("stacks", "syscalls")


def test_an_unknown_kind_is_refused_with_those_there_are():
    with pytest.raises(SpecError, match=r"evidence.*stacks"):
        experiment('"stack"')
