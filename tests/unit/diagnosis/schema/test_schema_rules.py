"""Types of columns that cost time: documents that are parsed, keys of text, random keys."""

from uuid import UUID

import pytest

from fakes.evidence import BLOCK, a_column, a_statement, a_table, an_index, evidence, spent
from fakes.findings import compare_findings
from uncork.diagnosis.rules import schema
from uncork.model.database.plan import PlanNode, StatementPlan
from uncork.report.findings import finding_headline
from uncork.report.headline import fits

UUIDS = tuple(str(UUID(int=(n << 100) + (4 << 76) + (8 << 60) + n)) for n in range(12))
ORDERED = tuple(str(UUID(int=(n << 100) + (7 << 76) + (8 << 60) + n)) for n in range(12))
NUMBERS = tuple(str(10_000_000_000 + n) for n in range(12))
PARSED = "SELECT id FROM item WHERE body ->> 'kind' = $1"


def documents(sql=PARSED, kind="json", *, width=300.0, mean_ns=100e6, rows=6_000, plans=(), **table):
    statement = a_statement(
        sql, columns={"item": ["id", "body"]}, mean_ns=mean_ns, rows=rows * 20, blocks=10, plans=plans
    )
    seen = evidence(
        [spent()], [statement], tables=[a_table(**table)], columns=[a_column("body", kind, width=width)]
    )
    return list(schema.find_json_parsed(seen))


def scan(kind="Seq Scan", rows=100.0):
    node = PlanNode(kind, "item", "item", "", 0.0, 100.0, rows, 8)
    return (StatementPlan(0, "generic", node, ""),)


@pytest.mark.parametrize(
    ("sql", "kind", "found"),
    [
        (PARSED, "json", True),
        (PARSED, "jsonb", False),
        ("SELECT body FROM item WHERE id > $1", "json", False),  # returned as it is
        ("SELECT body::jsonb -> 'a' FROM item WHERE id > $1", "text", True),
        ("SELECT CAST(body AS jsonb) FROM item WHERE id > $1", "character varying", True),
        ("SELECT body FROM item WHERE id > $1", "text", False),
        ("SELECT somebody ->> 'kind' FROM item", "json", False),
    ],
)
def test_only_statements_that_parse_a_column_pay_for_its_type(sql, kind, found):
    assert bool(documents(sql, kind, plans=scan())) == found


def joined(
    kind="text", values=UUIDS, *, rows=100_000.0, width=37.0, join="Hash Join", find=schema.find_wide_types
):
    inner = PlanNode("Seq Scan", "owner", "o", "", 0.0, 1_000.0, rows, 40)
    hashed = PlanNode("Hash", "", "", "", 1_000.0, 1_000.0, rows, 40, children=(inner,))
    outer = PlanNode("Seq Scan", "item", "i", "", 0.0, 2_000.0, rows, 40)
    root = PlanNode(
        join,
        "",
        "",
        "",
        0.0,
        10_000.0,
        rows,
        8,
        (("Hash Cond", "(i.owner = o.id)"),),
        children=(outer, hashed),
    )
    statement = a_statement(
        "SELECT 1 FROM item i JOIN owner o ON o.id = i.owner", plans=(StatementPlan(0, "generic", root, ""),)
    )
    known = {"kind": kind.partition("(")[0], "storage_type": kind, "bounds": values, "width": width}
    columns = [a_column("owner", **known), a_column("id", table="owner", **known)]
    return list(find(evidence([spent()], [statement], columns=columns)))


@pytest.mark.parametrize(
    ("kind", "values", "width", "what", "better", "part"),
    [
        ("text", tuple(f"2026-01-{n + 10} 10:00:00" for n in range(12)), 20.0, "times as text",
         "timestamp", 0.1),
        ("character(36)", tuple(f"a{n:<35}" for n in range(12)), 37.0, "padded text", "text", 0.07),
        ("numeric(12,0)", (), 8.0, "integers as numeric", "bigint", 0.23),
        ("numeric(18)", (), 8.0, "integers as numeric", "bigint", 0.23),
    ],
)  # fmt: skip
def test_times_padded_text_and_whole_numeric_save_a_part_of_their_joins(
    kind, values, width, what, better, part
):
    (one,) = joined(kind, values, width=width, find=schema.find_wide_types.search)
    assert what in one.headline
    assert fits(finding_headline(one))
    assert one.bill.share == pytest.approx(part * 0.7)
    assert f"ALTER COLUMN id TYPE {better} USING id::{better};" in one.candidates[0].sql
    assert f"ALTER COLUMN id TYPE {kind} USING id::{kind};" in one.candidates[0].undo


