"""Properties of plans, statistics, units and what is printed, for any values."""

import json
import math
import re
from collections import Counter
from dataclasses import asdict, dataclass, replace
from io import StringIO
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from rich.console import Console
from tests.fakes.database_results import database_result

from uncork.analysis.database.steps import steps_of
from uncork.analysis.load.result import WatchedLoad, load_steps, step_gaps
from uncork.analysis.service.result import with_branches
from uncork.errors import UsageError
from uncork.experiment.plan.order import arms, cells, plan_round
from uncork.experiment.spec.gates import parse_gate, write_bound
from uncork.experiment.spec.schema import parse_spec
from uncork.model.results.database import CountedTime, TimeNode
from uncork.model.results.gate_metrics import GATE_METRICS, metric_words
from uncork.model.results.guard import Gate
from uncork.model.results.service import TimePlace
from uncork.model.units import (
    format_bytes,
    format_count,
    format_duration,
    format_percent,
    parse_duration,
    parse_share,
)
from uncork.model.verdict import Verdict
from uncork.profile.activity import time_tree, weights
from uncork.report.blocks import Column, Table, Value
from uncork.report.write.json_document import json_bytes, json_text
from uncork.report.write.terminal_text import write_rows
from uncork.stats.compare import e_benjamini_hochberg, estimate, judge
from uncork.stats.interval import confidence_sequence
from uncork.stats.sample import Observation, Units, noise_units, round_units

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


counts = st.integers(1, 4)
seeds = st.integers(0, 10_000)
rounds = st.integers(1, 50)


def make(variants=3, levels=2, workloads=2, blocks=4, seed=1):
    text = [
        '[experiment]\nname = "plan"\nquestion = "?"\n',
        f"seed = {seed}\n",
        '[setup]\nsql = "SELECT 1"\n',
    ]
    text += [f"[variants.v{n}]\nbaseline = {str(n == 1).lower()}\n" for n in range(variants)]
    text += [f"[factors]\nrows = {list(range(levels))}\n", f"[stop]\nblocks = {blocks}\n"]
    text += [f'[workloads.w{n}]\nsql = "SELECT 1"\noperations = 1\n' for n in range(workloads)]
    return parse_spec("".join(text), file="plan.toml", read=str, overrides={})


@st.composite
def specs(draw):
    return make(
        draw(st.integers(2, 5)), draw(counts), draw(counts), draw(st.integers(2, 5)), seed=draw(seeds)
    )


def everything(spec):
    return {(cell, workload) for cell in cells(spec) for workload in spec.workloads}


def planned(spec, number, **more):
    more.setdefault("active", everything(spec))
    return [block for visit in plan_round(spec, number, **more) for block in visit.blocks]


@given(specs(), rounds)
def test_every_arm_stands_exactly_once_in_every_block(spec, number):
    found = planned(spec, number)
    assert len(found) == len(everything(spec)) * spec.stop.blocks
    for block in found:
        assert sorted(trial.arm for trial in block) == sorted(arms(spec))
        assert [trial.position for trial in block] == list(range(len(block)))
        assert {trial.round for trial in block} == {number}


@given(specs(), rounds)
def test_the_same_seed_gives_the_same_plan(spec, number):
    assert planned(spec, number) == planned(spec, number)


@given(seeds, rounds)
def test_another_seed_or_round_gives_another_order(seed, number):
    spec, other = (
        make(variants=5, levels=4, workloads=4, blocks=4, seed=value) for value in (seed, seed + 1)
    )
    assert planned(spec, number) != planned(other, number)
    first = [(trial.comparison_key, trial.arm) for block in planned(spec, number) for trial in block]
    second = [(trial.comparison_key, trial.arm) for block in planned(spec, number + 1) for trial in block]
    assert first != second


@given(specs(), rounds)
def test_the_second_block_of_a_pair_is_the_reverse_of_the_first(spec, number):
    order = {
        (block[0].comparison_key, block[0].block): [t.arm for t in block] for block in planned(spec, number)
    }
    for (pair, block), found in order.items():
        if block % 2 == 0:
            assert found == order[pair, block - 1][::-1]


@given(specs(), rounds, st.data())
def test_leaving_pairs_out_does_not_change_the_order_of_the_others(spec, number, data):
    left = {pair for pair in sorted(everything(spec)) if data.draw(st.booleans())}
    whole = [block for block in planned(spec, number) if block[0].comparison_key in left]
    assert planned(spec, number, active=left) == whole


