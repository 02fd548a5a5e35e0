"""Sections of the report on an experiment, and their sentences; the texts are in golden/report."""

import re
from dataclasses import replace

import pytest

from fakes.goldens import compare_cases, terminal
from fakes.results import bare_result, comparison, large_result, small_result
from uncork.model.results.experiment import (
    AnswerDifference,
    ArmMetric,
    BatchFacts,
    Cost,
    DataCheckFacts,
    FactorFacts,
    GrowthFacts,
    GrowthLine,
    OwnMetricFacts,
    PublishedFigure,
    RequestCounts,
)
from uncork.model.results.observer_cost import (
    CatalogueCost,
    IdleCost,
    ObserverCost,
    ObserverCosts,
    Pushes,
    Ratio,
    Switched,
    processor_verdict,
)
from uncork.model.variant_evidence import EvidenceFacts, WaitShare
from uncork.model.verdict import Verdict
from uncork.report.blocks import Fold, Gallery
from uncork.report.draw.charts import dot_axis
from uncork.report.experiment.answer import claim_words, interval_words, kernel_words
from uncork.report.experiment.batches import atomicity_words
from uncork.report.experiment.document import build_document, next_bottleneck_steps
from uncork.report.experiment.observer_cost import compose_cost_answer, render_costs
from uncork.report.experiment.requests import answer_words, data_check_words, request_chart_sections
from uncork.report.experiment.view import View
from uncork.report.write.html import html_page
from uncork.report.write.markdown import markdown_text

MS, SECOND = 10**6, 10**9
CELL = (("rows", "1000"),)
LARGE = (("rows", "10000"),)


def batch(variant, strategy, *, executions, round_trips, commits=1, implicit=False, chunk=1):
    counts = (1000, chunk, executions, round_trips, commits, implicit)
    return BatchFacts(CELL, "select", variant, strategy, *counts)


def cost(variant, user_ns, system_ns, cell=(), **changes):
    """Return a cost of which nothing is known but the server's processor time."""
    unknown = dict.fromkeys(Cost.__dataclass_fields__)
    known = {"cell": cell, "workload": "select", "variant": variant, "operations": 10}
    return Cost(**{**unknown, **known, "server_user_ns": user_ns, "server_system_ns": system_ns, **changes})


ROWS = batch("char", "rows", executions=1000, round_trips=1000, commits=1000)
PIPELINE = batch("uuid", "pipeline", executions=1000, round_trips=1, implicit=True)
UNNEST = batch("bytea", "unnest", executions=1, round_trips=1, implicit=True, chunk=1000)


def batched():
    """Return a result whose variants are two strategies, with a published figure that has a counterpart."""
    figure = PublishedFigure(
        name="peak CPU", before="14.3 cores", after="3 cores", published_ratio=0.21, cost="server CPU",
        unit="ns", cell=CELL, workload="select", variants=("char", "uuid"), measured=(200_000.0, 50_000.0),
        note="a peak there, a mean here",
    )  # fmt: skip
    return replace(
        bare_result(comparison("uuid", cell=CELL), factors=(FactorFacts("rows", ("1000",), True),)),
        batches=(ROWS, PIPELINE),
        costs=tuple(
            cost(name, time, 0.0, CELL, rows=1000.0, sent_bytes=500e3)
            for name, time in (("char", 200e6), ("uuid", 50e6))
        ),
        metrics=tuple(
            ArmMetric(CELL, "select", name, False, 10, 0, time, ())
            for name, time in (("char", 400e6), ("uuid", 100e6))
        ),
        figures=(figure, replace(figure, name="disk", cost="", measured=None)),
    )


def checks(*values):
    return tuple(
        DataCheckFacts(LARGE, name, "duplicates", "ids that are there twice", value) for name, value in values
    )


def with_own_metrics():
    facts = {"name": "written", "workload": "lookup", "cell": LARGE, "better": "lower", "trials": 12}
    metrics = (
        OwnMetricFacts(variant="char", mean=70.0, least=70.0, most=70.0, **facts),
        OwnMetricFacts(variant="uuid", mean=141.0, least=140.0, most=142.0, **facts),
    )
    return replace(small_result(), own_metrics=metrics)


