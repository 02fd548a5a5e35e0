"""pg_stat_statements stores `date $1`, which the server rejects; it accepts `$1::date`."""

import pytest

from uncork.profile.parameter_values import rewrite_typed_parameters


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select date $1", "select $1::date"),
        (
            "SELECT a FROM t WHERE d >= DATE $1 AND e < date $12",
            "SELECT a FROM t WHERE d >= $1::DATE AND e < $12::date",
        ),
        ("select now() - interval $1", "select now() - $1::interval"),
        ("select interval $1 day * 2", "select $1::interval day * 2"),
        ("select interval $1 day to second, 2", "select $1::interval day to second, 2"),
        ("select interval $1 day to second(3) x", "select $1::interval day to second(3) x"),
        ("select interval $1 second (3)", "select $1::interval second (3)"),
        ("select interval $1 year from t", "select $1::interval year from t"),
        ("select interval(3) $1 as day", "select $1::interval(3) as day"),
        ("select timestamp $1 at time zone $2", "select $1::timestamp at time zone $2"),
        ("select timestamp with time zone $1", "select $1::timestamp with time zone"),
        ("select timestamp(3) without time zone $1", "select $1::timestamp(3) without time zone"),
        ("select timestamptz $1, time with time zone $2", "select $1::timestamptz, $2::time with time zone"),
        ("select double precision $1", "select $1::double precision"),
        ("select character varying(10) $1 as c", "select $1::character varying(10) as c"),
        ("select char(10) $1, bit varying(3) $2", "select $1::char(10), $2::bit varying(3)"),
        ("select numeric(10, 2) $1", "select $1::numeric(10, 2)"),
        ("select 1 where a = public.citext $1", "select 1 where a = $1::public.citext"),
        ('select "Shop"."Mood" $1 "Mood"', 'select $1::"Shop"."Mood" "Mood"'),
        ("select jsonb $1 -> $2", "select $1::jsonb -> $2"),
        ("select bool $1 or boolean $2", "select $1::bool or $2::boolean"),
        ("select f(date $1, point $2)", "select f($1::date, $2::point)"),
        ("select 'ö', date $1 -- date $2", "select 'ö', $1::date -- date $2"),
        ("select date -- (of)\n $1 -- b", "select $1::date -- b"),
        ("select double -- of\n precision $1", "select $1::double -- of\n precision"),
        ("select interval $1 /* of */ day", "select $1::interval /* of */ day"),
        ("select date\n  $1\nfrom t", "select $1::date\nfrom t"),
        ("select x in (date $1 /*, ... */)", "select x in ($1::date /*, ... */)"),
        ("insert into t values (date $1, timestamp $2)", "insert into t values ($1::date, $2::timestamp)"),
    ],
)
def test_a_parameter_after_the_name_of_a_type_is_cast(sql, expected):
    assert rewrite_typed_parameters(sql) == expected
    assert rewrite_typed_parameters(expected) == expected


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
