"""What is said of a sweep, and its writers."""

from __future__ import annotations

import io
import json
import math
import re
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from rich.console import Console

from fakes.answered import sweep_result
from fakes.sweeps import law, processors, spec, step, swept
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
from uncork.store.pressed import Pressed


def result_of(throughput, *, breaks_at=math.inf, message=None, **changes):
    wanted = spec(**changes)
    loads = swept(throughput, wanted, np.random.default_rng(5), noise=0.01, breaks_at=breaks_at)
    loads = [step if step.works else replace(step, message=message) for step in loads]
    manifest = Manifest(
        "sweep-x", "sweep", "?", "complete", "2026-11-22T07:00:00+00:00", 1, "", "embedded", "0.1.0"
    )
    return sweep_result(manifest, {"scripts": [{"name": "select-only"}]}, wanted, loads, {})


RESULTS = {
    "bends": lambda: result_of(processors(4)),
    "law": lambda: result_of(law),
    "breaks": lambda: result_of(processors(100), breaks_at=97, message="sorry, too many clients already"),
    "never works": lambda: result_of(processors(4), breaks_at=1, message="permission denied for table t"),
    "does not bend": lambda: result_of(lambda load: 1000.0 * load, end=64.0),
}


def test_the_answer_names_the_knee_and_the_throughput_there():
    answer = RESULTS["bends"]().answer
    assert "The knee is between 3 and 6 clients: at 4 clients the server handles 3 " in answer
    assert "transactions a second, 99 % under" in answer


def test_a_finding_about_the_database_is_the_step_instead_of_the_bottleneck():
    scan = Finding(
        "missing-index",
        "Table item has no index on kind, so calls scan it",
        objects=("item", "kind"),
        bill=Bill(3_000.0, 2_900.0, 3_100.0, 0.9),
        candidates=(Candidate("index", "Create an index.", sql="CREATE INDEX CONCURRENTLY ON item (kind);"),),
    )
    document = build_sweep_document(replace(RESULTS["bends"](), findings=(scan,)))
    assert document.reasons[0] == "Table item has no index on kind, so calls scan it: 90 % of the busy time."
    assert document.steps[0].command == "CREATE INDEX CONCURRENTLY ON item (kind);"
    assert any(section.id == "finding-1" for section in document.sections)


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
    manifest = Manifest(
        "s", "sweep", "?", "complete", "2026-11-22T07:00:00+00:00", 1, "", "embedded", "0.1.0"
    )
    plan = {"scripts": [{"name": "select-only"}]}
    result = sweep_result(manifest, plan, wanted, steps, {}, verification=Verification(4.0, load))
    found = result.verified
    assert (found.wrong, found.works) == (pytest.approx(wrong), works)
    assert found.refused == counts.get("refused", 0)
    assert [one.holds for one in found.objectives] == [True, wrong < 0.005]
    words = markdown_text(build_sweep_document(result))
    assert ("refused 40 additional connections" in words) == ("refused" in counts)


def verified(**changes):
    facts = {
        "knee": 4.0,
        "share": 0.7,
        "rate": 2_100.0,
        "elapsed_ns": 10 * 10**9,
        "throughput": 2_098.0,
        "p50_ns": 1.2e6,
        "p99_ns": 6e6,
        "max_ns": 2 * 10**7,
        "wrong": 0.0,
        "works": True,
        "refused": 0,
        "message": None,
        "objectives": (),
    }
    return replace(RESULTS["bends"](), verified=VerifiedFacts(**{**facts, **changes}))