SIZES = (1e5, 3e5, 1e6)
GROWTH = (
    GrowthLine(
        (), "select", "char", SIZES, (25 * MS, 65 * MS, 205 * MS), 4, 0.91, 0.89, 0.93,
        ("linear",), 36 * SECOND, 23 * SECOND, 40 * SECOND,
    ),
    GrowthLine(
        (), "select", "uuid", SIZES, (5 * MS, 5 * MS, 5 * MS), 4, 0.01, -0.05, 0.07,
        ("logarithmic", "power", "linear"), 5 * MS, 5 * MS, 41.23 * MS,
    ),
    GrowthLine(
        (), "delete", "uuid", SIZES, (5 * MS, 5 * MS, 500 * MS), 4, 2.0, 1.9, 2.1, (), None, None, None,
    ),
)  # fmt: skip


def grown(lines=GROWTH):
    return replace(small_result(), growth=GrowthFacts("rows", 180e6, 0.95, lines))


RESULTS = {
    "Costs per row": batched,
    "Data checks": lambda: replace(small_result(), data_checks=checks(("char", "0"), ("uuid", "100"))),
    "Metrics of the file": with_own_metrics,
    "How time grows with rows": grown,
    "How time grows with rows, of too few sizes": lambda: grown(()),
}


def section_of(result, title):
    """Return a section of a report in Markdown; nothing if the report has none."""
    found = re.search(rf"^## {title}\n.*?(?=^## |\Z)", markdown_text(build_document(result)), re.M | re.S)
    return found[0] if found else ""


def test_sections():
    cases = [(name, section_of(make(), name.partition(",")[0])) for name, make in RESULTS.items()]
    assert all(text for _, text in cases)
    compare_cases("report/sections", cases)


@pytest.mark.parametrize("name", list(RESULTS)[:-1])
def test_a_section_is_on_the_page_and_only_where_it_has_content(name):
    assert name in html_page(build_document(RESULTS[name]()))
    assert section_of(small_result(), name) == ""


# ---- sentences ----


def kernels(*costs):
    return kernel_words(costs, (FactorFacts("sessions", ("1", "8"), True),))


def answers(*differences):
    result = small_result()
    found = tuple(AnswerDifference((), "find", f"v{n}", text) for n, text in enumerate(differences))
    return answer_words(replace(result, answers=found))


def test_sentences():
    here, there = (("sessions", "8"),), (("sessions", "1"),)
    careful, ranges = cost("careful", 66 * MS, 34 * MS), cost("ranges", 20 * MS, 0.2 * MS)
    values = checks(("char", "0"), ("bytea", "0"), ("uuid", "1000"), ("varchar", None))
    cases = [
        ("batches are not atomic alike", atomicity_words((ROWS, PIPELINE, UNNEST))),
        ("a layout holds other data", *data_check_words(values, "char")),
        ("much time in the kernel", *kernels(careful, ranges, cost("other", 5 * MS, 1 * MS))),
        (
            "only costs of the same place are compared",
            *kernels(cost("careful", 10 * MS, 10 * MS, here), cost("ranges", 10 * MS, 0, there)),
        ),
        ("an answer differs", *answers("GET /1: /id is 2 where the baseline has 1")),
        ("many answers differ", *answers(*["GET /1: another body"] * 5)),
        *((f"next: {name}", *steps) for name, steps in next_steps()),
    ]
    compare_cases("report/sentences", cases)


@pytest.mark.parametrize(
    "costs",
    [[], [cost("usual", 90 * MS, 10 * MS)], [cost("short", 10_000, 20_000)], [cost("unknown", None, None)]],
)
def test_a_kernel_share_that_is_usual_of_a_short_time_or_unknown_is_not_told(costs):
    assert kernels(*costs) == ()


def test_where_nothing_differs_nothing_is_said():
    assert [atomicity_words(found) for found in ((), (ROWS,), (PIPELINE, UNNEST))] == ["", "", ""]
    assert (
        data_check_words(checks(("char", "0"), ("uuid", "0")), "char") == data_check_words((), "char") == ()
    )


