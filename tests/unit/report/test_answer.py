"""The answer, verdict mix by verdict mix."""

import pytest

from fakes.results import bare_result, comparison, noise, variant, workload
from uncork.model.results.experiment import FactorFacts
from uncork.model.verdict import Verdict
from uncork.report.experiment.answer import answer_experiment
from uncork.report.words import interval_text, sentence

SAME = (Verdict.NO_PRACTICAL_DIFFERENCE, 0.99, 0.97, 1.02)
UNSURE = (Verdict.NOT_ENOUGH_EVIDENCE, 0.96, 0.85, 1.09)
EARLY = (Verdict.NOT_ENOUGH_EVIDENCE, 0.59, 0.52, 0.66)
SLOWER = (Verdict.SLOWER, 1.12, 1.09, 1.15)
SMALL = (Verdict.FASTER, 0.98, 0.97, 0.99)
FACTORS = (FactorFacts("rows", ("100", "100000"), True), FactorFacts("index", ("none", "btree"), False))


def answer(*comparisons, names=("uuid",), works=("select",), factors=(), floor=None, sentence="", **how):
    variants = [variant("char", True), *(variant(name) for name in names)]
    workloads = [workload(name, **how) for name in works]
    found = answer_experiment(
        bare_result(
            *comparisons,
            variants=tuple(variants),
            factors=tuple(factors),
            workloads=tuple(workloads),
            noise=noise(floor, sentence),
            practical=0.05,
        )
    )
    return found.answer, found.reasons


def cell(rows="100000", index="none"):
    return (("rows", rows), ("index", index))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([], "Nothing was measured, so there is no answer."),
        ([comparison()], "uuid is faster than char: 46 % less time (interval 44 to 48 %)."),
        ([comparison("uuid", *SLOWER)], "uuid is slower than char: 12 % more time (interval 9.0 to 15 %)."),
        (
            [comparison("uuid", *SMALL)],
            "uuid is faster than char: 2.0 % less time (interval 1.0 to 3.0 %), "
            "less than the 5 % that matters.",
        ),
        (
            [comparison("uuid", *SAME)],
            "There is no practical difference between uuid and char: 1.0 % less time "
            "(interval 3.0 % less to 2.0 % more); differences under 5 % do not count.",
        ),
        (
            [comparison("uuid", *UNSURE)],
            "There is not enough evidence to say whether uuid is faster or slower than char: "
            "so far 4.0 % less time (interval 15 % less to 9.0 % more).",
        ),
        (
            [comparison("uuid", *EARLY, direction="faster")],
            "uuid is faster than char so far: 41 % less time (interval 34 to 48 %); "
            "the size is not settled after 10 rounds.",
        ),
        (
            [comparison("uuid", Verdict.REFUSED)],
            "uuid is refused: the answer differs from char's. Nothing else was measured.",
        ),
        ([comparison("uuid", Verdict.SKIPPED)], "Nothing was measured, so there is no answer."),
        (
            [comparison("uuid", Verdict.FASTER, 0.001, 0.0009, 0.0011)],
            "uuid is faster than char: 1/1 000 of the time (interval ÷1 111 to ÷909).",
        ),
        (
            [comparison("uuid", Verdict.SLOWER, 6.17, 6.0, None)],
            "uuid is slower than char: 6.17 times the time (no finite interval yet).",
        ),
    ],
)
def test_one_comparison(found, expected):
    assert answer(*found)[0] == expected


def test_a_factor_that_decides_is_named():
    none, btree = cell(index="none"), cell(index="btree")
    found = [comparison(cell=none), comparison("uuid", *SAME, cell=btree)]
    sentence, _ = answer(*found, factors=FACTORS)
    assert sentence == (
        "Where index is none, uuid is faster than char: 46 % less time (interval 44 to 48 %); "
        "where index is btree, there is no practical difference."
    )
    found += [
        comparison(cell=none, workload="delete"),
        comparison("uuid", *SAME, cell=btree, workload="delete"),
    ]
    sentence, reasons = answer(*found, works=("select", "delete"), factors=FACTORS)
    assert sentence.startswith("Where index is none, uuid is faster than char: up to 46 % less time")
    decides = "What decides is index: uuid is faster by 5 % or more in 2 of 2 at none and 0 of 2 at btree."
    assert decides in reasons


def test_a_known_direction_leads_where_there_is_no_verdict_yet():
    found = [comparison("uuid", *EARLY, cell=cell(rows), direction="faster") for rows in ("100", "100000")]
    found += [comparison("bytea", *UNSURE, cell=cell(rows)) for rows in ("100", "100000")]
    text, reasons = answer(*found, names=("uuid", "bytea"), factors=FACTORS)
    assert text == (
        "uuid is faster than char so far in 2 of 2 comparisons: up to 41 % less time (interval 34 to 48 %, "
        "at rows 100, index none); the size is not settled after 10 rounds. None of 4 comparisons are "
        "decided, the direction is known in 2 and 2 are open."
    )
    assert reasons[0].startswith("uuid in 2 comparisons: faster so far in 2.")
    assert "The direction is known but not the size in 2 comparisons: more rounds settle it." in reasons


def test_a_known_direction_is_told_beside_verdicts():
    found = [comparison(cell=cell("100000"))]
    found += [comparison("uuid", *EARLY, cell=cell("100"), direction="faster")]
    text, _ = answer(*found, factors=FACTORS)
    assert text == (
        "Where rows is 100 000, uuid is faster than char: 46 % less time (interval 44 to 48 %); where rows "
        "is 100, there is a gain of unsettled size. 1 of 2 comparisons is decided and the direction is known "
        "in 1 more."
    )


