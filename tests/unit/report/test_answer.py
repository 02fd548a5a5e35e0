"""The answer on an experiment, verdict mix by verdict mix (golden/report/experiment_answers.txt)."""

import pytest

from fakes.goldens import compare_cases
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
SHARE = {"difference": 0.4, "difference_low": 0.3, "difference_high": 0.5}


def answer(found, names=("uuid",), works=("select",), factors=(), floor=None, noise_words="", **changes):
    metric = {name: changes.pop(name) for name in ("metric", "better") if name in changes}
    return answer_experiment(
        bare_result(
            *found,
            variants=(variant("char", True), *map(variant, names)),
            workloads=tuple(workload(name, **metric) for name in works),
            factors=tuple(factors),
            noise=noise(floor, noise_words),
            practical=0.05,
            **changes,
        )
    )


def early(name="uuid", **more):
    return comparison(name, *EARLY, direction="faster", **more)


def cell(rows="100000", index="none"):
    return (("rows", rows), ("index", index))


def pair(first, second, works=("select", "delete")):
    """Return a verdict on each of two workloads."""
    return [comparison("uuid", *first, workload=works[0]), comparison("uuid", *second, workload=works[1])]


NONE, BTREE = cell(index="none"), cell(index="btree")
SIZES = [cell("100"), cell("100000")]
TWO = {"works": ("select", "delete")}
WRITES = {"works": ("select", "insert")}
BY_INDEX = [comparison(cell=NONE), comparison("uuid", *SAME, cell=BTREE)]
REGIONS = [
    *(comparison(cell=NONE, workload=work) for work in TWO["works"]),
    *(comparison("uuid", *SAME, cell=cell("100"), workload=work) for work in TWO["works"]),
    comparison("uuid", *UNSURE, cell=cell("100", "btree")),
    comparison("uuid", *SMALL, cell=BTREE),
]
CASES = [
    ("nothing was measured", [], {}),
    ("faster", [comparison()], {}),
    ("slower", [comparison("uuid", *SLOWER)], {}),
    ("faster by less than matters", [comparison("uuid", *SMALL)], {}),
    ("no difference", [comparison("uuid", *SAME)], {}),
    ("not decided", [comparison("uuid", *UNSURE)], {}),
    ("not decided, though the rounds agree", [comparison("uuid", *UNSURE, rounds=4, agreeing=4)], {}),
    (
        "not decided on both, though the rounds of one agree",
        [
            comparison("uuid", *UNSURE, rounds=4, agreeing=3),
            comparison(
                "uuid",
                Verdict.NOT_ENOUGH_EVIDENCE,
                0.0145,
                None,
                None,
                rounds=3,
                agreeing=3,
                e_value=8.0,
                workload="delete",
            ),
        ],
        TWO,
    ),
    ("only the direction is known", [early()], {}),
    ("refused", [comparison("uuid", Verdict.REFUSED)], {}),
    ("skipped", [comparison("uuid", Verdict.SKIPPED)], {}),
    ("a thousand times as fast", [comparison("uuid", Verdict.FASTER, 0.001, 0.0009, 0.0011)], {}),
    ("no finite interval", [comparison("uuid", Verdict.SLOWER, 6.17, 6.0, None)], {}),
    ("a factor decides", BY_INDEX, {"factors": FACTORS}),
    (
        "a factor decides on two workloads",
        [
            *BY_INDEX,
            comparison(cell=NONE, workload="delete"),
            comparison("uuid", *SAME, cell=BTREE, workload="delete"),
        ],
        {"factors": FACTORS, **TWO},
    ),
    (
        "directions without a verdict",
        [*(early(cell=size) for size in SIZES), *(comparison("bytea", *UNSURE, cell=size) for size in SIZES)],
        {"names": ("uuid", "bytea"), "factors": FACTORS},
    ),
    ("a direction beside a verdict", [comparison(cell=NONE), early(cell=SIZES[0])], {"factors": FACTORS}),
    ("many cells are summed up by region", REGIONS, {"factors": FACTORS, **TWO}),
    (
        "the best variant leads and its rival is not hidden",
        [
            comparison("bytea", Verdict.FASTER, 0.6, 0.55, 0.65),
            comparison("uuid"),
            comparison("varchar", *SAME),
        ],
        {"names": ("varchar", "bytea", "uuid")},
    ),
    ("the best variant also loses", [comparison(), comparison("uuid", *SLOWER, workload="insert")], WRITES),
    ("nothing is faster", pair(SLOWER, SAME, ("insert", "select")), WRITES),
    ("no difference on both", pair(SAME, SAME), TWO),
    ("not decided on both", pair(UNSURE, UNSURE), TWO),
    ("no difference on one, not decided on the other", pair(SAME, UNSURE), TWO),
    (
        "a refusal comes first and the rest is still answered",
        [comparison(), comparison("bytea", Verdict.REFUSED, reason="returned 3 rows, char 4")],
        {"names": ("bytea", "uuid")},
    ),
    (
        "several refusals share a sentence",
        [comparison(name, Verdict.REFUSED) for name in ("uuid", "bytea")],
        {"names": ("uuid", "bytea")},
    ),
    (
        "a skipped variant says why",
        [comparison(), comparison("bytea", Verdict.SKIPPED, reason="no space")],
        {"names": ("bytea", "uuid")},
    ),
    (
        "variants with one comparison are not counted",
        [comparison("uuid", *SLOWER), comparison("text", *SMALL)],
        {"names": ("uuid", "text")},
    ),
    (
        "throughput",
        [comparison("uuid", Verdict.FASTER, 1.25, 1.2, 1.3)],
        {"metric": "throughput", "better": "higher"},
    ),
    ("a quantile", [comparison()], {"metric": "latency_p99"}),
    (
        "a difference under the noise floor",
        [comparison("uuid", *SMALL)],
        {"floor": 0.03, "noise_words": "char differs from itself by 3 %."},
    ),
    ("another confidence", [comparison()], {"confidence": 0.99}),
    (
        "shares and times together",
        [comparison("uuid", Verdict.FASTER, None, None, None, workload="find", **SHARE), comparison()],
        {"works": ("find", "select")},
    ),
]


def test_answers_and_their_reasons():
    answered = [(name, answer(found, **options)) for name, found, options in CASES]
    compare_cases(
        "report/experiment_answers", [(name, one.answer, "\n".join(one.reasons)) for name, one in answered]
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the baseline against itself stays within ±1 %", "The baseline against itself stays within ±1 %."),
        ("char differs from itself by 3 %.", "char differs from itself by 3 %."),
    ],
)
def test_a_statement_becomes_a_sentence_and_a_name_stays(text, expected):
    assert sentence(text) == expected


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


def test_an_effect_has_the_form_of_its_interval():
    assert effect_with_interval(0.54, 0.52, 0.56) == "−46 % [−48, −44]"
    assert effect_with_interval(0.07, 0.04, 0.22) == "−93 % [−96, −78]"
    assert effect_with_interval(1 / 890, 1 / 920, 1 / 850) == "÷890 [÷920, ÷850]"
    assert effect_with_interval(6.2, 5.8, 6.7) == "×6.2 [×5.8, ×6.7]"
    assert effect_with_interval(6.2, 1.4, 6.7) == "×6.2 [×1.4, ×6.7]"
    assert effect_with_interval(0.002, None, 0.3) == "−99.8 % [−100, −70]"
    assert effect_with_interval(6.2, 0.9, 6.7) == "+520 % [−10, +570]"
    assert effect_with_interval(0.07, None, None) == "÷14 [no bounds yet]"
