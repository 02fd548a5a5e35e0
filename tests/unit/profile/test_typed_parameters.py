"""pg_stat_statements stores `date $1`, which the server rejects; it accepts `$1::date`."""

import pytest

from fakes.goldens import compare_answers
from uncork.profile.parameter_values import rewrite_typed_parameters


def test_a_parameter_after_the_name_of_a_type_is_cast():
    def rewritten(sql):
        found = rewrite_typed_parameters(sql)
        assert rewrite_typed_parameters(found) == found
        return found

    compare_answers("profile/typed_parameters", rewritten)


@pytest.mark.parametrize(
    "sql",
    [
        "select $1",
        "select $1 as date, $2 date",
        "select a as b from t where a in ($1) and b between $1 and $2 limit $3 offset $4",
        "select a from t where a in ($1 /*, ... */) -- date $1",
        "select extract(year from $1), cast($2 as date), $3::interval day",
        "select 'date $1', $$date $1$$, \"date $1\", e'\\' date $1' /* date $1 */",
        "select date '2026-01-31', interval '1' day",
        "select d from t where d like $1 escape $2 and x is distinct from $3 order by $4 desc",
        "select case when $1 then $2 else $3 end from t fetch first $4 rows only",
        "select date $1 from where",
        "select date $1, 'cut short",
        "",
        "$",
        "select '\0', date $1",
    ],
)
def test_other_texts_do_not_change(sql):
    assert rewrite_typed_parameters(sql) == sql