@pytest.mark.parametrize(
    ("user_ns", "system_ns", "share"), [(3.0, 1.0, 0.25), (0, 0, None), (None, 1.0, None), (0.0, 2.0, 1.0)]
)
def test_the_kernels_share_is_of_all_processor_time(user_ns, system_ns, share):
    assert cost("a", user_ns, system_ns).kernel_share == share


# ---- what limits the better variant after a verdict ----


def evidence(variant, *waits, rows="50000"):
    shares = tuple(WaitShare(name, share * 1e6, share) for name, share in waits)
    cell = (("rows", rows), ("index", "none"))
    return EvidenceFacts(cell, "select", variant, 1000, 10**9, 5e5, 1e5, 0.2, shares, (), 0, (), (), ())


def steps_after(*found, result=None):
    return [step.text for step in next_bottleneck_steps(replace(result or small_result(), evidence=found))]


def with_service(user_ns):
    costs = (replace(one, service_user_ns=user_ns, service_system_ns=1e5) for one in small_result().costs)
    return replace(small_result(), costs=tuple(costs))


def next_steps():
    locks = evidence("uuid", ("Lock: tuple", 0.61), ("CPU", 0.39))
    reading = evidence("uuid", ("CPU", 0.6), ("IO: DataFileRead", 0.4), rows="100000")
    yield "locks of the better variant", steps_after(evidence("char", ("CPU", 1.0)), locks)
    yield "computing", steps_after(evidence("uuid", ("CPU", 0.9)))
    yield "a service that computes longer than the server", steps_after(reading, result=with_service(7e5))
    yield "a service that computes less than the server", steps_after(reading, result=with_service(4e5))


def test_without_evidence_or_without_a_faster_variant_no_bottleneck_is_named():
    known = small_result()
    slower = replace(
        known, comparisons=tuple(replace(one, verdict=Verdict.SLOWER) for one in known.comparisons)
    )
    assert steps_after() == steps_after(evidence("char", ("CPU", 1.0))) == []
    assert steps_after(evidence("uuid", ("CPU", 0.9)), result=slower) == []


# ---- shares of success ----


def test_a_difference_of_all_is_a_hundred_points():
    ends = {"difference": 1.0, "difference_low": 0.951, "difference_high": 1.0}
    found = replace(small_result().comparisons[0], ratio=None, **ends)
    assert claim_words(found, "success") == ("lets 100 percentage points more requests succeed", "than")
    assert interval_words(found, "success", 0.95) == "95 % interval: 95 to 100 points"


def test_a_tally_says_succeed_where_success_is_compared():
    share = {"difference": -0.2, "difference_low": -0.25, "difference_high": -0.1}
    fewer = [comparison(name, Verdict.SLOWER, None, None, None, **share) for name in "ab"]
    document = build_document(bare_result(*fewer, comparison("c", Verdict.SLOWER), comparison("d")))
    assert document.tally == (
        (Verdict.FASTER, "faster", 1),
        (Verdict.SLOWER, "fewer succeed", 2),
        (Verdict.SLOWER, "slower", 1),
    )
    assert "fewer succeed: 2 · ✗ slower: 1" in markdown_text(document)
    assert '<b>2</b> <span aria-hidden="true">✗</span> fewer succeed' in html_page(document)


CHARTS_MS = 10**6
SMALL, CHARTS_LARGE = small_result(), large_result()
CELLS = tuple(dict.fromkeys(c.cell for c in CHARTS_LARGE.comparisons))


def counts(cell, workload, variant, succeeded=300, mean_ns=5 * CHARTS_MS, throughput=900.0):
    return RequestCounts(
        cell=cell, workload=workload, variant=variant, started=300, succeeded=succeeded,
        failed=300 - succeeded, timed_out=0,
        low=max(0, succeeded / 300 - 0.02), high=min(1, succeeded / 300 + 0.02),
        statuses={"200": succeeded}, errors={"late": 300 - succeeded} if succeeded < 300 else {},
        throughput=throughput, mean_ns=mean_ns, longest_ns=None if mean_ns is None else 4 * mean_ns,
    )  # fmt: skip


