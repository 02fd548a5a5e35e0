import re

import pytest

from uncork.errors import SpecError
from uncork.experiment.plan.order import (
    arms,
    cells,
    least_ns,
    plan_document,
    plan_round,
    plan_warnings,
    texts_for,
)
from uncork.experiment.spec.schema import parse_spec
from uncork.model.trial import Arm, Cell

TEXT = """\
[experiment]
name = "plan"
question = "In which order?"
seed = 7

[variants.other]
values = { type = "uuid", made = "made(:rows, :key)" }
[variants.base]
baseline = true
values = { type = "text", made = "made(:rows)" }

[factors]
rows = [10, 20]
[factors.index]
none = ""
key = "CREATE INDEX"

[setup]
sql = "SELECT :rows, :type, :made, :index"

[workloads.read]
sql = "SELECT 1, :key"
duration = "100ms"
state = "keep"
parameters.key = { generator = { kind = "uniform", max = 9 } }
[workloads.write]
sql = "INSERT"
operations = 10
[workloads.scan]
sql = "SELECT 2"
duration = "2s"

[stop]
blocks = 3
minimum_rounds = 6
maximum_rounds = 9
budget = "2min"
"""
SPEC = parse_spec(TEXT, file="plan.toml", read=str, overrides={})
EVERYTHING = {(cell, workload) for cell in cells(SPEC) for workload in SPEC.workloads}
CELL = Cell((("rows", "20"), ("index", "none")))


def blocks(visits):
    return [block for visit in visits for block in visit.blocks]


def order(visits, pairs):
    found = [(trial.comparison_key, trial.block, trial.arm) for block in blocks(visits) for trial in block]
    return [entry for entry in found if entry[0] in pairs]


def test_cells_are_all_combinations_in_the_order_of_the_file():
    assert [cell.name for cell in cells(SPEC)] == [
        "rows=10,index=none",
        "rows=10,index=key",
        "rows=20,index=none",
        "rows=20,index=key",
    ]


def test_without_factors_there_is_one_cell():
    assert cells(SPEC.model_copy(update={"factors": {}})) == (Cell(),)


def test_a_block_holds_the_baseline_twice():
    assert [arm.name for arm in arms(SPEC)] == ["base", "base#2", "other"]


def test_a_value_takes_the_level_of_a_factor_and_leaves_parameters():
    assert texts_for(SPEC, CELL, "other") == {
        "rows": "20",
        "index": "",
        "type": "uuid",
        "made": "made(20, :key)",
    }


def test_a_round_visits_every_cell_once_with_all_its_blocks():
    visits = plan_round(SPEC, 1, active=EVERYTHING)
    assert sorted(visit.cell for visit in visits) == sorted(cells(SPEC))
    assert all(trial.cell == visit.cell for visit in visits for block in visit.blocks for trial in block)
    found = sorted((block[0].comparison_key, block[0].block) for block in blocks(visits))
    assert found == sorted((pair, number) for pair in EVERYTHING for number in (1, 2, 3))


def test_a_block_is_of_one_workload_with_its_positions_counted():
    for block in blocks(plan_round(SPEC, 2, active=EVERYTHING)):
        assert len({(trial.workload, trial.block, trial.round) for trial in block}) == 1
        assert [trial.position for trial in block] == [0, 1, 2]


def test_what_is_not_active_is_not_planned():
    visits = plan_round(SPEC, 1, active={(CELL, "write")})
    assert [visit.cell for visit in visits] == [CELL]
    assert {trial.workload for block in blocks(visits) for trial in block} == {"write"}
    assert plan_round(SPEC, 1, active=set()) == []


def test_refused_variants_are_absent_there_and_only_there():
    visits = plan_round(SPEC, 1, active=EVERYTHING, refused={(CELL, "write", "other")})
    for block in blocks(visits):
        present = {trial.arm.name for trial in block}
        if block[0].comparison_key == (CELL, "write"):
            assert present == {"base", "base#2"}
            assert [trial.position for trial in block] == [0, 1]
        else:
            assert present == {"base", "base#2", "other"}


@pytest.mark.parametrize("number", range(1, 9))
def test_leaving_pairs_out_does_not_change_the_order_of_the_others(number):
    left = {pair for pair in EVERYTHING if pair[1] != "write" and pair[0] != CELL}
    whole = plan_round(SPEC, number, active=EVERYTHING)
    assert order(plan_round(SPEC, number, active=left), left) == order(whole, left)


@pytest.mark.parametrize("number", range(1, 9))
def test_refusing_a_variant_does_not_change_the_order_of_the_others(number):
    refused = {(CELL, "write", "other")}
    whole = order(plan_round(SPEC, number, active=EVERYTHING), EVERYTHING)
    kept = [entry for entry in whole if entry[0] != (CELL, "write") or entry[2] != Arm("other")]
    assert order(plan_round(SPEC, number, active=EVERYTHING, refused=refused), EVERYTHING) == kept


def test_the_document_counts_what_will_be_run():
    document = plan_document(SPEC)
    assert document.arms == ("base", "base#2", "other")
    assert document.comparisons == 4 * 3 * 1
    assert document.blocks_a_round == 4 * 3 * 3
    assert document.trials_a_round == 4 * 3 * 3 * 3
    assert document.rounds == (6, 9)
    assert document.worst_ns == 120 * 10**9
    assert document.factors == {"rows": ("10", "20"), "index": ("none", "key")}
    planned = sum(len(block.arms) for visit in document.first_round for block in visit.blocks)
    assert planned == document.trials_a_round