@given(specs(), rounds, st.data())
def test_refused_variants_are_absent(spec, number, data):
    variants = [name for name in spec.variants if name != spec.baseline]
    refused = {
        (cell, workload, name)
        for cell, workload in sorted(everything(spec))
        for name in variants
        if data.draw(st.booleans())
    }
    for block in planned(spec, number, refused=refused):
        cell, workload = block[0].comparison_key
        expected = [arm for arm in arms(spec) if (cell, workload, arm.variant) not in refused]
        assert sorted(trial.arm for trial in block) == sorted(expected)


def test_over_many_rounds_every_arm_is_about_equally_often_at_each_position():
    spec = make(variants=4, levels=1, workloads=1, blocks=2)
    seen = Counter(
        (trial.arm.name, trial.position)
        for number in range(1, 401)
        for block in planned(spec, number)
        for trial in block
    )
    expected = 400 * 2 / 5
    assert len(seen) == 5 * 5
    assert sum((count - expected) ** 2 / expected for count in seen.values()) < 60  # chi-squared, 16 degrees


log_ratios = st.integers(-3_000_000, 3_000_000).map(lambda millionths: millionths / 1e6)
samples = st.lists(log_ratios, min_size=1, max_size=25)
confidences = st.floats(0.5, 0.999)
metrics = st.floats(1e-6, 1e9)
e_values = st.lists(st.one_of(st.floats(0, 5), st.floats(0, 1e6)), max_size=40)


@st.composite
def experiments(draw, arms=("base", "base#2", "new")):
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=8))
    return [
        Observation(number, block, arm, draw(metrics))
        for number, blocks in enumerate(shape, start=1)
        for block in range(1, blocks + 1)
        for arm in arms
    ]


def variant(seen):
    return round_units(seen, baseline="base", again="base#2", variant="new")


@given(samples, confidences)
def test_the_interval_contains_the_estimate(sample, confidence):
    effect = estimate(Units(tuple(sample)), confidence)
    assert effect.low <= effect.ratio <= effect.high


@given(samples, confidences, confidences)
def test_more_confidence_is_a_wider_interval(sample, one, other):
    small, large = sorted((one, other))
    narrow, wide = confidence_sequence(sample, small), confidence_sequence(sample, large)
    assert wide[0] <= narrow[0]
    assert narrow[1] <= wide[1]


@given(samples, confidences)
def test_the_interval_excludes_none_exactly_when_the_e_value_says_so(sample, confidence):
    effect = estimate(Units(tuple(sample)), confidence)
    assume(abs(effect.e_value * (1 - confidence) - 1) > 1e-6)
    assert effect.excludes_none == (effect.e_value > 1 / (1 - confidence))


@given(experiments())
def test_swapping_the_two_baselines_inverts_the_ratio(seen):
    forth = estimate(noise_units(seen, baseline="base", again="base#2"), 0.95)
    back = estimate(noise_units(seen, baseline="base#2", again="base"), 0.95)
    assert forth.ratio * back.ratio == pytest.approx(1)
    assert forth.e_value == pytest.approx(back.e_value)
    if math.isfinite(forth.high):
        assert forth.high * back.low == pytest.approx(1)


@given(experiments(), st.data())
def test_a_factor_common_to_a_block_changes_nothing(seen, data):
    places = sorted({(o.round, o.block) for o in seen})
    factor = {place: data.draw(st.floats(1e-3, 1e3)) for place in places}
    scaled = [Observation(o.round, o.block, o.arm, o.value * factor[o.round, o.block]) for o in seen]
    assert variant(scaled).values == pytest.approx(variant(seen).values, abs=1e-9)


@given(experiments(), st.randoms(use_true_random=False))
def test_the_order_of_observations_changes_nothing(seen, random):
    shuffled = random.sample(seen, len(seen))
    assert variant(shuffled) == variant(seen)


@given(experiments(), st.data())
def test_blocks_are_complete_or_dropped(seen, data):
    left = [o for o in seen if data.draw(st.booleans())]
    units = variant(left)
    assert units.complete_blocks + units.dropped_blocks == len({(o.round, o.block) for o in left})
    assert len(units) <= units.complete_blocks