def result(cells=CELLS[:1]):
    found = []
    for cell in cells:
        found += [
            counts(cell, "select", "char", succeeded=3, mean_ns=220 * CHARTS_MS, throughput=44.0),
            counts(cell, "select", "uuid"),
            counts(cell, "delete", "char", mean_ns=None, throughput=None),
        ]
    return replace(CHARTS_LARGE, requests=tuple(found))


def galleries(found):
    (section,) = request_chart_sections(View(found))
    inner = [block for fold in section.blocks if isinstance(fold, Fold) for block in fold.blocks]
    return [block for block in (*section.blocks, *inner) if isinstance(block, Gallery)]


def test_four_charts_and_only_the_share_has_intervals():
    charts = [chart for gallery in galleries(result()) for chart in gallery.charts]
    assert [chart.title for chart in charts] == [
        "Succeeded", "Requests a second", "Mean time of a request", "Longest time of a request",
    ]  # fmt: skip
    share, rate, mean, longest = charts
    assert [(mark.label, mark.variant, mark.value) for mark in share.marks] == [
        ("select", "char", 0.01), ("select", "uuid", 1.0), ("delete", "char", 1.0),
    ]  # fmt: skip
    assert all(mark.low is not None for mark in share.marks)
    assert all(mark.low is None for chart in (rate, mean, longest) for mark in chart.marks)
    assert [mark.value for mark in rate.marks] == [44.0, 900.0], "what has no value has no mark"


def test_several_cells_fold_and_the_last_one_is_open():
    (section,) = request_chart_sections(View(result(CELLS[:2])))
    folds = [block for block in section.blocks if isinstance(block, Fold)]
    assert [fold.open for fold in folds] == [True, False]


def test_without_requests_there_is_nothing():
    assert list(request_chart_sections(View(SMALL))) == []
    assert "Requests at a glance" not in markdown_text(build_document(SMALL))


def test_a_page_holds_the_drawings_and_markdown_the_figures():
    page = html_page(build_document(result()))
    section = page[page.index('id="request-charts"') :]
    assert len(re.findall(r'<svg[^>]*class="chart"', section.partition("</section>")[0])) == 4
    assert page.count("var(--v1)") > 4, "colours are the page's"
    assert "| select | char | 1.0 %<br>\\[0, 3\\] | 44 | 220 ms | 880 ms |" in markdown_text(
        build_document(result())
    )


def test_times_that_lie_far_apart_stand_on_a_logarithmic_axis_and_shares_on_a_whole_one():
    (share, _), (mean, _) = (gallery.charts for gallery in galleries(result()))
    near = replace(mean, marks=mean.marks[:1])

    whole, far, close = map(dot_axis, (share, mean, near))
    assert (whole.logarithmic, whole.low, whole.high) == (False, 0.0, 1.0)
    assert far.logarithmic
    assert (close.logarithmic, close.low) == (False, 0.0)


NEAR, FAR = Ratio(0.998, 0.995, 1.001, 12), Ratio(0.9, 0.85, 0.95, 12)


def costs_cost(name, verdict, ratio=NEAR, **changes):
    one = ObserverCost(name, name, "select-only", "all", ratio, ratio, verdict, ratio, None, ratio, 0.004)
    return replace(one, **changes)


FOUND = ObserverCosts(
    run="r",
    answer="",
    practical=0.01,
    confidence=0.95,
    noise="the baseline against itself stays within ±1 %",
    costs=(
        costs_cost("system", "costs less"),
        costs_cost("sessions", "costs less"),
        costs_cost("log_statements", "costs more", FAR, observer_share=None),
        costs_cost("perf", "not enough evidence", Ratio(0.99, None, None, 3)),
    ),
    idle={"system": IdleCost(8, 3.5e6, 4e5, -1e5, 4e5), "sessions": IdleCost(8, 6e6, 7e5, None, None)},
    skipped={"auto_explain": "the server refuses it: permission denied"},
)


