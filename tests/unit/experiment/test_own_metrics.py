"""Metrics of the experiment file: their gates, their numbers, and what the evidence says."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fakes.goldens import compare_answers
from uncork.errors import SetupError, UsageError
from uncork.experiment.guard.gate_evidence import gate_evidence
from uncork.experiment.run.measuring import Measuring
from uncork.experiment.run.own_metrics import own_metrics
from uncork.experiment.spec.gates import parse_gate
from uncork.experiment.spec.schema import parse_spec
from uncork.model.results.figure import Figure
from uncork.model.results.guard import metric_of
from uncork.model.trial import Arm, Cell
from uncork.stats.effect import Effect
from uncork.stats.gates.decision import Exact, Unknown
from uncork.workbench.guard import history

FILE = """
[experiment]
name = "writes"
question = "?"

[variants.one]
baseline = true
values = {{ n = "1" }}

[variants.two]
values = {{ n = "2" }}

[setup]
sql = "CREATE TABLE t (id int)"

[workloads.write]
sql = "INSERT INTO t SELECT generate_series(1, :n)"

[metrics.written]
sql = "SELECT count(*) * :n FROM t;"
{more}
"""


def spec_of(more=""):
    return parse_spec(FILE.format(more=more), file="x.toml", read=str, overrides={})


class Server:
    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def column(self, cell, arm, query):
        self.asked.append((arm.variant, query))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def asked(server, variant="two"):
    arm, cell = Arm(variant), Cell(())
    trial = SimpleNamespace(cell=cell, arm=arm, workload="write")
    return own_metrics(spec_of(), server, trial, (cell, arm))


# ---- gates ----


@pytest.mark.parametrize(
    ("text", "name", "better"),
    [
        ("metric written < +5%", "metric written", "lower"),
        ("Metric written >= baseline", "metric written", "higher"),
        ("metric written <= 120 on write", "metric written", "lower"),
    ],
)
def test_a_gate_names_a_metric_of_the_file(text, name, better):
    gate = parse_gate(text)
    assert (gate.metric, metric_of(gate).better) == (name, better)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("metric written", "expected <, <=, > or >= after"),
        ("metric < 5", 'there is no metric "metric"'),
        ("metric written unchanged", "expected < or <= after the metric"),
    ],
)
def test_wrong_gates_on_metrics_of_the_file(text, said):
    with pytest.raises(UsageError) as told:
        parse_gate(text)
    assert said in str(told.value)


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("metric read < +5%", "the file has no [metrics.read]; its metrics: written"),
        ("metric written > -5%", "lower is better for written, so the gate must limit how high it may rise"),
    ],
)
def test_gates_must_fit_the_metrics_of_the_file(gate, said):
    with pytest.raises(UsageError) as told:
        spec_of(f'[guard]\ngates = ["{gate}"]')
    assert said in str(told.value)
    assert spec_of('[guard]\ngates = ["metric written < +5%"]').guard.parsed


def test_an_unknown_name_in_a_query_is_told():
    text = FILE.format(more="").replace("* :n FROM", "* :m FROM")
    with pytest.raises(UsageError, match=r"x\.toml:\d+: .*m"):
        parse_spec(text, file="x.toml", read=str, overrides={})


# ---- numbers ----


def test_the_number_is_that_of_the_variants_own_data():
    server = Server(["12"])
    assert asked(server) == {"written": 12.0}
    assert server.asked == [("two", "SELECT count(*) * 2 FROM t")]


def test_trials_are_measured_one_by_one_so_that_each_number_belongs_to_one():
    text = FILE.format(more="")
    plain = parse_spec(text[: text.index("[metrics")], file="x.toml", read=str, overrides={})
    for spec, in_turns in ((plain, True), (spec_of(), False)):
        server = SimpleNamespace(target=lambda *_: SimpleNamespace(cpu=None))
        placements = SimpleNamespace(of=lambda cell, arm: (cell, arm))
        measuring = Measuring(spec, server, None, placements, None, None, None, None)
        assert measuring.interleaves(Cell(()), "write") is in_turns


@pytest.mark.parametrize("answer", [[None], []])
def test_null_and_no_row_are_no_number(answer):
    assert asked(Server(answer)) == {"written": None}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (["many"], 'metric written, variant two: the query returned "many"; expecting a number'),
        (["NaN"], 'returned "NaN"'),
        (SetupError("relation t does not exist"), "metric written, variant two: relation t does not exist"),
    ],
)
def test_a_query_that_returns_no_number_ends_the_run(answer, said):
    with pytest.raises(SetupError) as told:
        asked(Server(answer))
    assert said in str(told.value)


# ---- evidence ----


def rows(baseline, candidate):
    for number, (one, other) in enumerate(zip(baseline, candidate, strict=True), start=1):
        for variant, again, value in (
            ("baseline", False, one),
            ("baseline", True, one),
            ("candidate", False, other),
        ):
            place = {"round": number, "block": 1, "variant": variant, "again": again}
            yield {**place, "outcome": "complete", "metric written": value}


def evidence(baseline, candidate, gate="metric written < +5%"):
    return gate_evidence(
        parse_gate(gate),
        rows(baseline, candidate),
        baseline="baseline",
        candidate="candidate",
        confidence=0.95,
    )


def test_equal_counts_are_compared_exactly_and_others_by_an_interval():
    found = evidence([10.0] * 6, [20.0] * 6)
    assert isinstance(found.evidence, Exact)
    assert (found.baseline, found.candidate) == (10.0, 20.0)
    noisy = evidence([10.0, 11.0, 10.0, 12.0, 10.0, 11.0], [20.0, 21.0, 20.0, 22.0, 21.0, 20.0])
    assert isinstance(noisy.evidence, Effect)
    assert 1.7 < noisy.evidence.ratio < 2.2


def test_values_of_0_have_no_ratio_and_missing_ones_are_said():
    found = evidence([0.0, 1.0, 0.0], [1.0, 2.0, 1.0]).evidence
    assert isinstance(found, Unknown)
    assert "limit the value itself" in found.reason
    missing = evidence([None] * 3, [1.0] * 3).evidence
    assert isinstance(missing, Unknown)
    assert "its query returned no number" in missing.reason


# ---- beside earlier runs ----


@pytest.mark.parametrize(("value", "known"), [(140.0, True), (0.0, False)])
def test_a_stored_experiment_has_the_means_of_its_metrics(value, known):
    (place,) = history._places(parse_gate("metric written < +5%"), spec_of())
    assert place.workload == "write"
    figure = Figure("two on write", "written", value, "", "lower")
    run = SimpleNamespace(figure=lambda key: figure if key == figure.key else None)
    assert (place.find(run) is figure) is known
    assert place.missing == "a stored experiment holds no written above 0 for it"


# ---- commands ----

COMMAND = FILE.replace(
    'sql = "SELECT count(*) * :n FROM t;"', 'command = ["sh", "count.sh", ":n"]\ntimeout = "5s"'
)


class Commanded:
    def __init__(self, line):
        self.line, self.calls = line, []

    def command(self, cell, arm, command, files, environment, timeout_ns):
        self.calls.append((command, files, environment, timeout_ns))
        return self.line


def commanded(server):
    def read(name):
        if name != "count.sh":
            raise FileNotFoundError
        return "echo 7"

    spec = parse_spec(COMMAND.format(more=""), file="x.toml", read=read, overrides={})
    arm, cell = Arm("two"), Cell(())
    return own_metrics(spec, server, SimpleNamespace(cell=cell, arm=arm, workload="write"), (cell, arm))


def test_a_command_gets_its_files_and_the_values_of_the_variant():
    server = Commanded("12.5")
    assert commanded(server) == {"written": 12.5}
    assert server.calls == [
        (["sh", "count.sh", "2"], {"count.sh": "echo 7"}, {"VARIANT": "two", "WORKLOAD": "write"}, 5 * 10**9)
    ]


def test_a_command_that_prints_no_number_is_one_clear_error():
    with pytest.raises(SetupError) as told:
        commanded(Commanded("12 rows"))
    assert str(told.value) == (
        'metric written, variant two: the last line of sh is "12 rows"; expecting a number'
    )


def test_wrong_metrics_are_refused():
    def answer(text):
        file = FILE.format(more="").replace('sql = "SELECT count(*) * :n FROM t;"', text)
        with pytest.raises(UsageError) as refused:
            parse_spec(file, file="x.toml", read=str, overrides={})
        return str(refused.value)

    compare_answers("spec/own_metrics", answer)
