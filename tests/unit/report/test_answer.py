"""The answer, verdict mix by verdict mix."""

import pytest

from fakes.results import bare_result, comparison, noise, variant, workload
from uncork.model.results.experiment import FactorFacts
from uncork.model.verdict import Verdict
from uncork.report.experiment.answer import answer_experiment, claim_words, interval_words
from uncork.report.words import effect_with_interval, interval_text, sentence

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
        ([comparison()], "uuid is 46 % faster than char (mean time; 95 % interval: 44 % to 48 %)."),
        (
            [comparison("uuid", *SLOWER)],
            "uuid is 12 % slower than char (mean time; 95 % interval: 9.0 % to 15 %).",
        ),
        (
            [comparison("uuid", *SMALL)],
            "uuid is 2.0 % faster than char (mean time; 95 % interval: 1.0 % to 3.0 %). "
            "This is less than the 5 % that matters.",
        ),
        (
            [comparison("uuid", *SAME)],
            "There is no practical difference between uuid and char. uuid is 1.0 % faster (mean time; 95 % "
            "interval: 3.0 % faster to 2.0 % slower), and differences under 5 % do not matter.",
        ),
        (
            [comparison("uuid", *UNSURE)],
            "There is not enough evidence to say whether uuid is faster or slower than char. "
            "So far it is 4.0 % faster (mean time; 95 % interval: 15 % faster to 9.0 % slower).",
        ),
        (
            [comparison("uuid", *EARLY, direction="faster")],
            "uuid is 41 % faster than char so far (mean time; 95 % interval: 34 % to 48 %). "
            "The size is not settled after 10 rounds.",
        ),
        (
            [comparison("uuid", Verdict.REFUSED)],
            "uuid is refused: its answer differs from char's. Nothing else was measured.",
        ),
        ([comparison("uuid", Verdict.SKIPPED)], "Nothing was measured, so there is no answer."),
        (
            [comparison("uuid", Verdict.FASTER, 0.001, 0.0009, 0.0011)],
            "uuid is 1 000 times as fast as char (mean time; 95 % interval: 909 to 1 111 times).",
        ),
        (
            [comparison("uuid", Verdict.SLOWER, 6.17, 6.0, None)],
            "uuid takes 6.17 times as long as char (mean time; no finite 95 % interval yet).",
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
        "uuid is 46 % faster than char where index is none (mean time; 95 % interval: 44 % to 48 %). "
        "Where index is btree, there is no practical difference."
    )
    found += [
        comparison(cell=none, workload="delete"),
        comparison("uuid", *SAME, cell=btree, workload="delete"),
    ]
    sentence, reasons = answer(*found, works=("select", "delete"), factors=FACTORS)
    assert sentence.startswith(
        "uuid is up to 46 % faster than char where index is none (95 % interval: 44 % to 48 %). "
    )
    decides = (
        "The deciding factor is index: uuid is faster by 5 % or more in 2 of 2 comparisons at none and 0 of "
        "2 at btree."
    )
    assert decides in reasons


def test_a_known_direction_leads_where_there_is_no_verdict_yet():
    found = [comparison("uuid", *EARLY, cell=cell(rows), direction="faster") for rows in ("100", "100000")]
    found += [comparison("bytea", *UNSURE, cell=cell(rows)) for rows in ("100", "100000")]
    text, reasons = answer(*found, names=("uuid", "bytea"), factors=FACTORS)
    assert text == (
        "uuid is up to 41 % faster than char so far (95 % interval: 34 % to 48 %). This holds in 2 of 2 "
        "comparisons. The largest effect is mean time at rows 100, index none. The size is not settled after "
        "10 rounds. None of 4 comparisons is "
        "decided, the direction is known in 2 and 2 are open."
    )
    assert reasons[0].startswith("uuid in 2 comparisons: faster so far in 2.")
    assert "The direction is known but not the size in 2 comparisons; more rounds will settle it." in reasons


