"""From a stored load to what a report says of it: sums, rates, quantiles, and whose limit it was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.answered import load_result
from fakes.http_results import HTTP_SPEC, MANIFEST, http_load, http_result
from fakes.load_results import (
    CLOSED_SPEC,
    OPEN_SPEC,
    closed_load,
    closed_result,
    histogram,
    latencies,
    open_load,
    open_result,
    refused_result,
    result_of,
    times,
    totals,
)
from uncork.analysis.load.figures import load_figures
from uncork.analysis.load.result import steady_facts
from uncork.load.http import http_plan, without_secrets
from uncork.load.run import measurement
from uncork.model.load import Arrivals, LoadMeasurement
from uncork.model.results.load import SecondFacts
from uncork.model.tables.load import IntervalStatus, LoadInterval
from uncork.report.load.charts import throughput_chart


def test_counts_keep_their_identities():
    for result in (closed_result(), open_result(), refused_result()):
        counts = result.counts
        assert counts.started == counts.succeeded + counts.failed
        if counts.arrivals is not None:
            assert counts.arrivals == counts.started + counts.skipped + counts.unsent


def test_the_rate_is_successes_over_the_measured_part():
    assert closed_result().operations_per_second == pytest.approx(400.0)
    assert open_result().operations_per_second == pytest.approx(280.0)
    assert refused_result().operations_per_second == 0


def test_mean_and_deviation_come_from_the_sums():
    values = latencies(6, 1_400, 9e6)
    mean = sum(values) / len(values)
    deviation = (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5
    service = open_result().service
    assert service.mean_ns == pytest.approx(mean)
    assert service.stddev_ns == pytest.approx(deviation)
    assert (service.min_ns, service.max_ns) == (min(values), max(values))


def test_a_closed_loop_has_one_latency_and_no_lateness():
    result = closed_result()
    assert result.service == result.operation
    assert result.lateness is None


def test_an_open_loop_waits_from_the_intended_start():
    result = open_result()
    assert result.operation.p50_ns > result.service.p50_ns > result.lateness.p50_ns > 0


def test_the_curve_keeps_its_tail_and_its_end():
    points = closed_result().operation.points
    assert 100 < len(points) < 400
    assert points[-1][0] == 1.0
    assert [q for q, _ in points] == sorted(q for q, _ in points)
    assert sum(q > 0.999 for q, _ in points) > 3


def test_an_interval_is_the_sum_of_its_scripts():
    result = closed_result()
    assert len(result.series) == 30
    assert sum(second.succeeded for second in result.series) == result.counts.succeeded
    assert all(second.p50_ns <= second.p99_ns <= second.max_ns for second in result.series)
    assert max(second.max_ns for second in result.series) == pytest.approx(result.operation.max_ns, rel=0.002)


def test_the_last_interval_is_as_long_as_it_was():
    measured = closed_load()
    shorter = replace(measured.totals, elapsed_ns=29_400_000_000)
    found = result_of(CLOSED_SPEC, LoadMeasurement(shorter, measured.times, measured.series))
    assert [second.length_ns for second in found.series[-2:]] == [1_000_000_000, 400_000_000]


def test_an_interval_in_which_nothing_ended_has_no_latency():
    measured = open_load()
    silent = tuple(replace(row, succeeded=0, histogram=None) for row in measured.series)
    found = result_of(OPEN_SPEC, LoadMeasurement(measured.totals, measured.times, silent))
    assert all(second.p50_ns is second.max_ns is None for second in found.series)


def test_seconds_in_which_nothing_happened_are_there_with_nothing():
    measured = closed_load()
    kept = tuple(row for row in measured.series if not 10 <= row.interval < 13 and row.interval < 28)
    found = result_of(CLOSED_SPEC, LoadMeasurement(measured.totals, measured.times, kept))
    assert [second.start_ns for second in found.series] == [n * 10**9 for n in range(30)]
    assert [n for n, second in enumerate(found.series) if not second.started] == [10, 11, 12, 28, 29]
    (line,) = throughput_chart(found).lines
    assert [y for _, y in line.points][9:14] == [400, 0, 0, 0, 400], "no line is drawn across a standstill"
    within = {figure.name: figure.within for figure in load_figures(found) if figure.subject == ""}
    assert within["p50"] and within["p99"], "the error within a run is of seconds in which anything happened"


def test_answers_are_told_by_status_also_of_an_interval_in_which_nothing_else_happened():
    result = http_result()
    assert result.series[12].statuses == {"200": 667}
    assert result.series[13].statuses == {"200": 667, "503": 10}
    late = IntervalStatus(15, 15 * 10**9, 5 * 10**8, 404, 7)  # heads came, the bodies did not end
    measured = http_load()
    totals = replace(measured.totals, elapsed_ns=15_500_000_000)
    changed = replace(measured, totals=totals, statuses=(*measured.statuses, late))
    found = load_result(MANIFEST, without_secrets(http_plan(HTTP_SPEC)), changed, {})
    assert found.series[-1] == SecondFacts(
        late.start_ns, 5 * 10**8, 0, 0, 0, 0, 0, None, None, None, {"404": 7}
    )
    assert all(second.statuses == {} for second in closed_result().series)


def test_scripts_have_their_shares_and_texts():
    writes, reads = closed_result().scripts
    assert (writes.name, writes.share, writes.executions) == ("tpcb-like", 0.25, 3_000)
    assert (reads.name, reads.share, reads.executions) == ("select-only", 0.75, 9_000)
    assert writes.text.startswith("\\set aid")
    assert writes.latency.count == 3_000


def test_a_script_that_was_never_chosen_is_there_with_nothing():
    measured = closed_load()
    kept = tuple(row for row in measured.times if row.script != "select-only")
    reads = result_of(CLOSED_SPEC, LoadMeasurement(measured.totals, kept, measured.series)).scripts[1]
    assert (reads.executions, reads.latency.count, reads.latency.p50_ns) == (0, 0, None)


def test_statements_name_their_line():
    lines = [(one.script, one.line, one.name) for one in closed_result().statements]
    assert lines == [
        ("tpcb-like", 4, "UPDATE pgbench_accounts"),
        ("tpcb-like", 5, "SELECT abalance"),
        ("select-only", 2, "SELECT abalance"),
    ]


def test_whose_limit_it_was_is_said_only_when_something_was_measured():
    assert closed_result().generator.limit in {"no", "perhaps", "yes"}
    assert closed_result().generator.sentence
    assert refused_result().generator.limit is None
    assert refused_result().generator.sentence == ""


def test_a_busy_generator_is_called_the_limit():
    measured = closed_load()
    busy = replace(measured.totals, busiest_thread=1.0, client_user_ns=60_000_000_000)
    found = result_of(CLOSED_SPEC, LoadMeasurement(busy, measured.times, measured.series))
    assert found.generator.limit == "yes"


def test_connections_have_a_mean_only_when_there_were_any():
    assert open_result().connections.mean_ns == pytest.approx(5_000_000)
    assert refused_result().connections.mean_ns is None


@pytest.mark.parametrize(
    ("arrivals", "each"),
    [(Arrivals("poisson", 9.0), 5), (None, 5), (Arrivals("trace", offsets_ns=(0, 1)), None)],
)
def test_how_long_it_was_to_go_on_is_read_back_from_the_plan(arrivals, each):
    spec = replace(CLOSED_SPEC, duration_ns=None, operations_each=each, arrivals=arrivals)
    assert result_of(spec, closed_load()).settings.operations_each == each


def test_failures_alone_have_no_distribution():
    summed = totals(started=4, failed=4, errors={"42P01": 4}, elapsed_ns=1_000_000_000)
    rows = [times("operation", [], errors=4), times("service", [], errors=4)]
    result = result_of(CLOSED_SPEC, measurement(summed, rows, []))
    assert result.operation.count == 0
    assert result.operation.p99_ns is None


def seconds_of(latencies_ns, counts):
    """Return the seconds of a load and its stored intervals, with so many equal operations in each."""
    seconds, intervals = [], []
    for place, (latency, count) in enumerate(zip(latencies_ns, counts, strict=True)):
        start = place * 1_000_000_000
        many = {"started": count, "succeeded": count, "failed": 0, "skipped": 0, "retries": 0}
        times_ns = {"p50_ns": latency, "p99_ns": latency, "max_ns": latency}
        seconds.append(SecondFacts(start, 1_000_000_000, **many, **times_ns))
        row = {"interval": place, "start_ns": start, "script": "one", "statements": count, **many}
        intervals.append(LoadInterval(**row, histogram=histogram([latency] * count)))
    return seconds, intervals


def test_a_load_that_warms_up_has_the_figures_of_its_steady_part():
    slow, fast = [20_000_000] * 3, [2_000_000] * 17
    found = steady_facts(
        *seconds_of([*slow, *fast], [10] * 3 + [100, 102, 98] * 5 + [99] * 2), open_loop=False
    )
    assert (found.verdict, found.metric, found.seconds) == ("warm-up", "throughput", 20)
    assert found.start_ns == 3_000_000_000
    assert found.operations_per_second == pytest.approx(100, rel=0.01)
    assert found.p50_ns == pytest.approx(2_000_000, rel=0.001)
    assert found.p99_ns == pytest.approx(2_000_000, rel=0.001)


def test_an_open_loop_is_judged_by_its_latency():
    slow, fast = [20_000_000] * 3, [2_000_000] * 17
    steady = steady_facts(*seconds_of([2_000_000] * 20, [100] * 20), open_loop=True)
    assert (steady.verdict, steady.metric, steady.start_ns) == ("steady", "p50", 0)
    assert steady_facts(*seconds_of([*slow, *fast], [100] * 20), open_loop=True).verdict == "warm-up"
    assert steady_facts(*seconds_of([*slow, *fast], [100] * 20), open_loop=False).verdict == "steady"


def test_a_short_load_or_one_without_success_is_not_judged():
    assert steady_facts(*seconds_of([2_000_000] * 9, [100] * 9), open_loop=False) is None
    assert steady_facts(*seconds_of([2_000_000] * 20, [0] * 20), open_loop=False) is None
    assert steady_facts(*seconds_of([2_000_000] * 20, [100] * 3 + [0] * 17), open_loop=False) is None