def test_the_document_shows_the_first_round_as_it_will_be_run():
    visits = plan_round(SPEC, 1, active=EVERYTHING)
    shown = [
        (visit.cell, block.workload, block.arms)
        for visit in plan_document(SPEC).first_round
        for block in visit.blocks
    ]
    assert shown == [
        (dict(block[0].cell.levels), block[0].workload, tuple(trial.arm.name for trial in block))
        for block in blocks(visits)
    ]


def test_the_least_time_is_a_block_of_each_timed_workload_in_one_cell():
    assert least_ns(SPEC) == 3 * (100_000_000 + 2_000_000_000)
    assert plan_document(SPEC).round_ns > 4 * 3 * least_ns(SPEC)


SOME = TEXT.replace(
    '[workloads.write]\nsql = "INSERT"', '[workloads.write]\nvariants = ["third"]\nsql = "INSERT"'
)
SOME = SOME.replace(
    "[factors]\nrows", '[variants.third]\nvalues = { type = "int", made = "" }\n[factors]\nrows'
)


def test_a_workload_may_compare_some_variants_only():
    spec = parse_spec(SOME, file="plan.toml", read=str, overrides={})
    active = {(cell, workload) for cell in cells(spec) for workload in spec.workloads}
    found = {
        workload: {
            trial.arm.name
            for block in blocks(plan_round(spec, 1, active=active))
            for trial in block
            if trial.workload == workload
        }
        for workload in spec.workloads
    }
    assert found["write"] == {"base", "base#2", "third"}
    assert found["read"] == found["scan"] == {"base", "base#2", "other", "third"}
    document = plan_document(spec)
    assert document.comparisons == len(document.cells) * (2 + 1 + 2)
    assert document.trials_a_round == len(document.cells) * spec.stop.blocks * (4 + 3 + 4)


def test_leaving_a_variant_out_of_one_workload_does_not_change_the_order_of_the_others():
    every = parse_spec(SOME.replace('variants = ["third"]\n', ""), file="plan.toml", read=str, overrides={})
    some = parse_spec(SOME, file="plan.toml", read=str, overrides={})
    orders = []
    for spec in (every, some):
        visits = plan_round(spec, 3, active={(CELL, "read"), (CELL, "write")})
        orders.append(order(visits, {(CELL, "read")}))
    assert orders[0] == orders[1]


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ('["thrid"]',
         'plan.toml:29: workloads.write.variants: there is no variant "thrid"; did you mean "third"?'),
        ('["base"]',
         "plan.toml:29: workloads.write.variants: has only the baseline; add a variant to compare with it"),
    ],
)  # fmt: skip
def test_a_workloads_variants_must_be_there(named, message):
    with pytest.raises(SpecError, match=re.escape(message)):
        parse_spec(SOME.replace('["third"]', named), file="plan.toml", read=str, overrides={})


def test_a_variant_that_no_workload_compares_is_told():
    text = re.sub(r"(\[workloads\.(read|scan)\]\n)", r'\1variants = ["other"]\n', SOME).replace(
        '["third"]', '["other"]'
    )
    with pytest.raises(SpecError, match=r"variants\.third: no workload compares it"):
        parse_spec(text, file="plan.toml", read=str, overrides={})


def warned(stop, of_scan="", text=TEXT):
    asked = text.replace("[stop]", f"[stop]\n{stop}").replace(
        'sql = "SELECT 2"', f'sql = "SELECT 2"\n{of_scan}'
    )
    return plan_warnings(parse_spec(asked, file="plan.toml", read=str, overrides={}))


@pytest.mark.parametrize(
    "stop", ["", 'precision = "2%"', 'precision = "5%"\npractical = "5%"', 'practical = "10%"']
)
def test_a_precision_within_what_is_practical_is_no_warning(stop):
    assert warned(stop) == ()


def test_a_precision_wider_than_practical_is_told_with_what_to_change():
    (sentence,) = warned('precision = "10%"')
    assert sentence == (
        "precision (10 %) is wider than practical (3 %): variants that do not differ are likely to end as "
        '"not enough evidence"; set precision = "1.5%" (--precision 1.5%), or raise practical'
    )
    spec = parse_spec(TEXT.replace("[stop]", '[stop]\nprecision = "10%"'), file="p", read=str, overrides={})
    assert plan_document(spec).warnings == (sentence,)


@pytest.mark.parametrize(
    ("rounds", "said"),
    [
        ((3, 4), "maximum_rounds (4) allows no verdict, because a verdict needs 5 starts of the server"),
        ((3, 9), "minimum_rounds (3) counts as 5, which every verdict needs"),
        ((7, 9), None),
    ],
)
def test_fewer_rounds_than_every_verdict_needs_are_a_warning(rounds, said):
    text = TEXT.replace(
        "minimum_rounds = 6\nmaximum_rounds = 9", "minimum_rounds = {}\nmaximum_rounds = {}".format(*rounds)
    )
    warnings = warned("", text=text)
    assert [one.partition(";")[0].partition(" (only")[0] for one in warnings] == (
        [] if said is None else [said]
    )


def test_a_workload_with_a_precision_of_its_own_is_named():
    (sentence,) = warned("", 'precision = "8%"\npractical = "4%"')
    assert sentence.startswith("precision (8 %) is wider than practical (4 %) on scan: ")
    assert "--precision" not in sentence and 'set precision = "2%", or' in sentence