@given(e_values, st.floats(0.001, 0.5))
def test_e_bh_keeps_the_largest(values, alpha):
    kept = e_benjamini_hochberg(values, alpha)
    ranked = [keep for _, keep in sorted(zip(values, kept, strict=True), reverse=True)]
    assert ranked == sorted(ranked, reverse=True)
    assert all(
        value >= len(values) / (sum(kept) * alpha) - 1e-9
        for value, keep in zip(values, kept, strict=True)
        if keep
    )


@given(e_values, st.floats(0.001, 0.5))
def test_e_bh_keeps_no_fewer_than_a_correction_by_the_number_of_comparisons(values, alpha):
    kept = e_benjamini_hochberg(values, alpha)
    assert all(keep for value, keep in zip(values, kept, strict=True) if value >= len(values) / alpha)


@given(
    st.lists(samples, min_size=1, max_size=8),
    st.sampled_from(["lower", "higher"]),
    st.floats(0, 0.5),
    st.integers(1, 8),
)
def test_verdicts_say_no_more_than_the_intervals(sets, better, practical, minimum_rounds):
    effects = [estimate(Units(tuple(sample)), 0.95) for sample in sets]
    judged = judge(
        effects,
        better=[better] * len(sets),
        practical=practical,
        confidence=0.95,
        minimum_rounds=minimum_rounds,
    )
    for effect, judgement in zip(effects, judged, strict=True):
        assert judgement.reason
        if judgement.verdict in (Verdict.FASTER, Verdict.SLOWER):
            assert effect.excludes_none
            lower = effect.high < 1
            assert (judgement.verdict is Verdict.FASTER) == (lower == (better == "lower"))
        if judgement.verdict is Verdict.NO_PRACTICAL_DIFFERENCE:
            assert effect.low >= 1 / (1 + practical)
            assert effect.high <= 1 + practical
        if effect.rounds < minimum_rounds:
            assert judgement.verdict is Verdict.NOT_ENOUGH_EVIDENCE


UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


@given(st.integers(0, 10**6), st.sampled_from(sorted(UNITS)), st.sampled_from(["", " ", "  "]))
def test_a_whole_number_of_any_unit_is_read_exactly(number, unit, space):
    assert parse_duration(f"{number}{space}{unit}") == number * UNITS[unit]
    assert parse_duration(f" {number:_}{space}{unit} ") == number * UNITS[unit]


@given(st.integers(0, 119_999_999_999))
def test_a_time_that_is_shown_is_read_again_to_three_digits(nanoseconds):
    assert parse_duration(format_duration(nanoseconds)) == pytest.approx(nanoseconds, rel=0.0051)


@given(st.integers(120 * 10**9, 10**15))
def test_long_times_are_shown_in_minutes_and_seconds(nanoseconds):
    minutes, word, seconds, unit = format_duration(nanoseconds).split()
    assert (word, unit) == ("min", "s")
    assert int(seconds) < 60
    assert int(minutes) * 60 + int(seconds) == pytest.approx(nanoseconds / 1e9, abs=0.51)


@given(st.integers(0, 10_000))
def test_a_percentage_is_read_as_a_fraction(hundredths):
    assert parse_share(f"{hundredths / 100}%") == pytest.approx(hundredths / 10_000)


@given(st.integers(0, 10**15))
def test_a_size_that_is_shown_is_right_to_three_digits(size):
    number, unit = format_bytes(size).split()
    assert float(number) * SIZES[unit] == pytest.approx(size, rel=0.0051)


@given(st.integers(-(10**12), 10**12))
def test_a_whole_number_is_shown_in_full(number):
    assert int(format_count(number).replace(" ", "")) == number


@given(st.floats(0.001, 999))
def test_a_fraction_is_shown_to_three_digits(number):
    assert float(format_count(number)) == pytest.approx(number, rel=0.0051)


