"""Connections for each request are proven on a copy against kept ones, and what to change is handed over."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import psycopg
import pytest

from fakes.cures import proven_cure
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.report.cure.answer import answer_cure
from uncork.workbench.cure.handing import hand_over_application
from uncork.workbench.cure.variants import VariantProver, pool_plan

pytestmark = [pytest.mark.postgres, pytest.mark.thorough]

READ = CapturedStatement(
    1, "SELECT note FROM item WHERE id = $1", tuple((str(n),) for n in range(1, 41)), "drawn", 36e4, 3e4, 0.9,
    ("item",), changes=False,
)  # fmt: skip
WRITE = replace(READ, template=2, sql="UPDATE item SET note = $2 WHERE id = $1", changes=True, share=0.1)
WRITE = replace(WRITE, sets=tuple((str(n), f"it's {n}") for n in range(1, 41)))
KEEP = Candidate("client", "Keep connections.", habit="connects", per_hour=36e4)
OFTEN = Finding("any", "shop connects", ("shop",), Bill(1080, 540, 2160, 0.9), candidates=(KEEP,))


@pytest.fixture(scope="module")
def copy(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as control:
        control.execute("CREATE DATABASE pooling")
    with psycopg.connect(embedded.conninfo("pooling"), autocommit=True) as own:
        own.execute(
            "CREATE TABLE item AS SELECT n AS id, 'note ' || n AS note FROM generate_series(1, 900) n"
        )
        own.execute("ALTER TABLE item ADD PRIMARY KEY (id)")
        own.execute("VACUUM ANALYZE item")
    return embedded.conninfo("pooling")


def test_kept_connections_are_measured_against_new_ones_and_handed_over(copy, tmp_path):
    workload = CapturedWorkload((READ, WRITE), (), 60.0, 1.0)
    plan, reason = pool_plan(OFTEN, workload)
    assert plan is not None and not reason
    tried = VariantProver(tmp_path, copy, lambda _: None).of_finding(
        plan, 20.0
    )  # it ends when the gain is known
    assert tried.state in {"cured", "unclear"}, tried.reason  # unclear on a machine that is very busy
    (change,) = tried.changes
    (effect,) = change.effects
    assert effect.ratio < 0.9 and effect.after_ns < effect.before_ns
    assert effect.after_cpu_ns < effect.before_cpu_ns
    assert change.net.before >= change.net.saved > 0

    found = replace(proven_cure(), tried=(replace(tried, state="cured"),), chosen=None)
    assert answer_cure(found).answer.startswith("Keep connections open in a pool of the application: each ")
    (handed,) = hand_over_application(tmp_path, found, "host=db.example dbname=shop")
    assert handed.path.endswith("application/pool")
    folder = tmp_path / "application" / "pool"
    assert "open a connection, and send\n" + READ.sql in (folder / "before.sql").read_text()
    experiment = tomllib.loads((folder / "experiment.toml").read_text())
    assert experiment["variants"]["current"]["connections"] == "new"
    assert "shop = host=db.example port=5432 dbname=shop" in (folder / "README.md").read_text()


def test_what_is_not_about_connections_is_not_planned():
    workload = CapturedWorkload((READ,), (), 60.0, 1.0)
    assert pool_plan(replace(OFTEN, candidates=()), workload) == (None, "")
    plan, reason = pool_plan(OFTEN, replace(workload, statements=()))
    assert plan is None and "No statement was captured" in reason