def test_many_cells_are_summed_up_by_region_and_counts():
    found = [comparison(cell=cell("100000", "none"), workload=work) for work in ("select", "delete")]
    found += [
        comparison("uuid", *SAME, cell=cell("100", "none"), workload=work) for work in ("select", "delete")
    ]
    found += [comparison("uuid", *UNSURE, cell=cell("100", "btree"), workload="select")]
    found += [comparison("uuid", *SMALL, cell=cell("100000", "btree"), workload="select")]
    sentence, reasons = answer(*found, works=("select", "delete"), factors=FACTORS)
    assert sentence == (
        "Where index is none and rows is 100 000, uuid is faster than char: up to 46 % less time "
        "(interval 44 to 48 %, on select); elsewhere there is a gain under 5 % in 1, no practical difference "
        "in 2 and not enough evidence in 1. 5 of 6 comparisons are decided and 1 is open."
    )
    assert reasons[0].startswith(
        "uuid in 6 comparisons: faster in 3 (1 of them by less than 5 %), no practical difference in 2, "
        "not enough evidence in 1. Best −46 % [−48, −44] on select at rows 100 000, index none; worst −1.0 %"
    )


def test_the_best_variant_leads_and_rivals_are_not_hidden():
    sentence, reasons = answer(
        comparison("bytea", Verdict.FASTER, 0.6, 0.55, 0.65),
        comparison("uuid"),
        comparison("varchar", *SAME),
        names=("varchar", "bytea", "uuid"),
    )
    assert sentence.startswith("uuid is faster than char: 46 % less time")
    assert any("intervals of uuid and bytea overlap" in reason for reason in reasons)


def test_losses_of_the_best_variant_are_told():
    sentence, _ = answer(
        comparison(workload="select"),
        comparison("uuid", *SLOWER, workload="insert"),
        works=("select", "insert"),
    )
    assert "but it is slower in 1 of 2: 12 % more time" in sentence.replace("up to ", "")


def test_nothing_faster():
    sentence, _ = answer(
        comparison("uuid", *SLOWER, workload="insert"),
        comparison("uuid", *SAME, workload="select"),
        works=("select", "insert"),
    )
    assert sentence.startswith("Nothing is faster than char: uuid is slower on insert in 1 of 2 comparisons")
    assert sentence.endswith("in the other one there is no practical difference.")


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ((SAME, SAME), "There is no practical difference between char and uuid in any of 2 comparisons"),
        ((UNSURE, UNSURE), "There is not enough evidence yet in any of 2 comparisons"),
        ((SAME, UNSURE), "Neither faster nor slower than char has been shown for uuid"),
    ],
)
def test_no_clear_verdict(verdicts, expected):
    found = [comparison("uuid", *v, workload=w) for v, w in zip(verdicts, ("select", "delete"), strict=True)]
    assert answer(*found, works=("select", "delete"))[0].startswith(expected)


def test_a_refusal_comes_first_and_the_rest_is_still_answered():
    sentence, reasons = answer(
        comparison(),
        comparison("bytea", Verdict.REFUSED, reason="returned 3 rows, char 4"),
        names=("bytea", "uuid"),
    )
    assert sentence.startswith("bytea is refused: the answer differs from char's. uuid is faster than char")
    assert "1 comparison refused (bytea: returned 3 rows, char 4)." in reasons


def test_skipped_comparisons_say_why():
    _, reasons = answer(
        comparison(), comparison("bytea", Verdict.SKIPPED, reason="no space"), names=("bytea", "uuid")
    )
    assert "1 comparison skipped (bytea: no space)." in reasons


def test_throughput_and_quantiles_have_their_own_words():
    faster = comparison("uuid", Verdict.FASTER, 1.25, 1.2, 1.3)
    assert (
        "25 % more operations a second (interval 20 to 30 %)"
        in answer(faster, metric="throughput", better="higher")[0]
    )
    assert "46 % lower p99 latency" in answer(comparison(), metric="latency_p99")[0]


def test_differences_under_the_noise_floor_are_called_out():
    _, reasons = answer(comparison("uuid", *SMALL), floor=0.03, sentence="char differs from itself by 3 %.")
    assert "char differs from itself by 3 %." in reasons
    assert "Beware: 1 difference called faster or slower is smaller than that noise floor." in reasons


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("the baseline against itself stays within ±1 %", "The baseline against itself stays within ±1 %."),
        ("char differs from itself by 3 %.", "char differs from itself by 3 %."),
    ],
)
def test_a_statement_becomes_a_sentence_and_a_name_stays(text, told):
    assert sentence(text) == told


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (0.099, 0.15, "[−90, −85]"),
        (0.05, 0.08, "[÷20, ÷12]"),
        (0.05, None, "[÷20, ∞]"),
        (0.04, 1.2, "[−96, +20]"),
    ],
)
def test_both_ends_of_an_interval_are_shown_alike(low, high, shown):
    assert interval_text(low, high) == shown


def test_a_variant_with_one_comparison_is_summed_up_without_counting():
    _, reasons = answer(comparison("uuid", *SLOWER), comparison("text", *SMALL), names=("uuid", "text"))
    assert not any("in 1 comparison:" in text for text in reasons)
    assert any(text.startswith("uuid: slower. ") for text in reasons)
