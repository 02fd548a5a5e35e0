"""What must hold of every plan, whatever is compared and whatever the seed."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from uncork.experiment.plan.order import arms, cells, plan_round
from uncork.experiment.spec.schema import parse_spec

counts = st.integers(1, 4)
seeds = st.integers(0, 10_000)
rounds = st.integers(1, 50)


def make(variants=3, levels=2, workloads=2, blocks=4, seed=1):
    text = [
        '[experiment]\nname = "plan"\nquestion = "?"\n',
        f"seed = {seed}\n",
        '[setup]\nsql = "SELECT 1"\n',
    ]
    text += [f"[variants.v{n}]\nbaseline = {str(n == 1).lower()}\n" for n in range(variants)]
    text += [f"[factors]\nrows = {list(range(levels))}\n", f"[stop]\nblocks = {blocks}\n"]
    text += [f'[workloads.w{n}]\nsql = "SELECT 1"\noperations = 1\n' for n in range(workloads)]
    return parse_spec("".join(text), file="plan.toml", read=str, overrides={})


@st.composite
def specs(draw):
    return make(
        draw(st.integers(2, 5)), draw(counts), draw(counts), draw(st.integers(2, 5)), seed=draw(seeds)
    )


def everything(spec):
    return {(cell, workload) for cell in cells(spec) for workload in spec.workloads}


def planned(spec, number, **more):
    more.setdefault("active", everything(spec))
    return [block for visit in plan_round(spec, number, **more) for block in visit.blocks]


@given(specs(), rounds)
def test_every_arm_stands_exactly_once_in_every_block(spec, number):
    found = planned(spec, number)
    assert len(found) == len(everything(spec)) * spec.stop.blocks
    for block in found:
        assert sorted(trial.arm for trial in block) == sorted(arms(spec))
        assert [trial.position for trial in block] == list(range(len(block)))
        assert {trial.round for trial in block} == {number}


@given(specs(), rounds)
def test_the_same_seed_gives_the_same_plan(spec, number):
    assert planned(spec, number) == planned(spec, number)


@given(seeds, rounds)
def test_another_seed_or_round_gives_another_order(seed, number):
    spec, other = (
        make(variants=5, levels=4, workloads=4, blocks=4, seed=value) for value in (seed, seed + 1)
    )
    assert planned(spec, number) != planned(other, number)
    first = [(trial.comparison_key, trial.arm) for block in planned(spec, number) for trial in block]
    second = [(trial.comparison_key, trial.arm) for block in planned(spec, number + 1) for trial in block]
    assert first != second


@given(specs(), rounds)
def test_the_second_block_of_a_pair_is_the_reverse_of_the_first(spec, number):
    order = {
        (block[0].comparison_key, block[0].block): [t.arm for t in block] for block in planned(spec, number)
    }
    for (pair, block), found in order.items():
        if block % 2 == 0:
            assert found == order[pair, block - 1][::-1]


@given(specs(), rounds, st.data())
def test_leaving_pairs_out_does_not_change_the_order_of_the_others(spec, number, data):
    left = {pair for pair in sorted(everything(spec)) if data.draw(st.booleans())}
    whole = [block for block in planned(spec, number) if block[0].comparison_key in left]
    assert planned(spec, number, active=left) == whole


@given(specs(), rounds, st.data())
def test_refused_variants_are_absent(spec, number, data):
    variants = [name for name in spec.variants if name != spec.baseline]
    refused = {
        (cell, workload, name)
        for cell, workload in sorted(everything(spec))
        for name in variants
        if data.draw(st.booleans())
    }
    for block in planned(spec, number, refused=refused):
        cell, workload = block[0].comparison_key
        expected = [arm for arm in arms(spec) if (cell, workload, arm.variant) not in refused]
        assert sorted(trial.arm for trial in block) == sorted(expected)


def test_over_many_rounds_every_arm_is_about_equally_often_at_each_position():
    spec = make(variants=4, levels=1, workloads=1, blocks=2)
    seen = Counter(
        (trial.arm.name, trial.position)
        for number in range(1, 401)
        for block in planned(spec, number)
        for trial in block
    )
    expected = 400 * 2 / 5
    assert len(seen) == 5 * 5
    assert sum((count - expected) ** 2 / expected for count in seen.values()) < 60  # chi-squared, 16 degrees