@given(st.floats(0.01, 100))
def test_a_change_has_the_sign_of_its_direction(ratio):
    text = format_percent(ratio)
    change = float(text.removesuffix(" %").replace("−", "-").replace("±", ""))
    assert change == pytest.approx((ratio - 1) * 100, abs=0.51)
    assert text[0] == ("±" if change == 0 else "+" if change > 0 else "−")


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused_with_what_was_expected(text):
    for read, word in (
        (parse_duration, "expected a time with a unit"),
        (parse_share, "expected a percentage"),
    ):
        try:
            assert read(text) >= 0
        except ValueError as error:
            assert str(error).startswith(word)


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "weight": st.floats(1, 1e6),
            "backend": st.sampled_from(["client backend", "parallel worker", "checkpointer"]),
            "state": st.sampled_from(["active", "idle in transaction", None]),
            "wait_class": st.sampled_from([None, "Lock", "IO"]),
            "wait_event": st.sampled_from(["a", "b", "c"]),
            "template": st.one_of(st.none(), st.integers(0, 60)),
            "application": st.sampled_from(["", "shop", "batch"]),
        }
    ),
    max_size=80,
)


def check(node):
    if node.children:
        assert sum(child.sessions for child in node.children) == pytest.approx(node.sessions)
        assert sum(child.share for child in node.children) == pytest.approx(node.share)
    for child in node.children:
        check(child)


@given(ROWS, st.booleans(), st.floats(1, 1e9))
def test_every_part_is_the_sum_of_its_parts(rows, by_process, whole):
    tree = time_tree(rows, whole, by_process=by_process)
    assert tree.sessions == pytest.approx(sum(row["weight"] for row in rows) / whole)
    check(tree)


@given(st.lists(st.integers(0, 10**9), min_size=1, unique=True), st.integers(0, 10**9), st.integers(0, 10**9))
def test_samples_stand_for_all_of_the_time(times, begun, length):
    times = sorted(times)
    found = weights(times, begun, begun + length)
    assert all(one >= 0 for one in found)
    assert sum(found) == pytest.approx(max(begun + length, times[-1]) - min(begun, times[0]))


AMOUNT = st.floats(0, 1e6)
COUNTED = st.builds(
    CountedTime, begun_us=st.just(0), ended_us=st.integers(1, 10**7), calls=st.integers(0, 1000),
    planning_ns=st.one_of(st.none(), st.floats(0, 1e12)), execution_ns=st.floats(0, 1e12),
)  # fmt: skip
WHOLE = database_result()


def tree_of(parts):
    """Return a tree of sessions: (class, event, sessions) each."""
    classes = [
        TimeNode("class", name, many, 0.0, None, (TimeNode("event", event, many, 0.0, None, ()),))
        for name, event, many in parts
    ]
    return TimeNode("all", "", sum(one.sessions for one in classes), 1.0, None, tuple(classes))


PARTS = st.lists(
    st.tuples(
        st.sampled_from(["CPU", "Lock", "IO", "idle in transaction"]),
        st.sampled_from(["", "tuple", "WALSync", "ClientRead"]),
        st.floats(0.01, 1e3),
    ),
    min_size=1,
    max_size=6,
)


def steps_check(steps, whole, amount):
    assert sum(amount(one) for one in steps) == pytest.approx(whole)
    assert sum(one.share for one in steps) == pytest.approx(1)
    assert all(amount(one) >= 0 for one in steps)
    assert steps[-1].name == "unknown"
    assert len({one.name for one in steps}) == len(steps)


@given(PARTS, COUNTED)
def test_steps_of_sessions_add_up_to_the_tree(parts, counted):
    tree = tree_of(parts)
    steps_check(steps_of(tree, counted), tree.sessions, lambda one: one.sessions)


COUNTS = st.integers(0, 2000)
POOL = st.fixed_dictionaries({"queries": COUNTS, "wait_us": AMOUNT})
DURATIONS = st.fixed_dictionaries({"count": COUNTS, "ns": st.integers(0, 10**9)})
LOG = st.fixed_dictionaries({kind: DURATIONS for kind in ("parse", "bind", "execute", "statement", "untold")})
PATH = st.fixed_dictionaries(
    {}, optional={"pooled": st.booleans(), "round_trip_ns": st.one_of(st.none(), AMOUNT)}
)