def test_a_known_direction_is_told_beside_verdicts():
    found = [comparison(cell=cell("100000"))]
    found += [comparison("uuid", *EARLY, cell=cell("100"), direction="faster")]
    text, _ = answer(*found, factors=FACTORS)
    assert text == (
        "uuid is 46 % faster than char where rows is 100 000. The effect: mean time; 95 % interval: 44 % to "
        "48 %. Where rows is 100, there is a gain of unsettled size. 1 of 2 comparisons is decided and the "
        "direction is known in 1 more."
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
        "uuid is up to 46 % faster than char where index is none and rows is 100 000. The largest effect: "
        "mean time on select; 95 % interval: 44 % to 48 %. Elsewhere there is a gain under 5 % in 1 "
        "comparison, no practical difference in 2 and not enough evidence in 1. 5 of 6 comparisons are "
        "decided and 1 is open."
    )
    assert reasons[0].startswith(
        "uuid in 6 comparisons: faster in 3 (1 of them by less than 5 %), no practical difference in 2, "
        "not enough evidence in 1. Best: −46 % [−48, −44] on select at rows 100 000, index none; worst: −1."
    )


def test_the_best_variant_leads_and_rivals_are_not_hidden():
    sentence, reasons = answer(
        comparison("bytea", Verdict.FASTER, 0.6, 0.55, 0.65),
        comparison("uuid"),
        comparison("varchar", *SAME),
        names=("varchar", "bytea", "uuid"),
    )
    assert sentence.startswith("uuid is 46 % faster than char (mean time;")
    assert any("intervals of uuid and bytea overlap" in reason for reason in reasons)


def test_losses_of_the_best_variant_are_told():
    sentence, _ = answer(
        comparison(workload="select"),
        comparison("uuid", *SLOWER, workload="insert"),
        works=("select", "insert"),
    )
    assert sentence.endswith(
        "But it is 12 % slower in 1 of 2 comparisons (mean time on insert; 95 % interval: 9.0 % to 15 %)."
    )


def test_nothing_faster():
    sentence, _ = answer(
        comparison("uuid", *SLOWER, workload="insert"),
        comparison("uuid", *SAME, workload="select"),
        works=("select", "insert"),
    )
    assert sentence.startswith(
        "Nothing is faster than char. uuid is 12 % slower in 1 of 2 comparisons on insert ("
    )
    assert sentence.endswith("In the other one there is no practical difference.")


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ((SAME, SAME), "There is no practical difference between char and uuid in any of 2 comparisons"),
        ((UNSURE, UNSURE), "There is not enough evidence yet in any of 2 comparisons"),
        ((SAME, UNSURE), "No difference between char and uuid has been shown. There is no practical"),
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
    assert sentence.startswith("bytea is refused: its answer differs from char's. uuid is 46 % faster")
    assert "1 comparison refused (bytea: returned 3 rows, char 4)." in reasons


def test_skipped_comparisons_say_why():
    _, reasons = answer(
        comparison(), comparison("bytea", Verdict.SKIPPED, reason="no space"), names=("bytea", "uuid")
    )
    assert "1 comparison skipped (bytea: no space)." in reasons


def test_throughput_and_quantiles_have_their_own_words():
    faster = comparison("uuid", Verdict.FASTER, 1.25, 1.2, 1.3)
    assert (
        answer(faster, metric="throughput", better="higher")[0]
        == "uuid is 25 % faster than char (throughput; 95 % interval: 20 % to 30 %)."
    )
    assert "46 % faster than char (p99 latency;" in answer(comparison(), metric="latency_p99")[0]


def test_differences_under_the_noise_floor_are_called_out():
    _, reasons = answer(comparison("uuid", *SMALL), floor=0.03, sentence="char differs from itself by 3 %.")
    assert "char differs from itself by 3 %." in reasons
    assert "Caution: 1 difference reported as faster or slower is smaller than this noise floor." in reasons


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
        (2.9, 3.4, "[×2.9, ×3.4]"),
        (1.9, 3.6, "[+90, +260]"),
    ],
)
def test_both_ends_of_an_interval_are_shown_alike(low, high, shown):
    assert interval_text(low, high) == shown