@pytest.mark.parametrize(
    ("changes", "said", "step"),
    [
        (
            {},
            "The server sustains 2 100 arrivals a second for 10.0 s (70 % of the knee, 99 % under 6.00 ms).",
            "Run it below its limit",
        ),
        (
            {"wrong": 0.125, "works": False},
            "(70 % of the knee, 99 % under 6.00 ms): 12.5 % failed or were never sent.",
            "Plan for less than 2 100 transactions a second",
        ),
        (
            {"objectives": (VerifiedObjective("p99 < 5ms", 6e6, False),)},
            "p99 < 5ms failed at 2 100 arrivals a second for 10.0 s (70 % of the knee, 99 % under 6.00 ms).",
            "Plan for less than",
        ),
    ],
)
def test_what_a_load_below_the_knee_showed(changes, said, step):
    result = answer_sweep(verified(**changes))
    assert said in result.answer.replace("\u202f", " ")
    document = build_sweep_document(result)
    assert document.steps[-1].text.startswith(step)
    assert "To check" not in document.steps[-1].text
    (section,) = (one for one in document.sections if one.id == "verified")
    assert section.title == "Below the knee"
    jsonschema.validate(json.loads(json_text(result)), result_schema("sweep-result"))


def test_a_cliff_is_told_with_what_the_server_said():
    answer = RESULTS["breaks"]().answer
    assert "It breaks at 10" in answer and answer.endswith(": sorry, too many clients already.")


def test_where_nothing_works_nothing_is_made_up():
    result = RESULTS["never works"]()
    assert result.answer.startswith(
        "Nothing worked, not even at 1 client. It breaks at 1 client: 987 of 1974"
    )
    assert "failed, the first: permission denied" in result.answer
    assert not any("closed loop" in text for text in result.warnings)
    assert result.knee is None and result.law is None


def test_an_end_that_still_grows_is_no_knee():
    assert RESULTS["does not bend"]().answer.startswith(
        "No knee is proven up to 64 clients, where the server handles "
    )


def evidence(throughput, explored, rounds, **changes):
    """A stored sweep: `explored` levels, then `rounds` rounds of all of them, without noise but a wobble."""
    wanted = spec(**changes)
    places = [(0, level) for level in explored]
    places += [(one, level) for one in range(1, rounds + 1) for level in explored]
    loads = [
        step(number, round_, level, throughput(level) * (1 + 0.004 * math.sin(number)))
        for number, (round_, level) in enumerate(places, 1)
    ]
    manifest = Manifest("s", "s", "?", "complete", "", 1, "", "http://h", "0.1.0")
    return sweep_result(manifest, {"scripts": [{"name": "/a"}], "http": {}}, wanted, loads, {})


def level_rate(result, level):
    (row,) = [one for one in result.levels if one.level == level]
    return f"{rate_text(row.throughput)} requests a second"


def level_figures(result, level):
    """What the table shows of a level, in the words of the answer."""
    (row,) = [one for one in result.levels if one.level == level]
    return f"{level_rate(result, level)}, 99 % under {format_duration(row.p99_ns)}"


def flat_from(clients):
    return lambda load: 40.0 * min(load, clients)


DOUBLED = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


def test_a_service_that_is_flat_from_two_clients_on_is_saturated_there():
    result = evidence(flat_from(2), DOUBLED, 6)
    assert result.answer == (
        f"The service is saturated from 2 clients on, at {level_rate(result, 2)}. "
        f"The knee is between 1 and 4 clients: at 2 clients the service handles {level_figures(result, 2)}; "
        "from 2 clients on it is saturated: more clients only wait "
        f"(at 64 clients it handles {level_figures(result, 64)})."
    )
    assert result.saturation.growth < 0.02


def test_a_service_that_is_flat_from_the_first_level_on_is_saturated_there():
    result = evidence(flat_from(1), DOUBLED, 6)
    assert result.answer == (
        f"The service is saturated from 1 client on, at {level_rate(result, 1)}. "
        "The service is saturated from the lowest level on: "
        f"at 1 client it handles {level_figures(result, 1)}; "
        f"more clients only wait (at 64 clients it handles {level_figures(result, 64)})."
    )


def test_too_few_rounds_do_not_prove_that_there_is_no_knee():
    """The row of the best level stood where the highest level's was promised."""
    result = evidence(flat_from(2), DOUBLED, 3)
    assert result.answer == (
        "The knee is not known yet after only 3 rounds. "
        "The knee is not known yet, because only 3 of at least 5 rounds finished: "
        f"at 2 clients the service handles {level_figures(result, 2)}, "
        f"at 64 clients, the highest level, {level_figures(result, 64)}."
    )
    steps = markdown_text(build_sweep_document(result))
    assert "Give it more time (--budget)" in steps and "Raise the end" not in steps


