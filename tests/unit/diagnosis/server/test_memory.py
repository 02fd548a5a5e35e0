"""Shared buffers that are too small for the memory, and settings that risk the data."""

import pytest

from fakes.evidence import a_statement, a_table, evidence, spent
from fakes.findings import compare_findings
from uncork.diagnosis.rules import server

GB = 1 << 30


def found(*, memory=32 * GB, now="128MB", read=GB, wait="IO:DataFileRead", rows=10_000_000, **facts):
    """Return what is found about random lookups in a table of 1 GB that read so many bytes from outside."""
    statement = a_statement("SELECT * FROM item WHERE id = $1", blocks_read=4 * read // 8192)
    table = a_table(rows=rows, index_bytes=rows * 20, **facts)
    seen = evidence(
        [spent(wait=wait)],
        [statement],
        tables=[table],
        settings={"shared_buffers": now},
        catalogue={"memory_bytes": memory},
    )
    return list(server.find_shared_buffers(seen))


@pytest.mark.parametrize(
    "facts",
    [
        {"memory": None},
        {"now": ""},
        {"now": "8GB"},
        {"memory": 2 * GB},  # the tables would not fit either
        {"read": GB // 4},  # a server that has just started
        {"wait": "CPU"},
        {"rows": 100_000},  # the table fits already
    ],
)
def test_reads_that_more_memory_would_not_save_are_no_fault(facts):
    assert found(**facts) == []


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
def test_settings_that_risk_the_data_have_a_cost_without_a_bill(name):
    (one,) = server.find_crash_unsafe(evidence([], settings={name: "off"}))
    assert (one.objects, one.bill, one.cost) == ((name,), None, "the data, after a crash of the machine")
    assert list(server.find_crash_unsafe(evidence([], settings={name: "on"}))) == []
    assert list(server.find_crash_unsafe(evidence([]))) == []


def test_what_is_found_word_for_word():
    compare_findings("memory", [
        ("small shared buffers cost the time of reading the same blocks again", found()),
    ])  # fmt: skip
