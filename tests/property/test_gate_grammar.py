"""A bound that is written back and read again says the same; what is typed is read or refused clearly."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from uncork.errors import UsageError
from uncork.experiment.spec.gates import parse_gate, write_bound
from uncork.model.results.gate_metrics import GATE_METRICS, metric_words
from uncork.model.results.guard import Gate

WORKLOADS = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, blacklist_characters="\"'"), min_size=1
)
NUMBERS = st.decimals(min_value=0, max_value=10**6, places=3, allow_nan=False)


@st.composite
def gates(draw):
    """Draw a gate in any of the ways in which it may be written."""
    word, name = draw(st.sampled_from(sorted(metric_words().items())))
    metric = GATE_METRICS[name]
    word = draw(st.sampled_from([word, word.upper(), word.replace(" ", "_")]))
    if metric.source == "cost":
        word += draw(st.sampled_from(["", " an operation", " a request", " per request"]))
    space = draw(st.sampled_from(["", " ", "  "]))
    end = draw(st.one_of(st.just(""), WORKLOADS.map(lambda name: f' on "{name}"')))
    if metric.source == "plan":
        return f"{word} unchanged{end}"
    relation = draw(st.sampled_from(["<", "<="] if metric.better == "lower" else [">", ">="]))
    number = draw(NUMBERS)
    unit = {"ns": "ms", "B": "kB", "/s": "/s", "share": "%", "": ""}[metric.unit]
    kind = draw(st.sampled_from(["baseline", "change", "value"]))
    sign = "+" if metric.better == "lower" else draw(st.sampled_from(["-", "−"]))
    bound = {
        "baseline": "baseline",
        "change": f"{sign}{number % 100}{' points' if metric.unit == 'share' else '%'}",
        "value": f"{number % 100 if metric.unit == 'share' else number}{unit}",
    }[kind]
    return f"{word}{space}{relation}{space}{bound}{end}"


@given(gates())
def test_a_bound_that_is_written_back_is_read_as_the_same(text):
    gate = parse_gate(text)
    assert gate.workload == text.partition(' on "')[2].removesuffix('"')
    written = "unchanged" if gate.bound == "unchanged" else f"{gate.relation} {write_bound(gate)}"
    again = parse_gate(f"{gate.metric} {written}")
    assert (again.metric, again.bound, again.relation, again.limit) == (
        *(gate.metric, gate.bound, gate.relation, gate.limit),
    )
    assert gate.bound == "unchanged" or write_bound(again) == write_bound(gate)


@given(st.text(max_size=60))
@example("p99 <")
@example("< +5%")
@example("on x")
@example("plan unchanged on")
@example('p99 < +5% on "')
def test_any_text_is_a_gate_or_one_clear_error(text):
    try:
        gate = parse_gate(text)
    except UsageError as error:
        assert str(error).startswith(f'gate "{text.strip()}": ')
    else:
        assert isinstance(gate, Gate)


def test_no_word_means_two_metrics():
    known = metric_words()
    for name, metric in GATE_METRICS.items():
        assert {known[word] for word in (name.replace("_", " "), *metric.words)} == {name}


@pytest.mark.parametrize("name", GATE_METRICS)
def test_every_metric_has_a_gate(name):
    metric = GATE_METRICS[name]
    sign = "<=" if metric.better == "lower" else ">="
    text = f"{name} unchanged" if metric.source == "plan" else f"{name} {sign} baseline"
    assert parse_gate(text).metric == name