@pytest.mark.parametrize("rounds", [1, 3, 6])
@pytest.mark.parametrize("clients", [1, 2, 3, 8, 48, 64, 1000])
def test_every_figure_of_the_headline_is_of_the_level_it_names(clients, rounds):
    result = evidence(flat_from(clients), DOUBLED, rounds)
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


def test_no_saturation_is_claimed_where_throughput_still_grows():
    assert evidence(lambda load: 40.0 * load**0.5, DOUBLED, 6).saturation is None
    assert evidence(flat_from(64), DOUBLED, 6).saturation is None


def test_a_load_by_http_is_told_in_its_own_words():
    wanted = spec(axis="streams", end=64.0)
    loads = swept(processors(8), wanted, np.random.default_rng(5), noise=0.01)
    manifest = Manifest("s", "s", "?", "complete", "", 1, "", "http://h", "0.1.0")
    result = sweep_result(manifest, {"scripts": [{"name": "/a"}], "http": {}}, wanted, loads, {})
    assert (
        "streams per connection the service handles" in result.answer and "requests a second" in result.answer
    )
    told = markdown_text(build_sweep_document(result))
    assert "transaction" not in told and "-T" not in told
    assert "one stream alone" in told


def test_the_bottlenecks_past_the_knee_and_at_the_cliff_are_reported_once_each():
    wanted = spec()
    loads = swept(processors(100), wanted, np.random.default_rng(5), noise=0.01, breaks_at=97)
    load = LoadUse(32.0, 2e7)
    locks = Seen(load, MachineUse(2), sessions=DatabaseUse({("Lock", "tuple"): 20.0}, 32.0))
    both = replace(locks, load=replace(load, errors={"53300": 4}))
    manifest = Manifest("s", "s", "?", "complete", "", 1, "", "embedded", "0.1.0")
    pressed = (Pressed(64.0, locks), Pressed(97.0, both, ("the service is not in sight",)))
    result = sweep_result(manifest, {"scripts": [{"name": "x"}]}, wanted, loads, {}, pressed)
    told = [(one.level, one.resource) for one in result.bottlenecks]
    assert told == [(64.0, "locks"), (97.0, "connection limit")]
    assert "The service is not in sight." in result.warnings


def test_objectives_are_told_with_both_sides():
    result = result_of(processors(10), objectives=parse_objectives("p99<25ms, p50<1us"))
    assert "p99 < 25ms holds up to " in result.answer and " and fails at " in result.answer
    assert "p50 < 1us already fails at 1 client, the lowest level" in result.answer


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


def test_a_law_that_does_not_fit_is_not_believed():
    assert any("does not describe this server" in text for text in RESULTS["bends"]().warnings)
    assert not any("does not describe" in text for text in RESULTS["law"]().warnings)


def test_a_busy_generator_is_named():
    wanted = spec()
    loads = swept(processors(4), wanted, np.random.default_rng(5), noise=0.01)
    loads = [replace(step, busiest_thread=0.97) for step in loads]
    manifest = Manifest("s", "s", "?", "complete", "", 1, "", "embedded", "0.1.0")
    result = sweep_result(manifest, {"scripts": [{"name": "x"}]}, wanted, loads, {})
    assert result.warnings[0].startswith("At the knee the generator's busiest thread works 97 % of the time")


@pytest.mark.parametrize("name", RESULTS)
def test_every_writer_takes_every_result(name):
    result = RESULTS[name]()
    jsonschema.validate(json.loads(json_text(result)), result_schema("sweep-result"))
    page = html_page(build_sweep_document(result)).replace("\N{NO-BREAK SPACE}", " ").replace("&lt;", "<")
    assert all(part in page for part in split_answer(result.answer))
    assert "## Results by level" in markdown_text(build_sweep_document(result))
    console = Console(file=io.StringIO(), width=80)
    render_sweep_terminal(result, console)
    assert max(map(len, console.file.getvalue().splitlines())) <= 80
