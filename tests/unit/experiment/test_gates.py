"""The language of gates: what may be written, and what is refused with which words."""

import pytest

from fakes.goldens import compare_answers
from uncork.errors import SpecError, UsageError
from uncork.experiment.spec.gates import default_gates, gate_workloads, parse_gate, write_bound
from uncork.experiment.spec.schema import parse_spec

READ = [
    ("p99 < +5%", ("latency_p99", "ratio", "<", 1.05, "")),
    ("latency_p99 <= baseline", ("latency_p99", "ratio", "<=", 1.0, "")),
    ("p99 latency at most the baseline", ("latency_p99", "ratio", "<=", 1.0, "")),
    ("throughput > -3%", ("throughput", "ratio", ">", 0.97, "")),
    ("throughput > −3 %", ("throughput", "ratio", ">", 0.97, "")),
    ("median < 1.1x baseline", ("latency_p50", "ratio", "<", 1.1, "")),
    ("median < baseline + 10 %", ("latency_p50", "ratio", "<", 1.1, "")),
    ("success >= baseline", ("success", "difference", ">=", 0.0, "")),
    ("success > -0.5 points", ("success", "difference", ">", -0.005, "")),
    ("success > 99.9%", ("success", "value", ">", 0.999, "")),
    ("errors <= baseline", ("errors", "difference", "<=", 0.0, "")),
    ("errors < 1%", ("errors", "value", "<", 0.01, "")),
    ("p99 < 20ms", ("latency_p99", "value", "<", 20e6, "")),
    ("throughput >= 1_000/s", ("throughput", "value", ">=", 1000.0, "")),
    ("queries a request <= baseline", ("queries", "ratio", "<=", 1.0, "")),
    ("queries a request <= 3", ("queries", "value", "<=", 3.0, "")),
    ("buffers an operation < +10%", ("buffers", "ratio", "<", 1.1, "")),
    ("WAL an operation <= baseline", ("wal_bytes", "ratio", "<=", 1.0, "")),
    ("WAL an operation < 8kB", ("wal_bytes", "value", "<", 8000.0, "")),
    ("server CPU < +5%", ("server_cpu", "ratio", "<", 1.05, "")),
    ("size < +10%", ("size", "ratio", "<", 1.1, "")),
    ("plan unchanged", ("plan", "unchanged", "=", 1.0, "")),
    ("plans is unchanged", ("plan", "unchanged", "=", 1.0, "")),
    ("plan_unchanged", ("plan", "unchanged", "=", 1.0, "")),
    ("plan unchanged on orders", ("plan", "unchanged", "=", 1.0, "orders")),
    ("p99 < +5% on new-orders", ("latency_p99", "ratio", "<", 1.05, "new-orders")),
    ('p99<+5% on "GET /orders"', ("latency_p99", "ratio", "<", 1.05, "GET /orders")),
]

REFUSED = [
    ("", "expected a metric first: one of latency_mean, "),
    ("p98 < +5%", 'there is no metric "p98"; did you mean "p'),
    ("latancy_p99 < +5%", 'there is no metric "latancy_p99"; did you mean "latency_p99"?'),
    ("beauty < +5%", 'there is no metric "beauty"; expected one of latency_mean, '),
    ("p99", "expected < or <= after the metric; found nothing"),
    ("p99 +5%", 'expected < or <= after "p99"; found "+5%"'),
    ("p99 <", 'expected baseline, a change such as +5%, or a time such as 20ms after "<"; found nothing'),
    ("p99 < 5%", 'found "5%"; did you mean "+5%"?'),
    ("throughput > 3%", 'found "3%"; did you mean "-3%"?'),
    ("p99 < 20", 'a time such as 20ms after "<"; found "20"'),
    ("p99 < 20 apples", 'found "20 apples"'),
    ("success > 101%", "a share such as 1%"),
    ("success > 1.01x", "a change such as +0.5 points"),
    ("p99 < -100%", 'found "-100%"'),
    ("p99 < 0x", 'found "0x"'),
    (
        "p99 > +5%",
        'lower is better for p99 latency, so the gate must limit how high it may rise, such as "latency_p99 '
        '< +5%"; '
        'found ">"',
    ),
    ("throughput < +5%", 'how low it may fall, such as "throughput > -5%"; found "<"'),
    ("success <= baseline", 'such as "success >= -1 points"; found "<="'),
    ("plan < +5%", 'expected "unchanged" after the metric; found "<"'),
    ("plan changed", 'expected "unchanged" after "plan"; found "changed"'),
    ("p99 unchanged", 'expected < or <= after the metric; found "unchanged"'),
    ("plan unchanged mostly", 'expected nothing or "on WORKLOAD" after "unchanged"; found "mostly"'),
    ("p99 < +5% on", 'expected a workload\'s name after "on"; found nothing'),
    ("p99 < +5% on a b", 'expected one workload after "on", in quotes if it has spaces; found "a b"'),
    ('p99 < +5% on "a', 'expected one workload in quotes after "on"; found "a'),
]


