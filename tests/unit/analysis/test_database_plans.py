"""Stored plans of a watched server."""

import pytest

from uncork.analysis.database.evidence import plans_of, statement_plans, unplanned
from uncork.diagnosis.evidence import Statement
from uncork.profile.plans.tree import statement_plan

SCAN = "Seq Scan on sale  (cost=0.00..387.00 rows=20000 width=8)"


def row(query_id, source, plan, reason="", *, denied=False, jit=False, sqlstate=None):
    return {
        **{"query_id": query_id, "template": query_id, "source": source, "number": 0, "plan": plan},
        **{"json": plan, "jit": jit, "reason": reason, "denied": denied, "sqlstate": sqlstate},
    }


def test_the_generic_plan_is_shown_else_the_first():
    rows = [
        row(1, "generic", SCAN, jit=True),
        row(1, "drawn", SCAN.replace("sale", "drawn")),
        row(2, "generic", None, "no type"),
        row(2, "seen", SCAN.replace("sale", "seen")),
        row(3, "generic", None, "no type"),
    ]
    assert [(one.template, one.source, one.reason) for one in plans_of(rows)] == [
        *((1, "generic", ""), (2, "seen", ""), (3, "generic", "no type")),
    ]
    assert [(one.template, one.source, one.jit) for one in statement_plans(rows)] == [
        *((1, "generic", True), (1, "drawn", False), (2, "seen", False)),
    ]


SERVER = {"role": 'the "watcher"', "number": 15}


def why_unplanned(rows, texts, *, elsewhere=(), number=15, planned=()):
    plan = statement_plan(0, "seen", SCAN, SCAN)
    statements = {
        n: Statement(n, text, plans=(plan,) if n in planned else ()) for n, text in enumerate(texts, 1)
    }
    times = dict.fromkeys(statements, 1.0)
    found = unplanned(rows, statements, times, elsewhere, {**SERVER, "number": number})
    return {one.why: one for one in found}


def test_each_statement_without_a_plan_has_a_reason():
    rows = [
        row(1, "generic", None, "no type", sqlstate="42P18"),
        row(1, "seen", SCAN),
        row(2, "generic", None, "permission denied for table t", denied=True, sqlstate="42501"),
        row(3, "generic", None, "permission denied for table t", denied=True, sqlstate="42501"),
        row(4, "generic", None, "permission denied for function f", denied=True, sqlstate="42501"),
        row(5, "generic", None, 'relation "u" does not exist', sqlstate="42P01"),
        row(6, "generic", None, "operator is not unique: unknown + unknown", sqlstate="42725"),
        row(7, "generic", None, 'syntax error at or near "$2"', sqlstate="42601"),
        row(8, "generic", None, "canceling statement due to statement timeout", sqlstate="57014"),
    ]
    texts = [
        *("select a from t where b = ?", "select a from t", "with x as (update t set a = ?) select ?"),
        *(
            "select f(?)",
            "select a from u where b = ?",
            "select ? + ?",
            "select interval ?",
            "select a from v",
        ),
        *("begin", "select a from elsewhere", "select a from rarely"),
    ]
    found = why_unplanned(rows, texts, elsewhere={10}, planned={1})
    assert {why: one.templates for why, one in found.items()} == {
        **{"not readable": (2,), "not writable": (3,), "not callable": (4,), "not found": (5,)},
        **{
            "no values": (6, 7),
            "refused": (8,),
            "no plan": (9,),
            "other database": (10,),
            "not asked": (11,),
        },
    }
    assert found["not readable"].remedy == 'GRANT pg_read_all_data TO "the ""watcher"""'
    assert found["no values"].reason == ""  # the server's words would read as if the statement were wrong
    assert sum(one.share for one in found.values()) == pytest.approx(10 / 11)
    older = why_unplanned(rows, texts, number=13)["not readable"]
    assert older.remedy == 'GRANT SELECT ON these tables TO "the ""watcher"""'


def test_runs_without_sqlstates_are_told_apart_by_their_words():
    rows = [
        row(1, "generic", None, "operator is not unique"),
        row(2, "generic", None, 'relation "u" does not exist'),
        row(3, "generic", None, "canceling statement due to lock timeout"),
        row(4, "generic", SCAN),
    ]
    texts = ["select ? + ?", "select a from u where b = ?", "select a from t where b = ?", "select a from t"]
    assert list(why_unplanned(rows, texts)) == ["no values", "not found", "refused", "row security"]