@pytest.mark.parametrize(
    ("kind", "values", "width"),
    [
        ("numeric", NUMBERS, 8.0),  # it may hold fractions, which bigint would round
        ("numeric(12,2)", NUMBERS, 8.0),
        ("numeric(24,0)", NUMBERS, 8.0),
        ("character(12)", tuple(f"{n:011}x" for n in range(12)), 13.0),
        ("text", tuple(f"2026-01-{n + 10} 10 o'clock" for n in range(12)), 20.0),
    ],
)
def test_types_that_hold_more_than_the_narrower_one_stay(kind, values, width):
    assert joined(kind, values, width=width, find=schema.find_wide_types.search) == []


def inserted(column=None, *, pages=5_000_000, wait="IO:WALWrite", wal=6_000_000 * BLOCK, **facts):
    known = {"calls": 6_000_000, "rows": 6_000_000, "mean_ns": 2e3, "wal_bytes": wal, **facts}
    statement = a_statement(
        "INSERT INTO item (id, n) VALUES ($1, $2)", columns={"item": ["id", "n"]}, **known
    )
    seen = evidence(
        [spent(wait=wait)],
        [statement],
        tables=[a_table()],
        indexes=[an_index("CREATE UNIQUE INDEX item_pkey ON item USING btree (id)")],
        columns=[column or a_column("id", "uuid", default="gen_random_uuid()")],
        full_pages={0: pages},
        server_version="PostgreSQL 18.1",
    )
    return list(schema.find_random_keys(seen))


def test_random_keys_cost_the_reading_of_an_index_that_shared_buffers_do_not_hold():
    outside = {"pages": 0, "blocks_read": 5_000_000}
    (one,) = inserted(wait="IO:DataFileRead", **outside)
    assert one.bill.share == pytest.approx(1.0)
    assert one.headline == "Random keys in item.id make inserts read pages all over the index"
    assert fits(finding_headline(one))
    (flushed,) = inserted(wait="IO:WalSync", mean_ns=5e3, **outside)
    assert flushed.bill.share == pytest.approx(0.5), "half of the waiting is in commits"
    assert inserted(wait="IO:DataFileRead", pages=0, blocks_read=100_000) == []


def test_what_is_found_word_for_word():
    compare_findings("schema_rules", [
        ("a scan parses the documents of all rows", documents(mean_ns=1e9, plans=scan())),
        ("the rows that the table counted are believed more than a plan with drawn values",
         documents(mean_ns=1e9, plans=scan("Index Scan", 3.0), index_rows=6_000 * 90_000,
                   seq_rows=6_000 * 10_000),
         documents(mean_ns=1e9, plans=scan(), index_rows=6_000 * 3)),
        ("a few documents cost little", documents(plans=scan("Index Scan", 3.0), rows=3),
         documents(plans=scan(), width=None)),
        ("keys of text that are uuids cost half of their joins", joined()),
        ("long numbers of text want bigint but short ones and codes do not",
         joined(values=NUMBERS, width=12.0), joined(values=tuple(map(str, range(12))), width=3.0),
         joined(values=(*NUMBERS, "007"), width=12.0)),
        ("other types other values and small joins are no fault", joined("uuid"),
         joined(values=(*UUIDS, "none")), joined(values=UUIDS[:5]), joined(values=()),
         joined(rows=500.0), joined(join="Nested Loop")),
        ("random keys cost the full pages of their inserts", inserted(),
         inserted(a_column("id", "uuid", bounds=UUIDS))),
        ("full pages cost the time of writing them not of each flush",
         inserted(pages=2_000_000, wal=2_400_000 * BLOCK),
         inserted(pages=5_000, wal=6_000 * BLOCK, rows=6_000)),
        ("keys in order and inserts that wait for their commit are no fault",
         inserted(a_column("id", "uuid", bounds=ORDERED)), inserted(a_column("id", "bigint")),
         inserted(a_column("other", "uuid", default="gen_random_uuid()")), inserted(pages=100),
         inserted(wal=None)),
    ])  # fmt: skip
