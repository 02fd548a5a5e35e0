"""Which statements get plans first, because planning has a limit of time."""

from uncork.workbench.profile.database_plans import top_statements

TEXTS = {number: f"select {number}" for number in range(1, 6)}


def counted(number, milliseconds):
    row = {"database": "shop", "query_id": number, "execution_ns": milliseconds * 1e6, "calls": 2, "rows": 6}
    return None, {**row, "user_oid": 10, "database_oid": 5, "toplevel": True}


def first(changed, sampled):
    return [
        one.query_id
        for one in top_statements(
            changed, "shop", TEXTS, (), {("shop", key): many for key, many in sampled}, {}
        )
    ]


def test_a_statement_that_has_not_ended_is_planned_before_cheap_ones_that_have():
    changed = [counted(1, 900), counted(2, 20), counted(3, 10)]
    assert first(changed, [(4, 700), (1, 90), (5, 300)]) == [1, 4, 2, 5, 3]


def test_without_samples_the_execution_time_decides():
    changed = [counted(1, 10), counted(2, 900)]
    assert first(changed, []) == [2, 1]
    assert top_statements(changed, "shop", TEXTS, (), {}, {})[0].rows == 3


def test_what_uncork_executed_itself_has_no_plan():
    changed = [counted(1, 10), counted(2, 900)]
    assert [one.query_id for one in top_statements(changed, "shop", TEXTS, {(10, 5, 2, True)}, {}, {})] == [1]