@given(
    PARTS,
    COUNTED,
    st.one_of(st.none(), AMOUNT),
    AMOUNT,
    AMOUNT,
    st.one_of(st.none(), POOL),
    st.one_of(st.none(), LOG),
    PATH,
)
def test_steps_of_a_transaction_add_up_to_its_mean_time(
    parts, counted, trip_ns, operations_ns, part_ns, pool, log, path
):
    load = {
        "ended_us": counted.ended_us, "elapsed_ns": counted.ended_us * 1000, "operations": 7,
        "operations_ns": round(operations_ns) + 1, "statements": counted.calls + 1,
        "statements_ns": round(part_ns), "round_trips": counted.calls,
    }  # fmt: skip
    seen = replace(
        WHOLE, counted=counted, tree=tree_of(parts), watch=replace(WHOLE.watch, round_trip_ns=trip_ns)
    )
    watched = WatchedLoad(load, pool, log, path)
    found = load_steps(watched, seen)
    steps_check(found, load["operations_ns"] / 7, lambda one: one.ns)
    gaps = {one.name for one in step_gaps(watched, "extended")}
    assert ("parse" in {one.name for one in found}) != ("parse" in gaps)
    assert ("pool" in {one.name for one in found}) == (pool is not None and "pool" not in gaps)
    executing = sum(one.ns for one in found if one.name in ("locks", "storage", "execute")) * 7
    assert executing <= counted.execution_ns * (1 + 1e-9)
    others = replace(seen, counted=replace(counted, calls=2 * load["statements"]))
    assert load_steps(watched, others) == ()


@given(AMOUNT, AMOUNT, AMOUNT, st.lists(st.floats(0.01, 1e3), min_size=4, max_size=4))
def test_places_of_requests_keep_their_sum_whatever_is_taken_out_of_them(parsing, planning, pool, many):
    kinds = ("database cpu", "database queue", "service wait", "locks")
    whole = sum(many)
    places = tuple(TimePlace(kind, one, one / whole, one * 10) for kind, one in zip(kinds, many, strict=True))
    found = with_branches(places, parsing, planning, pool)
    assert sum(one.requests for one in found) == pytest.approx(whole)
    assert sum(one.share for one in found) == pytest.approx(1)
    assert sum(one.ns for one in found) == pytest.approx(whole * 10)
    assert all(one.requests > 0 for one in found)


@dataclass(frozen=True, slots=True)
class Result:
    name: str
    parts: Any
    inner: tuple["Result", ...] = ()


_WORDS = st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _WORDS,
    lambda inner: st.lists(inner) | st.dictionaries(_WORDS | st.integers(), inner),
)


@given(_WORDS, _VALUES, _VALUES)
def test_it_is_what_json_dumps_writes(name: str, one: Any, other: Any) -> None:
    result = Result(name, one, (Result("inner", other), Result("", [])))
    text, expected = json_text(result), json.dumps(asdict(result), ensure_ascii=False, indent=1) + "\n"
    assert json.dumps(json.loads(text), ensure_ascii=False, indent=1) + "\n" == expected
    assert _layout(text) == _layout(expected), "only floats may be written in another way: 1e-9 for 1e-09"


def _layout(text: str) -> list[str]:
    """Return the lines, each up to its number."""
    return [re.sub(r"-?\d[-+.\de]*(?=,?$)", "0", line) for line in text.split("\n")]


def test_what_json_cannot_represent_is_null() -> None:
    text = json_text(Result("a", [math.inf, -math.inf, math.nan, {"b": math.nan}]))
    assert json.loads(text)["parts"] == [None, None, None, {"b": None}]


def test_a_large_result_is_written_completely() -> None:
    rows = tuple(Result(f"ключ {number}", number) for number in range(20_000))
    assert len(json.loads(json_bytes(Result("rows", None, rows)))["inner"]) == 20_000


LONGEST = 18
WORDS = st.text("abcxyz_=()", min_size=1, max_size=LONGEST)
TEXTS = st.lists(WORDS, min_size=1, max_size=8).map(" ".join)
VALUES = st.builds(Value, TEXTS, note=st.one_of(st.just(""), TEXTS))
COLUMNS = st.builds(Column, TEXTS, number=st.just(False), header=st.booleans())


@st.composite
def tables(draw):
    columns = draw(st.lists(COLUMNS, min_size=1, max_size=7))
    row = st.tuples(*[VALUES for _ in columns])
    return Table("", tuple(columns), tuple(draw(st.lists(row, min_size=1, max_size=4))))


@given(tables(), st.integers(40, 140))
def test_no_line_is_too_long_and_no_word_is_broken(table, width):
    output = StringIO()
    write_rows(Console(file=output, width=width, color_system=None, _environ={}), table)
    lines = output.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    shown = set(re.findall(r"[abcxyz_=()]+", output.getvalue()))
    words = {word for row in table.rows for one in row for word in f"{one.text} {one.note}".split()}
    assert words <= shown
