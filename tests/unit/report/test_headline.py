"""Headlines: every answer begins with a sentence that is read at a glance."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fakes.answered import sweep_result
from fakes.database_results import database_result
from fakes.guards import (
    LATE,
    QUERIES,
    answered,
    check,
    everything,
    exact_check,
    guard,
    plan_check,
    share_check,
)
from fakes.http_results import http_result
from fakes.load_results import closed_result, open_result, refused_result
from fakes.log_results import log_result
from fakes.results import bare_result, comparison, large_result, small_result, variant, workload
from fakes.sweeps import law, processors, spec, swept
from uncork.model.results.experiment import FactorFacts
from uncork.model.results.guard import GateOutcome
from uncork.model.sweep import parse_objectives
from uncork.model.verdict import Verdict
from uncork.report.experiment.answer import answer_experiment
from uncork.report.headline import (
    MOST_NUMBERS,
    MOST_WORDS,
    fitting,
    headline_template,
    join_sentences,
    numbers_in,
    split_answer,
    uncapital,
    words_in,
)
from uncork.report.log.answer import answer_log
from uncork.store.layout import Manifest

GOLDENS = sorted((Path(__file__).parents[2] / "golden").glob("*/*.md"))
FACTORS = (FactorFacts("rows", ("100", "100000"), True), FactorFacts("index", ("none", "btree"), False))


def sweep(throughput, **changes):
    wanted = spec(**changes)
    loads = swept(throughput, wanted, np.random.default_rng(5), noise=0.01)
    manifest = Manifest("s", "s", "?", "complete", "", 1, "", "embedded", "0.1.0")
    return sweep_result(manifest, {"scripts": [{"name": "x"}]}, wanted, loads, {}).answer


def experiment(*comparisons, names=("uuid",), works=("select", "delete")):
    variants = (variant("char", True), *(variant(name) for name in names))
    workloads = tuple(workload(name) for name in works)
    facts = {"variants": variants, "workloads": workloads, "factors": FACTORS, "practical": 0.05}
    return answer_experiment(bare_result(*comparisons, **facts)).answer


def cell(rows, index):
    return (("rows", rows), ("index", index))


def many(verdict, *effect):
    cells = [cell(rows, index) for rows in ("100", "100000") for index in ("none", "btree")]
    return [comparison("uuid", verdict, *effect, cell=at, workload="select") for at in cells]


ANSWERS = {
    "small": lambda: small_result().answer,
    "large": lambda: large_result().answer,
    "one win": lambda: experiment(comparison(), works=("select",)),
    "wins in places": lambda: experiment(
        *many(Verdict.FASTER, 0.54, 0.52, 0.56)[:3], *many(Verdict.NOT_ENOUGH_EVIDENCE, 0.96, 0.85, 1.09)[3:]
    ),
    "losses": lambda: experiment(*many(Verdict.SLOWER, 1.12, 1.09, 1.15)),
    "same": lambda: experiment(*many(Verdict.NO_PRACTICAL_DIFFERENCE, 0.99, 0.97, 1.02)),
    "open": lambda: experiment(*many(Verdict.NOT_ENOUGH_EVIDENCE, 0.96, 0.85, 1.09)),
    "refused": lambda: experiment(
        *many(Verdict.REFUSED), comparison("bytea", Verdict.REFUSED), names=("uuid", "bytea")
    ),
    "closed load": lambda: closed_result().answer,
    "open load": lambda: open_result().answer,
    "refused load": lambda: refused_result().answer,
    "http load": lambda: http_result().answer,
    "knee": lambda: sweep(processors(4)),
    "law": lambda: sweep(law),
    "no knee": lambda: sweep(lambda load: 1000.0 * load, end=64.0),
    "objective": lambda: sweep(processors(10), objectives=parse_objectives("p99<25ms")),
    "objectives": lambda: sweep(processors(10), objectives=parse_objectives("p99<25ms, errors<0.1%")),
    "failed objective": lambda: sweep(processors(10), objectives=parse_objectives("p99<25ms, p50<1us")),
    "database": lambda: database_result().answer,
    "database without templates": lambda: database_result(templates=()).answer,
    "log": lambda: answer_log(log_result()).answer,
    "broken": lambda: guard(check()).answer,
    "all gates": lambda: answered(everything()).answer,
    "plan": lambda: guard(plan_check()).answer,
    "value": lambda: guard(check(gate=LATE, candidate=2.25e7, ratio=None, low=2.2e7, high=2.3e7)).answer,
    "shares": lambda: guard(share_check(GateOutcome.BROKEN, -0.02)).answer,
    "count": lambda: guard(exact_check(GateOutcome.BROKEN, 3, 4, gate=QUERIES)).answer,
    "kept": lambda: guard(check(GateOutcome.KEPT), check(GateOutcome.KEPT, workload="search")).answer,
}


def assert_brief(answer):
    headline = split_answer(answer)[0]
    assert words_in(headline) <= MOST_WORDS == 20, headline
    assert numbers_in(headline) <= MOST_NUMBERS == 3, headline
    assert headline.endswith("."), headline


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_begins_with_a_brief_sentence(name):
    assert_brief(ANSWERS[name]())


@pytest.mark.parametrize("path", GOLDENS, ids=lambda path: path.stem)
def test_every_golden_report_begins_with_a_brief_sentence(path):
    (headline,) = re.findall(r"^\*\*(.+?)\*\*", path.read_text(encoding="utf-8"), re.MULTILINE)[:1]
    assert split_answer(headline.replace("\\", ""))[1] == ""
    assert_brief(headline.replace("\\", "").replace("&lt;", "<"))


@pytest.mark.parametrize(
    ("text", "numbers", "words"),
    [
        ("uuid is 46 % faster than char (95 % interval: 44 % to 48 %).", 3, 10),
        ('"select 1 from t where a = 2" took 26 min 07 s.', 1, 9),
        ("The server handled 3 114 requests a second with p99 2.54 ms.", 2, 10),
        ("Slower than load-x-20261123-111925 since 2026-05-31 08:30.", 1, 5),
        ("p99 < 20ms holds with work_mem = 4MB at commit 1a2b3c4.", 2, 9),
    ],
)
def test_numbers_and_words_are_counted_as_read(text, numbers, words):
    assert (numbers_in(text), words_in(text)) == (numbers, words)


def test_what_does_not_fit_moves_to_the_second_sentence():
    long = "one two three 1 2 3 4"
    assert fitting([(long, ""), ("one two three", "1 2 3 4")]) == "one two three. 1 2 3 4."
    assert fitting([(long, "")]) == f"{long}."


def test_a_full_stop_in_quotation_marks_ends_no_sentence():
    assert split_answer('"a. b" takes 3.5 %. Then c.') == ('"a. b" takes 3.5 %.', "Then c.")
    assert split_answer("One sentence.") == ("One sentence.", "")


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("select 1", '"select 1"'),
        ('update "t" set a = ?', '"update t set a = ?"'),
        (
            "update orders set status = ?, updated_at = now() where id = ? and status = ?",
            '"update orders set status = ?, updated_at = now() where id …"',
        ),
        ("select a, b, c, d, e, f from orders join items using (id) where x = ?", None),
    ],
)
def test_a_headline_quotes_the_beginning_of_a_template(template, shown):
    found = headline_template(template)
    assert words_in(found) <= 8
    assert found == shown if shown else found.startswith('"select a, … from orders')


def test_a_log_without_durations_says_so_first():
    silent = log_result()
    silent = replace(silent, executions=replace(silent.executions, count=0), pool=None)
    assert answer_log(silent).answer.startswith("The log has no durations")


def test_a_question_gets_no_full_stop():
    assert join_sentences(("It is down", "", "Is a server running there?", "Look.")) == (
        "It is down. Is a server running there? Look."
    )


def test_a_title_within_a_title_keeps_its_acronym():
    assert [uncapital(text) for text in ("CPU", "CPU by route", "PostgreSQL settings", "p99 grows")] == [
        *("CPU", "CPU by route", "PostgreSQL settings", "p99 grows"),
    ]
    assert uncapital("System calls") == "system calls" and uncapital("A load") == "a load"
