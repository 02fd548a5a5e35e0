"""What is said of a sweep, and its writers; the texts are in golden/load/sweeps.txt."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import jsonschema
import numpy as np
import pytest

from fakes.answered import sweep_result
from fakes.goldens import compare_cases, spoken
from fakes.sweeps import law, processors, spec, step, swept
from fakes.terminals import shown
from uncork.model.bottleneck import DatabaseUse, LoadUse, MachineUse, Seen
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.results.sweep import VerifiedFacts, VerifiedObjective
from uncork.model.sweep import Verification, parse_objectives
from uncork.model.units import format_duration
from uncork.report.blocks import LineChart
from uncork.report.headline import split_answer
from uncork.report.load.sweep import answer_sweep, build_sweep_document, levels_table, render_sweep_terminal
from uncork.report.words import rate_text
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.markdown import markdown_text
from uncork.report.write.schemas import result_schema
from uncork.store.layout import Manifest
from uncork.store.run_documents import Pressed

SQL, HTTP = {"scripts": [{"name": "select-only"}]}, {"scripts": [{"name": "/a"}], "http": {}}
MANIFEST = Manifest(
    "sweep-x", "sweep", "?", "complete", "2026-11-22T07:00:00+00:00", 1, "", "embedded", "0.1.0"
)
DOUBLED = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


def result_of(throughput, *, breaks_at=math.inf, message=None, plan=SQL, busiest=None, facts=(), **changes):
    """Return a sweep with a little noise; `facts` are what is known beside its loads."""
    wanted = spec(**changes)
    loads = swept(throughput, wanted, np.random.default_rng(5), noise=0.01, breaks_at=breaks_at)
    loads = [step if step.works else replace(step, message=message) for step in loads]
    if busiest is not None:
        loads = [replace(step, busiest_thread=busiest) for step in loads]
    return sweep_result(MANIFEST, plan, wanted, loads, {}, *facts)


def evidence(throughput, rounds):
    """Return a sweep of a service without noise but a wobble: one exploration, then rounds of all levels."""
    places = [(round_, level) for round_ in range(rounds + 1) for level in DOUBLED]
    loads = [
        step(number, round_, level, throughput(level) * (1 + 0.004 * math.sin(number)))
        for number, (round_, level) in enumerate(places, 1)
    ]
    return sweep_result(replace(MANIFEST, server="http://h"), HTTP, spec(), loads, {})


def flat_from(clients):
    return lambda load: 40.0 * min(load, clients)


def verified(**changes):
    facts = {
        "knee": 4.0, "share": 0.7, "rate": 2_100.0, "elapsed_ns": 10 * 10**9, "throughput": 2_098.0,
        "p50_ns": 1.2e6, "p99_ns": 6e6, "max_ns": 2 * 10**7, "wrong": 0.0, "works": True, "refused": 0,
        "message": None, "objectives": (),
    }  # fmt: skip
    return answer_sweep(replace(result_of(processors(4)), verified=VerifiedFacts(**{**facts, **changes})))


def broken_and_locked():
    """Return a sweep whose server waits for locks past the knee, and refuses connections at its cliff."""
    load = LoadUse(32.0, 2e7)
    locks = Seen(load, MachineUse(2), sessions=DatabaseUse({("Lock", "tuple"): 20.0}, 32.0))
    both = replace(locks, load=replace(load, errors={"53300": 4}))
    pressed = (Pressed(64.0, locks), Pressed(97.0, both, ("the service is not in sight",)))
    return result_of(processors(100), breaks_at=97, facts=(pressed,))


def scanned():
    """Return a sweep whose database lacks an index."""
    scan = Finding(
        "missing-index",
        "Table item has no index on kind, so calls scan it",
        objects=("item", "kind"),
        bill=Bill(3_000.0, 2_900.0, 3_100.0, 0.9),
        candidates=(Candidate("index", "Create an index.", sql="CREATE INDEX CONCURRENTLY ON item (kind);"),),
    )
    return replace(result_of(processors(4)), findings=(scan,))


LATE = parse_objectives("p99<25ms")
RESULTS = {
    "bends": lambda: result_of(processors(4)),
    "law": lambda: result_of(law),
    "breaks": lambda: result_of(processors(100), breaks_at=97, message="sorry, too many clients already"),
    "never works": lambda: result_of(processors(4), breaks_at=1, message="permission denied for table t"),
    "does not bend": lambda: result_of(lambda load: 1000.0 * load, end=64.0),
    "bottlenecks past the knee and at the cliff": broken_and_locked,
    "a finding about the database": scanned,
    "a busy generator": lambda: result_of(processors(4), busiest=0.97),
    "streams": lambda: result_of(processors(8), plan=HTTP, axis="streams", end=64.0),
    "an objective": lambda: result_of(processors(10), objectives=LATE),
    "two objectives": lambda: result_of(processors(10), objectives=parse_objectives("p99<25ms, p50<1us")),
    "flat from the first level": lambda: evidence(flat_from(1), 6),
    "flat from two clients": lambda: evidence(flat_from(2), 6),
    "too few rounds": lambda: evidence(flat_from(2), 3),
    "sustained below the knee": verified,
    "failures below the knee": lambda: verified(wrong=0.125, works=False),
    "an objective fails below the knee": lambda: verified(
        objectives=(VerifiedObjective("p99 < 5ms", 6e6, False),)
    ),
}


def test_answers_reasons_and_steps():
    cases = []
    for name, make in RESULTS.items():
        result = make()
        cases.append((name, result.answer, *spoken(build_sweep_document(result))))
    compare_cases("load/sweeps", cases)


@pytest.mark.parametrize(
    ("counts", "wrong", "works"),
    [
        ({}, 0.0, True),
        ({"refused": 40}, 0.0, True),  # connections that were not needed
        ({"unsent": 100}, 100 / 4_300, False),
        ({"failed": 42, "succeeded": 4_158}, 0.01, True),
    ],
)
def test_a_load_below_the_knee_is_judged_by_its_arrivals(counts, wrong, works):
    wanted = spec(objectives=parse_objectives("p99<5ms, errors<0.5%"))
    load = replace(step(9, 0, 2_100.0, 2_100.0), p99_ns=4 * 10**6, **counts)
    steps = swept(processors(4), wanted, np.random.default_rng(5), noise=0.01)
    result = sweep_result(MANIFEST, SQL, wanted, steps, {}, verification=Verification(4.0, load))
    found = result.verified
    assert (found.wrong, found.works) == (pytest.approx(wrong), works)
    assert found.refused == counts.get("refused", 0)
    assert [one.holds for one in found.objectives] == [True, wrong < 0.005]
    words = markdown_text(build_sweep_document(result))
    assert ("refused 40 additional connections" in words) == ("refused" in counts)


def level_rate(result, level):
    (row,) = [one for one in result.levels if one.level == level]
    return f"{rate_text(row.throughput)} requests a second"


def level_figures(result, level):
    """What the table shows of a level, in the words of the answer."""
    (row,) = [one for one in result.levels if one.level == level]
    return f"{level_rate(result, level)}, 99 % under {format_duration(row.p99_ns)}"


@pytest.mark.parametrize("rounds", [1, 3, 6])
@pytest.mark.parametrize("clients", [1, 2, 3, 8, 48, 64, 1000])
def test_every_figure_of_the_headline_is_of_the_level_it_names(clients, rounds):
    result = evidence(flat_from(clients), rounds)
    named = re.findall(
        r"(?:at|up to|from) (\d+) clients?(?: on)?,?(?: at| where)?"
        r"(?: (?:it|the service) handles)? ([\d\N{NO-BREAK SPACE} .]+) requests a second"
        r"(?:, 99 % under ([\d.]+ \w+))?",
        result.answer.replace(", the highest level", ""),
    )
    assert named
    for level, rate, latency in named:
        shown = f"{rate} requests a second"
        whole = f"{shown}, 99 % under {latency}" if latency else shown
        assert whole == (level_figures if latency else level_rate)(result, float(level))


def test_saturation_is_claimed_only_where_throughput_no_longer_grows():
    assert evidence(lambda load: 40.0 * load**0.5, 6).saturation is None
    assert evidence(flat_from(64), 6).saturation is None
    assert evidence(flat_from(2), 6).saturation.growth < 0.02
    never = RESULTS["never works"]()
    assert never.knee is None and never.law is None


def test_a_chart_has_the_line_of_an_objective_and_shades_the_levels_that_hold_it():
    result = result_of(processors(10), objectives=parse_objectives("p99<25ms"))
    (objective,) = result.objectives
    document = build_sweep_document(result)
    charts = [one for one in document.sections[0].blocks if isinstance(one, LineChart)]
    assert [one.limits for one in charts] == [(), ((25e6, "p99 < 25ms"),)]
    assert {one.shaded for one in charts} == {(1.0, objective.holds)}
    assert all(f"p99 < 25ms holds, up to {objective.holds:.0f} clients" in one.note for one in charts)
    table = levels_table(result)
    place = [column.title for column in table.columns].index("p99 < 25ms")
    held = {row[0].sort: row[place].text for row in table.rows}
    assert held[objective.holds] == "holds" and held[objective.fails] == "fails"
    assert set(held.values()) <= {"holds", "fails", "not known"}
    page = html_page(document)
    assert page.count(">p99 &lt; 25ms</text>") == 1 and page.count('stroke-dasharray="6,4"') == 1


def test_an_objective_that_no_level_holds_shades_nothing():
    result = result_of(processors(10), objectives=parse_objectives("errors<0.1%, p50<1us"))
    charts = [one for one in build_sweep_document(result).sections[0].blocks if isinstance(one, LineChart)]
    assert {one.shaded for one in charts} == {None} and not any(one.note for one in charts)
    assert charts[1].limits == ((1e3, "p50 < 1us"),)


@pytest.mark.parametrize("name", RESULTS)
def test_every_writer_takes_every_result(name):
    result = RESULTS[name]()
    document = build_sweep_document(result)
    jsonschema.validate(json.loads(json_text(result)), result_schema("sweep-result"))
    page = html_page(document).replace("\N{NO-BREAK SPACE}", " ").replace("&lt;", "<")
    assert all(part in page for part in split_answer(result.answer))
    assert "## Results by level" in markdown_text(document)
    assert max(map(len, shown(render_sweep_terminal, result, width=80).splitlines())) <= 80
