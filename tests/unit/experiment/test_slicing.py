"""How long slices are, how many, and in which order."""

import pytest

from uncork.experiment.plan.allotment import round_share, shares
from uncork.experiment.plan.slicing import (
    SETTLE_NS,
    SLICE_NS,
    Pilot,
    block_count,
    changes_allowed,
    cycle_ns,
    cycle_order,
    slice_sizes,
    warmup_operations,
)
from uncork.model.block import SliceSize

MS = 10**6
S = 10**9


def test_arms_that_read_have_slices_of_equal_time_and_only_quick_ones_settle():
    quick, slow = slice_sizes(Pilot((0.02 * MS, 400.0 * MS)))
    assert quick == SliceSize(duration_ns=SLICE_NS, settle_ns=SETTLE_NS)
    assert slow == SliceSize(duration_ns=SLICE_NS)
    # The slow one does one operation, which takes longer than the slice.
    assert cycle_ns(Pilot((0.02 * MS, 400.0 * MS)), (quick, slow)) == SLICE_NS + SETTLE_NS + 400 * MS


def test_slices_of_several_clients_hold_ten_operations_of_each():
    assert slice_sizes(Pilot((30.0 * MS,)), clients=8)[0].duration_ns == 300 * MS
    assert slice_sizes(Pilot((0.1 * MS,)), clients=8)[0].duration_ns == SLICE_NS
    assert slice_sizes(Pilot((900.0 * MS,)), clients=8)[0].duration_ns == S


def test_slices_of_several_clients_shrink_until_a_block_fits_its_time():
    pilot = Pilot((200.0 * MS, 20.0 * MS))
    long, some, least = (slice_sizes(pilot, clients=8, time_ns=time_ns) for time_ns in (None, 2.0 * S, 0.0))
    assert [size.duration_ns for size in long] == [S, 200 * MS]
    assert 2 * cycle_ns(pilot, some, 8) <= 2 * S < 2 * cycle_ns(pilot, long, 8)
    assert [size.duration_ns for size in some] == [800 * MS, 80 * MS], "four operations of each client"
    assert [size.duration_ns for size in least] == [200 * MS, 20 * MS], "one of each"
    alone = slice_sizes(pilot, time_ns=0.0)
    assert {size.duration_ns for size in alone} == {SLICE_NS}, "one client stops when its slice ends"


def test_slices_of_an_open_loop_are_long_enough_to_fill_the_queue_again():
    assert slice_sizes(Pilot((MS,)), rate=1000.0)[0] == SliceSize(duration_ns=500 * MS)
    assert slice_sizes(Pilot((MS,)), rate=10.0)[0].duration_ns == 3 * S


def test_arms_that_write_all_do_the_same_number_of_operations():
    sizes = slice_sizes(Pilot((0.1 * MS, 0.4 * MS), rows_each=1.0))
    assert sizes == (SliceSize(operations=100), SliceSize(operations=100))
    few = slice_sizes(Pilot((0.1 * MS, 0.4 * MS), rows_each=1.0), most=5)
    assert few == (SliceSize(operations=2), SliceSize(operations=2))
    assert slice_sizes(Pilot((0.1 * MS,), rows_each=1.0), clients=4)[0].operations == 800


@pytest.mark.parametrize(
    ("rows_each", "table_rows", "pool", "allowed"),
    [
        (1.0, 50_000, None, 2500),
        (10.0, 50_000, None, 250),
        (1.0, 50_000, 300, 300),
        (1.0, 10, None, 2),
        (0.0, 10**9, None, 100_000),
        (1.0, None, None, 50),
    ],
)
def test_data_is_put_back_before_a_twentieth_of_it_has_changed(rows_each, table_rows, pool, allowed):
    assert changes_allowed(rows_each, table_rows, pool) == allowed


def test_blocks_are_long_against_what_goes_around_them():
    assert block_count(10 * S, 0.1 * S) == 4
    assert block_count(1 * S, 0.1 * S) == 2
    assert block_count(0.1 * S, 0.1 * S) == 1
    assert block_count(10 * S, 0.1 * S, overhead_ns=1.2 * S) == 2


def test_warming_up_takes_no_longer_than_it_may():
    assert warmup_operations(20, 0.1 * MS) == 20
    assert warmup_operations(20, 4.0 * MS) == 5
    assert warmup_operations(20, 900.0 * MS) == 1
    assert warmup_operations(0, 0.1 * MS) == 0


def test_cycles_come_in_pairs_of_an_order_and_its_reverse():
    order = cycle_order(4, 7, "a stream")
    assert len(order) == 8
    for first, second in zip(order[::2], order[1::2], strict=True):
        assert sorted(first) == [0, 1, 2, 3]
        assert second == first[::-1]
    assert len(set(order)) > 2
    assert cycle_order(4, 7, "a stream") == order != cycle_order(4, 7, "another")


# ---- the budget ----


def test_rounds_are_as_short_as_their_overhead_allows():
    assert round_share(60 * S, done=0, minimum=5, maximum=40, overhead_ns=1 * S) == 5 * S
    assert round_share(60 * S, done=0, minimum=5, maximum=40, overhead_ns=0.1 * S) == 1.5 * S
    assert round_share(60 * S, done=0, minimum=5, maximum=40, overhead_ns=0.1 * S, least_ns=6 * S) == 6 * S
    assert round_share(1500 * S, done=0, minimum=5, maximum=40) == pytest.approx(37.5 * S)


def test_the_rounds_that_a_verdict_needs_always_fit():
    # Rounds of 4 s overhead are no use below 20 s; five there must be all the same.
    assert round_share(60 * S, done=0, minimum=5, maximum=40, overhead_ns=4 * S) == 12 * S
    left, done = 60 * S, 0
    while done < 5:
        share = round_share(left, done=done, minimum=5, maximum=40, overhead_ns=4 * S)
        left -= share
        done += 1
    assert left >= 0


def test_time_is_shared_equally_but_everyone_gets_what_it_needs():
    assert shares(9.0, [0, 0, 0]) == [3.0, 3.0, 3.0]
    assert shares(10.0, [6, 0, 1]) == [6, 2.0, 2.0]
    assert shares(10.0, [6, 3, 1]) == [6, 3, 1]
    assert shares(2.0, [6, 3]) == [6, 3]
