"""Changes that are known: read with clear errors, written to be read again, and what they do."""

import datetime
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.goldens import compare_mistakes
from uncork.errors import UsageError
from uncork.experiment.guard.acknowledged import (
    acknowledge,
    acknowledgement_of,
    entry_text,
    limit_words,
    parse_acknowledged,
    parse_limit,
    same_gate,
)
from uncork.experiment.spec.gates import parse_gate
from uncork.model.results.guard import Acknowledgement, Gate, GateCheck, GateOutcome

TODAY = datetime.date(2026, 5, 31)
FILE = """# ours
[[change]]
gate = "p99 < +5%"
workload = "orders"
reason = "stock is checked now"
date = 2026-05-30
by = "Ada"
until = "2026-12-31"
limit = "+12%"

[[change]]
gate = "plan unchanged on orders"
reason = "the new index"
date = "2026-05-30"
"""


def check(gate, ratio=None, *, workload="orders", outcome=GateOutcome.BROKEN, **facts):
    return GateCheck(parse_gate(gate), (), workload, outcome, "shown worse", ratio=ratio, **facts)


def entry(gate="p99 < +5%", workload="orders", **facts):
    return Acknowledgement(gate, workload, "stock", "2026-05-30", **facts)


def test_a_file_is_read():
    assert parse_acknowledged(FILE, file="known.toml") == (
        Acknowledgement(
            *("p99 < +5%", "orders", "stock is checked now", "2026-05-30", "Ada", "2026-12-31", 1.12)
        ),
        Acknowledgement("plan unchanged on orders", "orders", "the new index", "2026-05-30"),
    )
    assert parse_acknowledged("", file="known.toml") == ()


def test_what_is_wrong_is_told_with_file_line_and_key():
    compare_mistakes("spec/acknowledged", FILE, partial(parse_acknowledged, file="known.toml"))


def test_all_that_is_wrong_is_told_at_once():
    text = FILE.replace("p99", "p98").replace('reason = "the new index"\n', "")
    with pytest.raises(UsageError) as caught:
        parse_acknowledged(text, file="known.toml")
    assert len(str(caught.value).splitlines()) == 2


@given(
    gate=st.sampled_from(
        ["p99 < +5%", "throughput > -3%", "success > -0.5 points", "p99 < 20ms", "queries <= 3"]
    ),
    reason=st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
        lambda text: text.strip() == text
    ),
    workload=st.sampled_from(["", "orders", 'GET "/a"']),
    far=st.integers(1, 400),
)
def test_an_entry_that_was_written_is_read_as_the_same(gate, reason, workload, far):
    asked = parse_gate(gate)
    sign = -1 if asked.relation.startswith(">") else 1
    worse = {"ratio": 1 + sign * far / 500, "difference": sign * far / 500, "value": 4e7 + far * 1e5}[
        asked.bound
    ]
    worse = worse + asked.limit if asked.bound == "difference" else worse * asked.limit if sign > 0 else worse
    limit = worse if asked.bound == "value" or (worse - asked.limit) * sign > 0 else None
    known = Acknowledgement(gate, workload, reason, "2026-05-30", "Ada", "2026-12-31", limit)
    assert parse_acknowledged(FILE + entry_text(known), file="known.toml")[-1] == known


def test_a_broken_gate_that_is_known_is_acknowledged():
    known = entry(limit=1.12)
    after = acknowledge([check("p99 < +5%", 1.08)], [known], TODAY)
    assert after.checks[0].outcome is GateOutcome.ACKNOWLEDGED
    assert after.checks[0].acknowledgement == known
    assert after.unused == ()


@pytest.mark.parametrize(
    ("known", "found", "reason"),
    [
        (entry(limit=1.06), 1.08, "shown worse; this exceeds the +6% that was acknowledged on 2026-05-30"),
        (entry(until="2026-05-30"), 1.08, "shown worse; it was acknowledged only until 2026-05-30"),
        (entry(workload="others"), 1.08, "shown worse"),
        (entry("p99 < +6%"), 1.08, "shown worse"),
        (entry("p50 < +5%"), 1.08, "shown worse"),
    ],
)
def test_an_entry_that_does_not_hold_leaves_the_gate_broken_and_says_so(known, found, reason):
    (after,) = acknowledge([check("p99 < +5%", found)], [known], TODAY).checks
    assert (after.outcome, after.reason, after.acknowledgement) == (GateOutcome.BROKEN, reason, None)


