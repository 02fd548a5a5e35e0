"""Statements as people and object mappers write them, taken apart with the grammar."""

import pytest

from uncork.model.database.statement import ColumnName, CommonTable, OrderKey, Subquery, TableUse
from uncork.profile.grammar import template_text
from uncork.profile.statement_shape import statement_shape

TABLES = {
    "orders": ("id", "customer_id", "status", "total", "created_at", "paid", "note"),
    "customers": ("id", "email", "name", "active", "tags", "payload", "manager_id"),
    "lines": ("id", "order_id", "product_id", "quantity"),
    "shop.items": ("id", "sku", "starts_on", "ends_on"),
    "order": ("id", "user"),
}


def shape(sql, **options):
    found = statement_shape(sql, TABLES, **options)
    assert found is not None
    return found


def text(predicate):
    """Write a predicate as one line."""
    side = predicate.column or f"[{predicate.expression}]"
    words = [f"{predicate.table}.{side}" + (f"::{predicate.cast}" if predicate.cast else "")]
    words += ["not"] * predicate.negated + [predicate.operator, predicate.value]
    words += [] if predicate.literal is None else [repr(predicate.literal)]
    words += [f"::{predicate.value_cast}"] if predicate.value_cast else []
    words += [f"{predicate.other.table}.{predicate.other.column}"] if predicate.other else []
    words += [f"({predicate.clause})"] if predicate.clause != "where" else []
    words += [f"or{predicate.group}"] if predicate.alternative else []
    words += [f"@{predicate.level}"] if predicate.level else []
    return " ".join(words)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("o.status = $1", ["orders.status = parameter"]),
        ("$1 < total AND 5 >= id", ["orders.total > parameter", "orders.id <= constant '5'"]),
        ("status = $1::text", ["orders.status = parameter ::text"]),
        ("CAST(o.id AS bigint) = $1::int8", ["orders.id::bigint = parameter ::bigint"]),
        ("created_at::date = date '2026-01-31'",
         ["orders.created_at::date = constant '2026-01-31' ::date"]),
        ("created_at > timestamp with time zone $1",
         ["orders.created_at > parameter ::timestamp with time zone"]),
        ("o.status IN ($1 /*, ... */)", ["orders.status in parameter"]),
        ("status NOT IN ('a', NULL)", ["""orders.status not in constant "'a', NULL\""""]),
        ("NOT status IN ($1, 'x')", ["orders.status not in parameter"]),
        ("id = ANY($1::int[])", ["orders.id in parameter ::integer[]"]),
        ("id = ANY(ARRAY[$1, $2]::bigint[])", ["orders.id in parameter ::bigint[]"]),
        ("id = ANY('{1,2}')", ["orders.id in constant '{1,2}'"]),
        ("id <> ALL ($1) AND total < ANY ($2)",
         ["orders.id not in parameter", "orders.total < any parameter"]),
        ("total BETWEEN 1 AND 5", ["orders.total between constant '1 and 5'"]),
        ("total NOT BETWEEN SYMMETRIC $1 AND 5", ["orders.total not between symmetric parameter"]),
        ("note LIKE '%x' ESCAPE '!'", ["orders.note like constant '%x'"]),
        ("note ILIKE '%' || $1 || '%'", ["orders.note ilike expression '%'"]),
        ("note NOT LIKE concat('%', 'x')", ["orders.note not like constant '%x'"]),
        ("note ~~* $1 AND note !~ $2", ["orders.note ilike parameter", "orders.note !~ parameter"]),
        ("note SIMILAR TO $1", ["orders.note similar to parameter"]),
        ("$1 LIKE note", ["orders.[$1 LIKE note] is true none"]),
        ("note IS NULL AND NOT total IS NULL",
         ["orders.note is null none", "orders.total is not null none"]),
        ("paid", ["orders.paid is true none"]),
        ("NOT o.paid", ["orders.paid is false none"]),
        ("paid IS NOT TRUE AND paid = true",
         ["orders.paid is not true none", "orders.paid = constant 'true'"]),
        ("note = NULL", ["orders.note = constant"]),
        ("note IS DISTINCT FROM $1", ["orders.note is distinct from parameter"]),
        ("total = -$1 AND total > -5",
         ["orders.total = parameter", "orders.total > constant '-5'"]),
        ("created_at > now() - interval $1 day", ["orders.created_at > expression"]),
        ("total > total + 1 AND total = id",
         ["orders.total > expression", "orders.total = column orders.id"]),
        ("lower(o.note) = lower($1)", ["orders.[lower(note)] = expression"]),
        ("$1 <= date_trunc('day', o.created_at)",
         ["orders.[date_trunc('day', created_at)] >= parameter"]),
        ("coalesce(o.note, $1) = ''", ["orders.[COALESCE(note, $1)] = constant ''"]),
        ("o.note::jsonb ->> 'kind' = $1", ["orders.[note::jsonb ->> 'kind'] = parameter"]),
        ("note::jsonb @> $1 AND $2 <@ note",
         ["orders.note::jsonb @> parameter", "orders.note @> parameter"]),
        ("NOT note::jsonb @> $1", ["orders.note::jsonb not @> parameter"]),
        ("note::jsonb ? $1", ["orders.note::jsonb ? parameter"]),
        ("starts_with(note, $1)", ["orders.[starts_with(note, $1)] is true none"]),
        ("(created_at, id) > ($1, $2)", ["orders.[(created_at, id)] > parameter"]),
        ("(status, id) = ($1, 2)", ["orders.status = parameter", "orders.id = constant '2'"]),
        ("(status, id) IN (($1, $2), ($3, $4))", ["orders.[(status, id)] in parameter"]),
        ("$1 BETWEEN created_at AND total",
         ["orders.created_at <= parameter", "orders.total >= parameter"]),
        ("$1 = ANY (note)", ["orders.note any parameter"]),
        ("status = $1 OR status = $2",
         ["orders.status = parameter or1", "orders.status = parameter or1"]),
        ("(id = 1 OR id = 2) AND (paid OR (total > 3 AND (id = 4 OR id = 5)))",
         ["orders.id = constant '1' or1", "orders.id = constant '2' or1",
          "orders.paid is true none or2", "orders.total > constant '3' or2",
          "orders.id = constant '4' or3", "orders.id = constant '5' or3"]),
        ("NOT (status = $1 OR total < 3)",
         ["orders.status <> parameter", "orders.total >= constant '3'"]),
        ("NOT (status = $1 AND id = $2)",
         ["orders.status <> parameter or1", "orders.id <> parameter or1"]),
        ("$1 IS NULL OR status = $1", [".[$1] is null none or1", "orders.status = parameter or1"]),
        ("1 = 1 AND $1 AND $2 IS NULL AND true", []),
    ],
)  # fmt: skip
def test_conditions_become_predicates(condition, expected):
    found = shape(f"SELECT 1 FROM orders o WHERE {condition}")
    assert [text(one) for one in found.predicates] == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        # Django
        ('SELECT "order"."id", "order"."user" FROM "order" WHERE "order"."user" = $1 LIMIT 21',
         {"tables": (TableUse("order", "order", "table", 0),),
          "predicates": ["order.user = parameter"],
          "outputs": (ColumnName("order", "id"), ColumnName("order", "user")), "limit": True}),
        # Django: Exists
        ('SELECT (1) AS "a" FROM "customers" WHERE EXISTS(SELECT 1 AS "a" FROM "orders" U0 WHERE '
         'U0."customer_id" = ("customers"."id") LIMIT 1) LIMIT 1',
         {"predicates": ["orders.customer_id = column customers.id @1"],
          "subqueries": (Subquery("exists", True, ("orders",), 1, "where"),)}),
        # Rails
        ('SELECT "orders".* FROM "orders" INNER JOIN "customers" ON "customers"."id" = '
         '"orders"."customer_id" WHERE "customers"."email" = $1 ORDER BY "orders"."id" ASC LIMIT $2',
         {"tables": (TableUse("orders", "orders", "table", 0),
                     TableUse("customers", "customers", "table", 0, "inner")),
          "predicates": ["customers.id = column orders.customer_id (on)",
                         "customers.email = parameter"], "order": (OrderKey("orders", "id"),),
          "star": True, "limit": True}),
        # Rails: exists?
        ('SELECT 1 AS one FROM "orders" WHERE "orders"."status" IS NULL LIMIT $1',
         {"predicates": ["orders.status is null none"], "limit": True, "star": False}),
        # Hibernate
        ("select o1_0.id, c1_0.email from orders o1_0 left join customers c1_0 on "
         "c1_0.id=o1_0.customer_id "
         "where o1_0.id=$1 and o1_0.note like ('%'||$2||'%') escape '' offset $3 rows fetch "
         "first $4 rows only",
         {"predicates": ["customers.id = column orders.customer_id (on)", "orders.id = parameter",
                         "orders.note like expression '%'"], "limit": True, "offset": True}),
        # SQLAlchemy
        ("SELECT count(*) AS count_1 FROM (SELECT orders.id AS orders_id FROM orders WHERE "
         "orders.status = $1::VARCHAR) AS anon_1 WHERE anon_1.orders_id > $2::INTEGER",
         {"tables": (TableUse("", "anon_1", "subquery", 0),
                     TableUse("orders", "orders", "table", 1)),
          "predicates": ["orders.status = parameter ::character varying @1",
                         "orders.id > parameter ::integer"], "aggregates": ("count",),
          "subqueries": (Subquery("from", False, ("orders",), 1, "from"),)}),
        # jOOQ
        ('select "public"."orders"."id" from "public"."orders" '
         'where "public"."orders"."id" = cast($1 as int) for update of orders skip locked',
         {"predicates": ["orders.id = parameter ::integer"], "locking": "for update skip locked"}),
        ("SELECT sku FROM shop.items i WHERE i.sku = $1 AND id = $2",
         {"predicates": ["shop.items.sku = parameter", "shop.items.id = parameter"]}),
        ("SELECT sku FROM items WHERE items.sku = $1",
         {"outputs": (ColumnName("shop.items", "sku"),)}),
        ("SELECT x FROM unknown WHERE x = $1 AND unknown.y = $2",
         {"predicates": ["unknown.x = parameter", "unknown.y = parameter"]}),
        ("SELECT 1 FROM orders, customers WHERE customer_id = customers.id AND id = 1 AND zip = 2",
         {"predicates": ["orders.customer_id = column customers.id", "orders.id = constant '1'",
                         ".zip = constant '2'"]}),
        ("SELECT 1 FROM orders JOIN lines l ON l.order_id = orders.id LEFT JOIN customers USING (id)",
         {"predicates": ["lines.order_id = column orders.id (on)",
                         "orders.id = column customers.id (on)"]}),
        ("SELECT 1 FROM customers c LEFT JOIN (orders o JOIN lines l ON l.order_id = o.id) ON "
         "c.id = o.customer_id "
         "CROSS JOIN generate_series(1, 3) g FULL JOIN LATERAL (VALUES (1)) v(x) ON true",
         {"tables": (TableUse("customers", "c", "table", 0),
                     TableUse("orders", "o", "table", 0, "left"),
                     TableUse("lines", "l", "table", 0, "inner"),
                     TableUse("generate_series", "g", "function", 0, "inner"),
                     TableUse("", "v", "values", 0, "full")), "functions": ("generate_series",)}),
        ("SELECT j.total FROM (orders JOIN lines ON order_id = orders.id) j WHERE j.quantity > 3",
         {"predicates": ["lines.order_id = column orders.id (on)", "lines.quantity > constant '3'"],
          "outputs": (ColumnName("orders", "total"),)}),
        ("SELECT * FROM orders o JOIN LATERAL (SELECT l.quantity q FROM lines l WHERE l.order_id "
         "= o.id LIMIT 1) x " "ON x.q > 2",
         {"predicates": ["lines.order_id = column orders.id @1",
                         "lines.quantity > constant '2' (on)"],
          "subqueries": (Subquery("from", True, ("lines",), 1, "from"),), "limit": False}),
        ("SELECT (SELECT max(total) FROM orders WHERE customer_id = c.id) FROM customers c WHERE "
         "id NOT IN "
         "(SELECT customer_id FROM orders) AND id = ANY (SELECT id FROM lines) AND name > (SELECT 'a') "
         "AND id <> ALL (SELECT 1)",
         {"predicates": ["orders.customer_id = column customers.id @1",
                         "customers.id not in subquery", "customers.id in subquery",
                         "customers.name > subquery", "customers.id not in subquery"],
          "subqueries": (Subquery("value", True, ("orders",), 1, "select"),
                         Subquery("not in", False, ("orders",), 1, "where",
                                  ColumnName("customers", "id"),
                                  ColumnName("orders", "customer_id")),
                         Subquery("in", False, ("lines",), 1, "where",
                                  ColumnName("customers", "id"), ColumnName("lines", "id")),
                         Subquery("value", False, (), 1, "where"),
                         Subquery("not in", False, (), 1, "where",
                                  ColumnName("customers", "id")))}),
        ("SELECT 1 FROM customers WHERE EXISTS (SELECT 1 FROM (SELECT 1 FROM orders WHERE "
         "customer_id = customers.id) s)",
         {"subqueries": (Subquery("exists", True, ("orders",), 1, "where"),
                         Subquery("from", True, ("orders",), 2, "from"))}),
        ("WITH recent AS MATERIALIZED (SELECT id, customer_id AS c FROM orders WHERE total > $1), gone AS "
         "(DELETE FROM lines RETURNING order_id) SELECT r.c, s.id FROM recent r JOIN recent s ON "
         "r.c = s.id " "WHERE s.c = $2 AND s.id IN (SELECT order_id FROM gone)",
         {"common_tables": (CommonTable("recent", True, 2, False, False, ("orders",)),
                            CommonTable("gone", None, 1, False, True, ("lines",))),
          "predicates": ["orders.total > parameter @1",
                         "orders.customer_id = column orders.id (on)",
                         "orders.customer_id = parameter", "orders.id in subquery"],
          "returning": False}),
        ("WITH RECURSIVE up(a, b) AS (SELECT id, manager_id FROM customers WHERE id = $1 UNION ALL "
         "SELECT c.id, c.manager_id FROM customers c JOIN up ON c.id = up.b) SELECT * FROM up WHERE a > 3",
         {"common_tables": (CommonTable("up", None, 1, True, False, ("customers",)),),
          "predicates": ["customers.id = parameter @1",
                         "customers.id = column customers.manager_id (on) @1",
                         "customers.id > constant '3'"], "unions": 0}),
        ("SELECT status, count(*), sum(total) FILTER (WHERE paid), my.own(DISTINCT id) FROM orders "
         "GROUP BY 1 HAVING count(*) > $1 ORDER BY count(*) DESC, status NULLS FIRST",
         {"predicates": [".[count(*)] > parameter (having)"],
          "aggregates": ("count", "sum", "my.own"), "functions": ("count", "sum", "my.own"),
          "grouping": (OrderKey("orders", "status"),),
          "order": (OrderKey("", "", "count(*)", descending=True),
                    OrderKey("orders", "status", nulls_first=True))}),
        ("SELECT lower(name) AS l, id + 1 AS total FROM customers GROUP BY ROLLUP (l, (active, "
         "id)) ORDER BY l, 2",
         {"grouping": (OrderKey("customers", "", "lower(name)"), OrderKey("customers", "active"),
                       OrderKey("customers", "id")),
          "order": (OrderKey("customers", "", "lower(name)"),
                    OrderKey("customers", "", "id + 1"))}),
        ("SELECT DISTINCT ON (customer_id) *, rank() OVER (PARTITION BY status ORDER BY total) "
         "FROM orders " "ORDER BY customer_id, created_at DESC LIMIT ALL",
         {"distinct": "on", "distinct_on": (OrderKey("orders", "customer_id"),),
          "order": (OrderKey("orders", "customer_id"),
                    OrderKey("orders", "created_at", descending=True)), "windows": ("rank",),
          "aggregates": (), "limit": False, "star": True}),
        ("SELECT DISTINCT status FROM orders WHERE created_at < CURRENT_DATE",
         {"distinct": "all", "functions": ("current_date",)}),
        ("SELECT id FROM orders UNION SELECT id FROM lines UNION ALL (SELECT id FROM customers "
         "LIMIT 1) ORDER BY 1",
         {"unions": 1, "limit": False, "order": (OrderKey("", "id"),),
          "outputs": (ColumnName("orders", "id"),)}),
        ("INSERT INTO orders AS o (id, status) VALUES ($1, $2), ($3, DEFAULT) ON CONFLICT (id) "
         "DO UPDATE SET "
         "status = excluded.status WHERE o.status <> excluded.status RETURNING id, *",
         {"kind": "insert", "tables": (TableUse("orders", "o", "table", 0, changed=True),),
          "predicates": ["orders.status <> column .status"], "insert_columns": ("id", "status"),
          "set_columns": ("status",), "rows": 2, "conflict": "update", "returning": True,
          "star": True, "outputs": (ColumnName("orders", "id"),)}),
        ("INSERT INTO lines (id) SELECT id FROM orders WHERE total > 1 LIMIT 9 ON CONFLICT DO NOTHING",
         {"rows": None, "conflict": "nothing", "limit": True,
          "tables": (TableUse("lines", "lines", "table", 0, changed=True),
                     TableUse("orders", "orders", "table", 0)), "outputs": ()}),
        ("INSERT INTO lines DEFAULT VALUES", {"rows": 1, "insert_columns": ()}),
        ("UPDATE orders o SET status = $1, (total, note) = (SELECT 1, 'x') FROM customers c "
         "WHERE c.id = o.customer_id",
         {"kind": "update", "set_columns": ("status", "total", "note"),
          "subqueries": (Subquery("value", False, (), 1, "set"),),
          "predicates": ["customers.id = column orders.customer_id"], "returning": False}),
        ("UPDATE orders SET paid = true WHERE id IN (SELECT id FROM orders WHERE status = $1 "
         "ORDER BY id LIMIT 9 " "FOR NO KEY UPDATE NOWAIT)",
         {"locking": "for no key update nowait", "order": (OrderKey("orders", "id", level=1),),
          "limit": False}),
        ("DELETE FROM lines USING orders WHERE order_id = orders.id AND CURRENT_DATE > created_at",
         {"kind": "delete",
          "predicates": ["lines.order_id = column orders.id", "orders.created_at < expression"]}),
        ("DELETE FROM lines WHERE CURRENT OF c", {"kind": "delete", "predicates": []}),
        ("MERGE INTO orders o USING lines l ON o.id = l.order_id WHEN MATCHED AND l.quantity = 0 "
         "THEN DELETE "
         "WHEN MATCHED THEN UPDATE SET total = 1 WHEN NOT MATCHED THEN INSERT (id, note) VALUES "
         "(l.id, now())",
         {"kind": "merge", "predicates": ["orders.id = column lines.order_id (on)"],
          "set_columns": ("total",), "insert_columns": ("id", "note"), "functions": ("now",)}),
    ],
)  # fmt: skip
def test_statements_are_taken_apart(sql, expected):
    found = shape(sql)
    for name, value in expected.items():
        got = getattr(found, name)
        assert ([text(one) for one in got] if name == "predicates" else got) == value, name


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("select * from orders where id=? and total>-? limit ?",
         ["orders.id = parameter", "orders.total > parameter"]),
        ("select 1 from customers where payload ? ? and id in (?)",
         ["customers.payload ? parameter", "customers.id in parameter"]),
        ("select 1 from customers where tags ?| array[?, ?]", ["customers.tags ?| parameter"]),
        ("select 1 from customers where payload @? ? or (payload -> ?) ?& ?",
         ["customers.payload @? parameter or1", "customers.[payload -> $2] ?& parameter or1"]),
        ('select 1 from "a?b" where note = ?::varchar(?)',
         ["a?b.note = parameter ::character varying"]),
        ("select 1 from orders where created_at > ? - interval ? day",
         ["orders.created_at > expression"]),
        ("select 1 from orders where note = ?||?", ["orders.note = expression"]),
    ],
)  # fmt: skip
def test_templates_have_a_question_mark_for_each_value(template, expected):
    assert [text(one) for one in shape(template, template=True).predicates] == expected


def test_a_long_list_and_two_templates_of_one_statement():
    values = ", ".join(map(str, range(5000)))
    (one,) = shape(f"SELECT 1 FROM orders WHERE id IN ({values})").predicates
    assert (one.operator, one.value, one.literal) == ("in", "constant", None)
    sql = "SELECT o.id FROM orders o WHERE status = 'x' AND id = ANY ($1) ORDER BY total"
    with_literal, template = shape(sql), shape(template_text(sql), template=True)
    assert template.tables == with_literal.tables
    assert template.order == with_literal.order
