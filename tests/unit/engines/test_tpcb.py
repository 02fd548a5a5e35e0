"""pgbench's tables: the bytes of their rows, the commands that make them, and what is refused unasked."""

import struct
from pathlib import Path

import numpy as np
import pytest

from fakes.goldens import compare
from uncork.engines import tpcb
from uncork.errors import ConnectError, SetupError

NOWHERE = "host=127.0.0.1 port=1 dbname=nowhere"


def wanted(**changed):
    options = {
        "scale": 1, "steps": "dtgvp", "fillfactor": 100, "unlogged": False, "tablespace": None,
        "index_tablespace": None, "partitions": 0, "partition_method": "range", "progress": None,
    }  # fmt: skip
    return tpcb.PgbenchTables(**{**options, **changed})


def commands(**changed):
    return [" ".join(command.as_string(None).split()) for command in tpcb._tables(wanted(**changed))]


def decoded(block: bytes) -> list[list[bytes | None]]:
    """Read rows of binary COPY without its header, one field at a time."""
    rows, at = [], 0
    while at < len(block):
        (count,) = struct.unpack_from(">h", block, at)
        at += 2
        row: list[bytes | None] = []
        for _ in range(count):
            (length,) = struct.unpack_from(">i", block, at)
            at += 4
            row.append(None if length < 0 else block[at : at + length])
            at += max(length, 0)
        rows.append(row)
    return rows


def test_a_binary_block_holds_each_rows_fields_with_their_lengths():
    rows = tpcb._Rows((np.array([7, 70_000]), 3, 0), filler=0)
    assert decoded(rows.binary([4, 4, 4])) == [
        [struct.pack(">i", 7), struct.pack(">i", 3), bytes(4), b""],
        [struct.pack(">i", 70_000), struct.pack(">i", 3), bytes(4), b""],
    ]


def test_columns_may_be_wider_than_an_int_and_the_filler_may_be_null():
    rows = tpcb._Rows((np.array([2**33]), 0), filler=-1)
    assert decoded(rows.binary([8, 2])) == [[struct.pack(">q", 2**33), bytes(2), None]]


def test_a_number_too_large_for_its_column_is_refused_and_not_cut():
    with pytest.raises(SetupError, match="2147483648 does not fit into a column of 4 bytes; put steps d"):
        tpcb._Rows((np.array([2**31]), 0), filler=-1).binary([4, 4])
    with pytest.raises(SetupError, match="32768 does not fit into a column of 2 bytes"):
        tpcb._Rows((np.array([1]), 32768), filler=-1).binary([4, 2])


def test_a_text_block_holds_the_same_rows():
    assert tpcb._Rows((np.array([7, 8]), 3, 0), filler=0).text() == b"7\t3\t0\t\n8\t3\t0\t\n"
    assert tpcb._Rows((np.array([1]), 0), filler=-1).text() == b"1\t0\t\\N\n"


def test_accounts_go_branch_by_branch_and_are_told_after_they_were_taken():
    told: list[tpcb.Progress] = []
    blocks = tpcb._accounts(2, told.append)
    first = next(blocks)
    assert (first.columns[0][0], first.columns[0][-1], first.columns[1]) == (1, 100_000, 1)
    assert told == []
    second = next(blocks)
    assert (second.columns[0][0], second.columns[0][-1], second.columns[1]) == (100_001, 200_000, 2)
    assert list(blocks) == []
    assert [(progress.rows, progress.total) for progress in told] == [(100_000, 200_000), (200_000, 200_000)]


def test_each_branch_has_ten_tellers():
    (block,) = tpcb._tellers(2)
    assert list(block.columns[0]) == list(range(1, 21))
    assert list(block.columns[1]) == [1] * 10 + [2] * 10


VARIANTS = (
    *({"fillfactor": 80}, {"scale": 19_999}, {"scale": 20_000}, {"tablespace": 'a "b'}, {"unlogged": True}),
    {"partitions": 3},
    {"partitions": 2, "partition_method": "hash", "unlogged": True},
)


def test_the_commands_that_make_tables_word_for_word():
    """UNCORK_BLESS=1 rewrites them; read the difference first."""
    found = [f"-- {changed}\n" + "\n".join(commands(**changed)) for changed in VARIANTS]
    compare(Path(__file__).parents[2] / "golden" / "database" / "tpcb.sql", "\n".join(found) + "\n")


@pytest.mark.parametrize(("changed", "message"), [
    ({"steps": "dtxgy"},
     r'unknown initialisation steps "x", "y"; the steps are d \(drop tables\), t \(cre'),
    ({"steps": " "}, "no initialisation steps given; the steps are d"),
    ({"scale": 0}, "scale must be from 1 to 214748364, not 0"),
    ({"scale": 214_748_365}, "scale must be from 1"),
    ({"fillfactor": 9}, r"fillfactor must be from 10 to 100 \(percent\), not 9"),
    ({"partitions": -1}, r"partitions must be 0 \(none\) or more, not -1"),
    ({"partitions": 1, "partition_method": "list"}, 'must be "range" or "hash", not "list"'),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_before_a_connection_is_tried(changed, message):
    with pytest.raises(SetupError, match=message):
        tpcb.initialise(NOWHERE, **{"scale": 1, **changed})


def test_a_server_that_is_not_there_is_a_connect_error():
    with pytest.raises(ConnectError, match="port 1 failed: Connection refused; is the server running"):
        tpcb.initialise(NOWHERE, scale=1)
    with pytest.raises(ConnectError, match="not valid"):
        tpcb.scale_of("nonsense")
