"""The four charts of requests, in every cell, for any experiment that sends some."""

import re
from dataclasses import replace

from fakes.results import large_result, small_result
from uncork.model.results.experiment import RequestCounts
from uncork.report.blocks import Fold, Gallery
from uncork.report.draw.charts import dot_axis
from uncork.report.experiment.document import build_document
from uncork.report.experiment.requests import request_chart_sections
from uncork.report.experiment.view import View
from uncork.report.write.html import html_page
from uncork.report.write.markdown import markdown_text

MS = 10**6
SMALL, LARGE = small_result(), large_result()
CELLS = tuple(dict.fromkeys(c.cell for c in LARGE.comparisons))


def counts(cell, workload, variant, succeeded=300, mean_ns=5 * MS, throughput=900.0):
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
            counts(cell, "select", "char", succeeded=3, mean_ns=220 * MS, throughput=44.0),
            counts(cell, "select", "uuid"),
            counts(cell, "delete", "char", mean_ns=None, throughput=None),
        ]
    return replace(LARGE, requests=tuple(found))


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
