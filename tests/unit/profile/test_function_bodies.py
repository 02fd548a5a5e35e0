"""The statements in the bodies of functions, and the parameters that their variables become."""

import pytest

from uncork.profile.shapes.bodies import body_statements
from uncork.profile.shapes.variables import function_statements, with_parameters

TABLES = {
    "orders": ("id", "customer_id", "total", "note"),
    "totals": ("customer_id", "n"),
    "log.entry": ("id", "at"),
}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("BEGIN UPDATE a SET b = 1; DELETE FROM c; END", ["UPDATE a SET b = 1", "DELETE FROM c"]),
        ("BEGIN SELECT a, b INTO STRICT x, y.z FROM t; END", ["SELECT a, b FROM t"]),
        ("BEGIN SELECT INTO x[1], y a, b FROM t; END", ["SELECT a, b FROM t"]),
        ("BEGIN INSERT INTO t (a) VALUES (1) RETURNING id INTO x; END",
         ["INSERT INTO t (a) VALUES (1) RETURNING id"]),
        ("BEGIN PERFORM f(a) FROM t WHERE b = c; END", ["SELECT f(a) FROM t WHERE b = c"]),
        ("BEGIN RETURN QUERY SELECT a FROM t; END", ["SELECT a FROM t"]),
        ("BEGIN RETURN (SELECT a FROM t); END", ["SELECT (SELECT a FROM t)"]),
        ("BEGIN x := y + (SELECT 1 FROM t); z = 3; END", ["SELECT y + (SELECT 1 FROM t)"]),
        ("BEGIN OPEN c FOR SELECT a FROM t FOR UPDATE; END", ["SELECT a FROM t FOR UPDATE"]),
        ("DECLARE c CURSOR (k int) FOR SELECT a FROM t WHERE b = k; BEGIN END",
         ["SELECT a FROM t WHERE b = k"]),
        ("DECLARE x int := (SELECT max(a) FROM t); r t%ROWTYPE; BEGIN END",
         ["SELECT (SELECT max(a) FROM t)"]),
        ("<<one>> BEGIN <<two>> LOOP DELETE FROM t; EXIT two WHEN done; END LOOP two; END one",
         ["DELETE FROM t"]),
        ("#variable_conflict use_column\nBEGIN DELETE FROM t; END", ["DELETE FROM t"]),
        ("BEGIN DELETE FROM t WHERE a = 'b; UPDATE c' /* ; */ AND d; -- ; UPDATE e\nEND",
         ["DELETE FROM t WHERE a = 'b; UPDATE c' AND d"]),
        ("BEGIN DELETE FROM t WHERE a = $q$;' BEGIN$q$; END",
         ["DELETE FROM t WHERE a = $q$;' BEGIN$q$"]),
        ("BEGIN IF EXISTS (SELECT 1 FROM t) AND CASE WHEN a THEN b END THEN DELETE FROM c; "
         "ELSIF d THEN DELETE FROM e; ELSE DELETE FROM f; END IF; END",
         ["SELECT EXISTS (SELECT 1 FROM t) AND CASE WHEN a THEN b END",
          *("DELETE FROM c", "DELETE FROM e", "DELETE FROM f")]),
        ("BEGIN CASE x WHEN 1 THEN DELETE FROM a; ELSE DELETE FROM b; END CASE; DELETE FROM c; END",
         ["DELETE FROM a", "DELETE FROM b", "DELETE FROM c"]),
        ("BEGIN FOR r IN SELECT a FROM t LOOP UPDATE u SET b = r.a; END LOOP; "
         "FOR i IN REVERSE 9..(SELECT 1 FROM v) LOOP NULL; END LOOP; "
         "FOREACH x IN ARRAY y LOOP DELETE FROM w; END LOOP; "
         "WHILE a < b LOOP DELETE FROM z; END LOOP; END",
         ["SELECT a FROM t", "UPDATE u SET b = r.a", "SELECT (SELECT 1 FROM v)", "DELETE FROM w",
          "DELETE FROM z"]),
        ("BEGIN BEGIN DELETE FROM a; EXCEPTION WHEN unique_violation OR others THEN DELETE FROM b; "
         "RAISE EXCEPTION 'SELECT 1; %', x; END; END", ["DELETE FROM a", "DELETE FROM b"]),
        ("BEGIN EXECUTE 'DELETE FROM a' USING b; FOR r IN EXECUTE 'SELECT 1' LOOP END LOOP; "
         "RETURN QUERY EXECUTE 'SELECT 2'; END", []),
        ("BEGIN WITH g AS (DELETE FROM a RETURNING *) INSERT INTO b SELECT * FROM g; "
         "MERGE INTO t USING s ON a = b WHEN MATCHED THEN DELETE; END",
         ["WITH g AS (DELETE FROM a RETURNING *) INSERT INTO b SELECT * FROM g",
          "MERGE INTO t USING s ON a = b WHEN MATCHED THEN DELETE"]),
        ("SELECT a FROM t WHERE b = $1; DELETE FROM c",
         ["SELECT a FROM t WHERE b = $1", "DELETE FROM c"]),
        ("BEGIN ATOMIC SELECT a FROM t; DELETE FROM c; END", ["SELECT a FROM t", "DELETE FROM c"]),
        ("RETURN (SELECT a FROM t)", ["SELECT (SELECT a FROM t)"]),
        ("BEGIN SELECT 'not ended", []),
        ("BEGIN SELECT a INTO x[1", ["SELECT a"]),
        ("", []),
    ],
)  # fmt: skip
def test_statements_are_found_whatever_is_around_them(body, expected):
    assert list(body_statements(body)) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("UPDATE totals SET n = n + NEW.total WHERE customer_id = NEW.customer_id",
         "UPDATE totals SET n = n + $1 WHERE customer_id = $2"),
        ("DELETE FROM orders o WHERE o.id = v AND note < v",
         "DELETE FROM orders o WHERE o.id = $1 AND note < $1"),
        ("DELETE FROM orders WHERE id = $1 AND note = first",
         "DELETE FROM orders WHERE id = $1 AND note = $2"),
        ("SELECT id FROM orders WHERE note = 'é' AND id = f.id",
         "SELECT id FROM orders WHERE note = 'é' AND id = $1"),
        ("WITH x AS (SELECT id AS k FROM orders) SELECT k, v FROM x",
         "WITH x AS (SELECT id AS k FROM orders) SELECT k, $1 FROM x"),
        ("SELECT a FROM log.entry WHERE log.entry.at = entry.at",
         "SELECT $1 FROM log.entry WHERE log.entry.at = entry.at"),
        ("INSERT INTO orders SELECT NEW.*", "INSERT INTO orders SELECT $1"),
        ("SELECT a FROM unknown WHERE b = c AND d = OLD.d",
         "SELECT a FROM unknown WHERE b = c AND d = $1"),
        ("SELECT g FROM generate_series(1, n) AS g", "SELECT g FROM generate_series(1, $1) AS g"),
        ("DELETE FROM WHERE", None),
    ],
)  # fmt: skip
def test_a_name_that_no_table_has_is_a_variable(sql, expected):
    assert with_parameters(sql, TABLES) == expected


def test_statements_of_a_body_have_shapes_and_those_that_the_grammar_rejects_are_left_out():
    ((sql, shape),) = function_statements(
        "BEGIN DELETE FROM orders WHERE id = v; SELECT FROM FROM; END", TABLES
    )
    assert sql == "DELETE FROM orders WHERE id = v"
    assert [(one.column, one.value) for one in shape.predicates] == [("id", "parameter")]