SWITCHED = Switched(
    quadruples=400,
    slice_ns=100_200_000,
    plain=Ratio(0.991, 0.97, 1.012, 100),
    adjusted=Ratio(0.9968, 0.9931, 1.0005, 100),
    sure=Ratio(0.9968, 0.992, 1.0016, 100),
    processor=Ratio(1.004, 1.001, 1.007, 100),
    processor_sure=Ratio(1.004, 1.0002, 1.0078, 100),
    others=0.314,
    stolen=0.01,
    work=0.5,
    bound=Ratio(1.001, 1.0001, 1.002, 100),
    apart=False,
)


READING = CatalogueCost(5, 12, 446e6, 17e6, 64e6, 4_100_000, 960, 60_000_000_000)


def agent(pushes):
    """Return the cost of an agent, whose own processor time is the service's."""
    alone = costs_cost(
        "agent", "not enough evidence", service_cpu=Ratio(1.072, 1.01, 1.16, 8), observer_share=None
    )
    idle = {"agent": IdleCost(12, 0.0, None, 7.5e6, 1.3e6)}
    return replace(FOUND, costs=(alone,), idle=idle, pushes=pushes)


def with_verdict(name, verdict, ratio):
    unsure = costs_cost(name, "not enough evidence", processor=ratio)
    return replace(unsure, processor_verdict=verdict)


def switched(*observers, **changes):
    """Return costs of observers that were switched on and off: each a name and its verdict."""
    how = replace(SWITCHED, **changes)
    return replace(FOUND, costs=tuple(costs_cost(name, verdict, switched=how) for name, verdict in observers))


UNSURE, LESS = "not enough evidence", "costs less"
NONE = dict.fromkeys(("plain", "adjusted", "sure", "processor"))
WIDE = {"sure": Ratio(0.9968, 0.9802, 1.01, 100)}
CASES = {
    "several observers": FOUND,
    "nothing measured": replace(FOUND, costs=()),
    "two workloads": replace(
        FOUND, costs=(FOUND.costs[0], costs_cost("system", "costs more", FAR, workload="tpcb-like"))
    ),
    "an agent": agent(Pushes(6, 11_300)),
    "an agent that pushed nothing": agent(Pushes(0, 0)),
    "processor time decides": replace(
        FOUND,
        costs=(
            with_verdict("system", LESS, Ratio(1.004, 1.001, 1.008, 30)),
            with_verdict("perf", "costs more", Ratio(1.03, 1.02, 1.04, 30)),
            replace(FOUND.costs[0], processor_verdict=LESS),
        ),
    ),
    "switched": replace(FOUND, costs=(*switched(("system", LESS)).costs, FOUND.costs[2])),
    "switched, wide and not decided": switched(("system", UNSURE), **WIDE),
    "switched, wide and decided": switched(("system", LESS), **WIDE),
    "too few quadruples": switched(("system", UNSURE), quadruples=9, **NONE),
    "counted and adjusted throughput differ": switched(("sessions", UNSURE), apart=True),
    "processor time bounds what throughput does not": switched(
        ("system", UNSURE), ("sessions", "costs more")
    ),
    "processor time bounds nothing": switched(("system", UNSURE), bound=Ratio(1.005, 0.995, 1.015, 100)),
    "a reading of the catalogue": replace(FOUND, costs=FOUND.costs[:1], catalogue=READING),
    "a reading of a server elsewhere": replace(FOUND, catalogue=replace(READING, server_ns=None, lock_ns=0)),
}


def test_answers_and_tables():
    cases = [
        (name, compose_cost_answer(found), terminal(render_costs, 80)(found)) for name, found in CASES.items()
    ]
    assert all(len(line) <= 80 for _, answer, table in cases for line in table.splitlines())
    compare_cases("report/observer_costs", cases)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.99, 1.009, "costs less"),
        (1.011, 1.03, "costs more"),
        (1.001, 1.03, "costs something"),
        (0.99, 1.02, "not enough evidence"),
        (None, None, "not enough evidence"),
    ],
)
def test_processor_time_costs_where_it_grows(low, high, verdict):
    assert processor_verdict(Ratio(1.0, low, high, 9), 0.01, enough=True) == verdict
    assert processor_verdict(Ratio(1.0, low, high, 9), 0.01, enough=False) == "not enough evidence"
    assert processor_verdict(None, 0.01, enough=True) == "not enough evidence"
