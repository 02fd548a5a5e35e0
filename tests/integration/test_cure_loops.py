"""Loops of a client are proven on a copy as a variant of the captured workload, and handed over."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from fakes.cures import proven_cure
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.workbench.cure.handing import hand_over_application
from uncork.workbench.cure.loops import LoopProver, loop_plan

pytestmark = pytest.mark.postgres

READ = CapturedStatement(
    1, "SELECT note FROM item WHERE id = $1", tuple((str(n),) for n in range(1, 41)), "drawn", 36e5, 3e4, 0.9,
    ("item",), changes=False,
)  # fmt: skip
OTHER = replace(READ, template=2, sql="SELECT 1", sets=((),), share=0.1, mean_ns=3e3)
WORKLOAD = CapturedWorkload((READ, OTHER), (), 60.0, 1.0)


def finding(*numbers):
    candidate = Candidate("client", "Fetch many.", habit="loops in a transaction")
    return Finding("any", "shop looks up", ("shop",), Bill(1, 1, 1, 0.9), numbers, candidates=(candidate,))


@pytest.fixture(scope="module")
def copy(embedded):
    with psycopg.connect(embedded.conninfo(), autocommit=True) as control:
        control.execute("CREATE DATABASE loops")
    with psycopg.connect(embedded.conninfo("loops"), autocommit=True) as own:
        own.execute(
            "CREATE TABLE item AS SELECT n AS id, 'note ' || n AS note FROM generate_series(1, 900) n"
        )
        own.execute("ALTER TABLE item ADD PRIMARY KEY (id)")
        own.execute("VACUUM ANALYZE item")
    return embedded.conninfo("loops")


@pytest.mark.thorough
def test_a_loop_of_lookups_is_measured_against_one_statement_and_handed_over(copy, tmp_path):
    plan, reason = loop_plan(finding(1), WORKLOAD)
    assert plan is not None and not reason
    tried = LoopProver(tmp_path, copy, WORKLOAD, lambda _: None).of_finding(plan, 3.0)
    assert tried.state in {"cured", "unclear"}, tried.reason  # unclear on a machine that is very busy
    best = tried.changes[0]
    assert best.name == "s1-one-statement" and best.sql.endswith("WHERE id = ANY ($1);")
    assert best.net.before == pytest.approx(108 + 10.8)
    (effect,) = best.effects
    assert effect.ratio < 1 and effect.after_ns < effect.before_ns
    assert any(text.startswith("The rows were the same for 40 sets") for text in best.assumed)
    tried = replace(tried, state="cured", best=best.name)

    (handed,) = hand_over_application(
        tmp_path, replace(proven_cure(), tried=(tried,), chosen=None), "dbname=shop"
    )
    folder = tmp_path / "application" / best.name
    assert handed.path.endswith(f"application/{best.name}")
    assert (folder / "before.sql").read_text() == f"{READ.sql};\n"
    assert 'copy_of = "dbname=shop"' in (folder / "experiment.toml").read_text()
    assert "unnest" in (folder / "experiment.toml").read_text()


def test_what_cannot_be_proven_is_not_planned(copy, tmp_path):
    assert loop_plan(finding(7), WORKLOAD) == (None, "It was not captured.")
    plan, reason = loop_plan(finding(2), WORKLOAD)
    assert plan is None and "no parameter" in reason
    assert loop_plan(replace(finding(1), candidates=()), WORKLOAD) == (None, "")
    gone = replace(READ, sql="SELECT note FROM gone WHERE id = $1")
    plan, _ = loop_plan(finding(1), replace(WORKLOAD, statements=(gone,)))
    tried = LoopProver(tmp_path, copy, WORKLOAD, lambda _: None).of_finding(plan, 1.0)
    assert (tried.state, tried.reason) == ("refused", "The server does not know the type of parameter $1.")


def test_a_pipeline_is_the_baseline_of_the_bulk_statement(copy, tmp_path):
    (candidate,) = finding(1).candidates
    pipelined = replace(finding(1), candidates=(replace(candidate, habit="pipelines"),))
    plan, _ = loop_plan(pipelined, WORKLOAD)
    tried = LoopProver(tmp_path, copy, WORKLOAD, lambda _: None).of_finding(plan, 2.0)
    assert {one.name for one in tried.changes} == {"s1-one-statement", "s1-one-statement-lateral"}, (
        tried.reason
    )
    (run,) = {name for one in tried.changes for name in one.runs[-1:]}
    text = (tmp_path / run / "experiment.toml").read_text()
    assert 'batching = "pipeline"' in text.partition("[variants.s1")[0]