@pytest.mark.parametrize(("text", "said"), READ, ids=[text for text, _ in READ])
def test_a_gate_is_read(text, said):
    gate = parse_gate(text)
    assert (gate.metric, gate.bound, gate.relation, gate.limit, gate.workload) == said
    assert gate.text == text


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text or "nothing" for text, _ in REFUSED])
def test_what_is_no_gate_is_refused_with_what_may_stand_there(text, message):
    with pytest.raises(UsageError) as caught:
        parse_gate(text)
    assert str(caught.value).startswith(f'gate "{text}": ')
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_bound_is_written_in_one_way():
    compare_answers(
        "answers/experiment/a_bound_is_written_in_one_way", lambda text: write_bound(parse_gate(text))
    )


FILE = """
[experiment]
name = "both"
question = "Does it hold?"
[variants.before]
baseline = true
values = { way = "1" }
[variants.after]
values = { way = "2" }
[setup]
sql = "SELECT 1"
[services.app]
command = ["app"]
[workloads.read]
sql = "SELECT :way"
duration = "1s"
[workloads.ask]
metric = "throughput"
practical = "2.5%"
duration = "1s"
[workloads.ask.http]
requests = [{ path = "/" }]
"""


def read(more=""):
    return parse_spec(FILE + more, file="both.toml", read=lambda name: "", overrides={})


def test_without_gates_each_workload_is_held_to_its_own_metric():
    texts = [gate.text for gate in default_gates(read())]
    assert texts == ["latency_p50 < +3% on read", "throughput > -2.5% on ask", "success >= baseline on ask"]


def test_a_gate_speaks_of_the_workloads_that_its_metric_fits():
    spec = read()
    assert gate_workloads(parse_gate("p99 < +5%"), spec) == ("read", "ask")
    assert gate_workloads(parse_gate("p99 < +5% on ask"), spec) == ("ask",)
    assert gate_workloads(parse_gate("success >= baseline"), spec) == ("ask",)
    assert gate_workloads(parse_gate("plan unchanged"), spec) == ("read",)
    assert gate_workloads(parse_gate("service CPU < +5%"), spec) == ("ask",)
    assert gate_workloads(parse_gate("size < +5%"), spec) == ()


def test_a_file_holds_gates():
    spec = read('[guard]\ngates = ["p99 < +5%", "plan unchanged", "p99 < +5%"]\nbuild = ["make"]\n')
    assert [gate.text for gate in spec.guard.parsed] == ["p99 < +5%", "plan unchanged"]
    assert spec.guard.build == ["make"]
    assert spec.guard.acknowledged is None


@pytest.mark.parametrize(
    ("gates", "message"),
    [
        ('["p99 < 5%"]', 'guard.gates: gate "p99 < 5%": expected baseline, a change such as +5%'),
        ('["p99 < +5% on raed"]', 'there is no workload "raed"; did you mean "read"?'),
        ('["success >= baseline on read"]', "does not fit workload read: success counts HTTP requests"),
        ('["plan unchanged on ask"]', "does not fit workload ask: only SQL has plans"),
        ('"p99 < +5%"', "expected a list"),
    ],
)
def test_a_wrong_gate_in_a_file_is_told_with_its_line(gates, message):
    with pytest.raises(SpecError) as caught:
        read(f"[guard]\ngates = {gates}\n")
    line = FILE.count("\n") + 2
    assert f"both.toml:{line}: guard.gates: " in str(caught.value)
    assert message in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
