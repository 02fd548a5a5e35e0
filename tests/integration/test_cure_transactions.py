"""Transactions that hold their locks for less time are proven on a copy and handed over."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import psycopg
import pytest

from fakes.cures import proven_cure
from uncork.experiment.cure.transactions import transaction_arms
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.transaction import CapturedTransaction
from uncork.model.database.workload import CapturedStatement
from uncork.report.cure.answer import answer_cure
from uncork.workbench.cure.handing import hand_over_application
from uncork.workbench.cure.transactions import plan_variants
from uncork.workbench.cure.variants import VariantProver

pytestmark = [pytest.mark.postgres, pytest.mark.thorough]

COUNT = CapturedStatement(
    1, "UPDATE total SET sold = sold + $1 WHERE shop = $2", (("1", "1"),), "seen", 36e4, 3e6, 0.9, ("total",),
    changes=True,
)  # fmt: skip
SALE = replace(
    COUNT, template=2, sql="INSERT INTO sale (price) VALUES ($1)", sets=(("3",),), tables=("sale",)
)
PAUSES = Candidate("client", "Call the bank before BEGIN.", habit="pauses")
PARTS = Candidate(
    "ddl",
    "Split sold of total.",
    habit="counts in one row",
    sql="CREATE TABLE total_part AS SELECT shop, 0::smallint AS part, sold FROM total;\n"
    "ALTER TABLE total_part ADD PRIMARY KEY (shop, part);\n"
    "INSERT INTO total_part (shop, part, sold) VALUES ($1, (random() * 15)::int, 1)\n"
    "ON CONFLICT (shop, part) DO UPDATE SET sold = total_part.sold + excluded.sold;",
)
HOT = Finding("hot-row", "Sessions queue", ("total", "sold"), Bill(9000, 8000, 9900, 0.9), templates=(1,))


@pytest.fixture(scope="module")
def copy(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as control:
        control.execute("CREATE DATABASE holding")
    with psycopg.connect(embedded.conninfo("holding"), autocommit=True) as own:
        own.execute("CREATE TABLE total AS SELECT 1 AS shop, 0::bigint AS sold")
        own.execute("CREATE TABLE sale (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, price int)")
        own.execute("VACUUM ANALYZE")
    return embedded.conninfo("holding")


def plan(*candidates):
    pauses_ns = (0.0, 15e6, 0.0)
    found = CapturedTransaction((COUNT, SALE), pauses_ns, 36e3, 100e6, 4, "samples")
    finding = replace(HOT, candidates=candidates)
    arms, reason = transaction_arms(finding, found)
    assert not reason
    return plan_variants(finding, found, arms)


def test_transactions_that_queue_for_a_row_are_measured_in_other_ways(copy, tmp_path):
    tried = VariantProver(tmp_path, copy, lambda _: None).of_finding(plan(PAUSES, PARTS), 6.0)
    assert tried.state in {"cured", "unclear"}, tried.reason  # unclear on a machine that is very busy
    outside, parts = tried.changes
    (effect,) = outside.effects
    assert effect.clients == 4
    assert effect.before_ns > 45e6  # three others pause while they hold the row
    assert effect.ratio < 0.7 and effect.after_ns < effect.before_ns
    assert parts.effects[0].ratio < 0.9  # the sums on both sides were equal, or it would be refused
    assert parts.sql.startswith("-- Once, while nothing changes the counter:\nCREATE TABLE total_part")

    best = replace(tried, state="cured", best=outside.name)
    found = replace(proven_cure(), tried=(best,), chosen=None)
    assert answer_cure(found).answer.startswith("Move the slow step of application total before")
    (handed,) = hand_over_application(tmp_path, found, "host=db.example dbname=shop")
    assert handed.path.endswith("application/pause-outside")
    folder = tmp_path / "application" / "pause-outside"
    before, after = ((folder / name).read_text() for name in ("before.sql", "after.sql"))
    assert before.startswith("BEGIN;\nUPDATE total") and "-- The application does something else" in before
    assert after.startswith("-- The application does something else for 15.0 ms.\nBEGIN;")
    experiment = tomllib.loads((folder / "experiment.toml").read_text())
    assert experiment["workloads"]["s1"]["sql"][2] == "\\sleep 15000 us"
    assert "Each transaction takes " in (folder / "README.md").read_text()