def test_a_variant_with_one_comparison_is_summed_up_without_counting():
    _, reasons = answer(comparison("uuid", *SLOWER), comparison("text", *SMALL), names=("uuid", "text"))
    assert not any("in 1 comparison:" in text for text in reasons)
    assert any(text.startswith("uuid: slower, +12 % [") for text in reasons)


@pytest.mark.parametrize(
    ("effect", "metric", "words", "interval"),
    [
        ((0.54, 0.52, 0.56), "latency_mean", ("is 46 % faster", "than"), "44 % to 48 %"),
        ((1.12, 1.09, 1.15), "latency_p99", ("is 12 % slower", "than"), "9.0 % to 15 %"),
        ((1.25, 1.2, 1.3), "throughput", ("is 25 % faster", "than"), "20 % to 30 %"),
        ((0.8, 0.7, 1.1), "throughput", ("is 20 % slower", "than"), "30 % slower to 10 % faster"),
        ((6.2, 6.0, 6.4), "latency_mean", ("takes 6.2 times as long", "as"), "6 to 6.4 times"),
        ((6.2, 6.0, 6.4), "throughput", ("is 6.2 times as fast", "as"), "6 to 6.4 times"),
        ((0.01, 0.008, 0.0125), "latency_mean", ("is 100 times as fast", "as"), "80 to 125 times"),
        ((0.01, 0.008, 0.0125), "throughput", ("is only 1/100 as fast", "as"), "1/125 to 1/80"),
        ((2.5, 1.9, 3.6), "latency_mean", ("is 150 % slower", "than"), "90 % to 260 %"),
        ((1.0, 0.97, 1.0), "latency_mean", ("is as fast to within 0.1 %", "as"), "3.0 % faster to 0 %"),
    ],
)
def test_an_effect_is_said_by_its_size_and_direction(effect, metric, words, interval):
    found = comparison("uuid", Verdict.FASTER, *effect)
    assert claim_words(found, metric) == words
    assert interval_words(found, metric, 0.95) == f"95 % interval: {interval}"


def test_the_answer_states_the_confidence_of_its_intervals():
    variants = (variant("char", True), variant("uuid"))
    found = bare_result(comparison(), variants=variants, workloads=(workload("select"),), confidence=0.99)
    assert answer_experiment(found).answer.endswith("(mean time; 99 % interval: 44 % to 48 %).")


def test_several_refused_variants_share_one_sentence():
    found = [comparison(name, Verdict.REFUSED) for name in ("uuid", "bytea")]
    text, _ = answer(*found, names=("uuid", "bytea"))
    assert text.startswith("uuid is refused; bytea is refused: their answers differ from char's.")


def test_shares_and_times_together_do_better():
    share = {"difference": 0.4, "difference_low": 0.3, "difference_high": 0.5}
    text, _ = answer(
        comparison("uuid", Verdict.FASTER, None, None, None, workload="find", **share),
        comparison(workload="select"),
        works=("find", "select"),
    )
    assert text.startswith(
        "uuid does better than char: it is up to 46 % faster (95 % interval: 44 % to 48 %). This holds in "
    )


def test_an_effect_has_the_form_of_its_interval():
    assert effect_with_interval(0.54, 0.52, 0.56) == "−46 % [−48, −44]"
    assert effect_with_interval(0.07, 0.04, 0.22) == "−93 % [−96, −78]"
    assert effect_with_interval(1 / 890, 1 / 920, 1 / 850) == "÷890 [÷920, ÷850]"
    assert effect_with_interval(6.2, 5.8, 6.7) == "×6.2 [×5.8, ×6.7]"
    assert effect_with_interval(6.2, 1.4, 6.7) == "×6.2 [×1.4, ×6.7]"
    assert effect_with_interval(0.002, None, 0.3) == "−99.8 % [−100, −70]"
    assert effect_with_interval(6.2, 0.9, 6.7) == "+520 % [−10, +570]"
    assert effect_with_interval(0.07, None, None) == "÷14 [no bounds yet]"