@pytest.mark.parametrize(
    "known", [entry(until="2026-05-31"), entry(workload=""), entry("latency_p99 below 1.05x")]
)
def test_an_entry_holds_on_its_last_day_on_all_workloads_and_in_other_words(known):
    (after,) = acknowledge([check("p99 < +5%", 1.5)], [known], TODAY).checks
    assert after.outcome is GateOutcome.ACKNOWLEDGED


def test_of_two_entries_the_one_that_holds_counts():
    both = [entry(limit=1.06), entry(limit=1.2)]
    after = acknowledge([check("p99 < +5%", 1.08)], both, TODAY)
    assert after.checks[0].acknowledgement == both[1]


def test_only_what_is_broken_is_acknowledged_and_what_nothing_needs_is_told():
    kept = check("p99 < +5%", 1.0, outcome=GateOutcome.KEPT)
    unsure = check("p50 < +5%", 1.0, outcome=GateOutcome.UNDECIDED)
    known = [entry(), entry("p50 < +5%"), entry("WAL <= baseline"), entry("p90 < +5%", "elsewhere")]
    after = acknowledge([kept, unsure], known, TODAY)
    assert after.checks == (kept, unsure)
    assert after.unused == (known[0], known[2]), "not decided may need it yet; elsewhere was not measured"


def test_a_gate_that_nobody_writes_can_be_acknowledged():
    answer = GateCheck(
        Gate("same answer", "answer", "unchanged", "=", 1.0), (), "orders", GateOutcome.BROKEN, "row 1"
    )
    made = acknowledgement_of(answer, reason="rounding", date=TODAY)
    assert made.limit is None
    (again,) = parse_acknowledged(entry_text(made), file="known.toml")
    assert acknowledge([answer], [again], TODAY).checks[0].outcome is GateOutcome.ACKNOWLEDGED


@pytest.mark.parametrize(
    ("broken", "limit"),
    [
        (check("p99 < +5%", 1.08, low=1.061, high=1.0994), "+10%"),
        (check("throughput > -3%", 0.9, low=0.8711, high=0.93), "-12.9%"),
        (check("success >= baseline", -0.05, low=-0.0711, high=-0.03), "-7.2 points"),
        (check("queries <= baseline", 11.0, low=11.0, high=11.0), "+1000%"),
        (check("p99 < 20ms", candidate=23.41e6, low=22e6, high=24.62e6), "24.7ms"),
        (check("queries <= 3", candidate=11.0), "11"),
        (check("plan unchanged"), ""),
        (check("queries <= baseline", candidate=11.0), ""),
    ],
)
def test_without_a_limit_it_may_go_as_far_as_it_was_found_to(broken, limit):
    made = acknowledgement_of(broken, reason="known", date=TODAY, by="Ada")
    assert limit_words(made) == limit
    assert (made.workload, made.date, made.by) == ("orders", "2026-05-31", "Ada")
    (after,) = acknowledge([broken], [made], TODAY).checks
    assert after.outcome is GateOutcome.ACKNOWLEDGED


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"reason": "  "}, "--reason: is empty; say why the change is accepted"),
        ({"limit": "+3%"}, '--limit: +3% is within the gate\'s own bound "p99 < +5%"; give a wider one'),
        ({"limit": "8"}, "--limit: expected baseline, a change such as +5%"),
        ({"until": "soon"}, '--until: expected a date such as 2026-12-31; found "soon"'),
        ({"until": "2026-05-30"}, "--until: 2026-05-30 has passed; today is 2026-05-31"),
    ],
)
def test_what_cannot_be_acknowledged_is_refused(asked, message):
    with pytest.raises(UsageError) as caught:
        acknowledgement_of(check("p99 < +5%", 1.08), **{"reason": "known", "date": TODAY, **asked})
    assert str(caught.value).startswith(message)


def test_a_plan_has_no_limit():
    with pytest.raises(ValueError, match='"plan unchanged" has no bound, so it cannot have a limit'):
        parse_limit("+8%", parse_gate("plan unchanged"))


def test_gates_are_the_same_by_their_sense():
    assert same_gate("P99 latency under 1.05x on orders", parse_gate("p99 < +5%"))
    assert not same_gate("p99 <= +5%", parse_gate("p99 < +5%"))
    assert not same_gate("nonsense", parse_gate("p99 < +5%"))
