"""Databases with missing or useless indexes, and twins that need none."""

from __future__ import annotations

from random import Random
from threading import Event

from psycopg import Connection

from databases.scenario import ITEM, Client, Draw, Scenario, sends

CUSTOMERS = 20_000
ORDERS = (
    "CREATE TABLE orders AS SELECT n AS id, n % 20000 AS customer_id, (n * 7919) % 5 AS region, "
    "CASE WHEN n % 2000 = 0 THEN 'new' ELSE 'done' END AS state, "
    "timestamp '2026-01-01' + n * interval '1 minute' AS created, n % 977 AS total, "
    "CASE WHEN n % 1500 = 0 THEN NULL ELSE timestamp '2026-02-01' END AS sent, repeat('x', 40) AS note "
    "FROM generate_series(1, 200000) AS n",
    "ALTER TABLE orders ADD PRIMARY KEY (id)",
    "VACUUM ANALYZE orders",
)
POLICY = (
    "DO $$ BEGIN CREATE ROLE tenant_app; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
    "ALTER TABLE orders ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY own_orders ON orders USING (customer_id = current_setting('app.tenant')::int)",
    "GRANT SELECT ON orders TO tenant_app",
)
PEOPLE = (
    "CREATE TABLE people AS SELECT n AS id, 'Person' || n || '@Example.com' AS email, "
    "md5(n::text) AS name, (n * 7919 % 150000)::text AS code, "
    "jsonb_build_object('kind', n % 5000, 'note', md5(n::text)) AS payload, "
    "ARRAY[n % 3000, n % 7000 + 10000] AS tags, n % 9000 AS city "
    "FROM generate_series(1, 150000) AS n",
    "ALTER TABLE people ADD PRIMARY KEY (id)",
    "VACUUM ANALYZE people",
)
LINES = (
    "CREATE TABLE line AS SELECT n AS id, (n * 7919) % 50000 AS order_id, n % 100 AS amount, "
    "repeat('x', 40) AS note FROM generate_series(1, 200000) AS n",
    "ALTER TABLE line ADD PRIMARY KEY (id)",
    "CREATE TABLE invoice AS SELECT n AS id, n % 5000 AS customer FROM generate_series(0, 49999) AS n",
    "ALTER TABLE invoice ADD PRIMARY KEY (id)",
    "CREATE INDEX invoice_customer ON invoice (customer)",
    "VACUUM ANALYZE line, invoice",
)


READINGS = (
    "CREATE TABLE reading AS SELECT n AS id, (n::bigint * 7919 % 500)::int AS device, n % 100 AS value, "
    "timestamptz '2026-01-01' + n * interval '7 seconds' AS at FROM generate_series(1, 400000) AS n",
    "CREATE INDEX reading_at ON reading (at)",
    "CREATE TABLE device AS SELECT n AS id FROM generate_series(0, 99) AS n",
    "VACUUM ANALYZE reading, device",
)
TREE = (
    "CREATE TABLE node AS SELECT n AS id, CASE WHEN n > 1 THEN (n + 3) / 5 END AS parent "
    "FROM generate_series(1, 60000) AS n",
    "ALTER TABLE node ADD PRIMARY KEY (id)",
    "VACUUM ANALYZE node",
)
NETWORKS = (
    "CREATE TABLE network AS SELECT n AS id, "
    "(n / 65536 || '.' || n / 256 % 256 || '.' || n % 256 || '.0/24')::cidr AS block "
    "FROM generate_series(1, 100000) AS n",
    "VACUUM ANALYZE network",
)


INTERVALS = (
    "CREATE TABLE region AS SELECT n * 1000::bigint AS low, n * 1000::bigint + 999 AS high, "
    "'r' || n % 200 AS name FROM generate_series(1, 150000) AS n",
    "CREATE INDEX region_low_high ON region (low, high)",
    "VACUUM ANALYZE region",
)


def below(number: int):
    """Return a draw of a whole number."""
    return lambda chance: chance.randrange(number)


def search(connection: Connection, over: Event, chance: Random) -> None:
    """Search by a column without an index."""
    while not over.is_set():
        connection.execute("SELECT * FROM item WHERE customer = %s", (chance.randrange(20_000),)).fetchall()


def two_searches(connection: Connection, over: Event, chance: Random) -> None:
    """Send two statements that one index on two columns serves."""
    while not over.is_set():
        customer, total = chance.randrange(CUSTOMERS), chance.randrange(900)
        connection.execute("SELECT * FROM orders WHERE customer_id = %s", (customer,)).fetchall()
        connection.execute(
            "SELECT id FROM orders WHERE total > %s AND customer_id = %s", (total, customer)
        ).fetchall()


def of_a_tenant(connection: Connection, over: Event, chance: Random) -> None:
    """List the newest orders of one tenant after another, with the rights of a role under row security."""
    connection.execute("SET ROLE tenant_app")
    while not over.is_set():
        connection.execute("SELECT set_config('app.tenant', %s, false)", (str(chance.randrange(CUSTOMERS)),))
        connection.execute(
            "SELECT id, total FROM orders WHERE state = %s ORDER BY created LIMIT 20", ("done",)
        ).fetchall()


def _shop(statement: str, *draws: Draw, clients: int = 2, pause: float = 0.0) -> list[tuple[str, Client]]:
    return [("shop", sends(statement, *draws, pause=pause))] * clients


MISSING = (
    Scenario(
        "a missing index", ITEM, [("shop", search)] * 2, "missing-index", ["item", "customer"], ["(customer)"]
    ),
    Scenario(
        "one index for two statements",
        ORDERS,
        [("shop", two_searches)] * 2,
        "missing-index",
        ["orders", "customer_id"],
        ["CREATE INDEX CONCURRENTLY", "ON orders (customer_id"],
    ),
    Scenario(
        "the newest rows without an index on their order",
        ORDERS,
        _shop("SELECT id, total FROM orders WHERE region = %s ORDER BY created DESC LIMIT 20", below(5)),
        "missing-index",
        ["orders", "created"],
        ["created"],
    ),
    Scenario(
        "rare rows that are not sent yet",
        ORDERS,
        _shop("SELECT id, note FROM orders WHERE sent IS NULL AND total < %s", below(900)),
        "missing-index",
        ["orders"],
        ["WHERE sent IS NULL"],
    ),
    Scenario(
        "a rare state that the statement names",
        ORDERS,
        _shop("SELECT id, total FROM orders WHERE state = 'new' AND total > %s", below(900)),
        "missing-index",
        ["orders"],
        ["WHERE state = 'new'"],
        seldom=True,
    ),
    Scenario(
        "a view over a table without an index",
        (
            *ORDERS,
            "CREATE VIEW open_order AS SELECT id, customer_id AS who FROM orders WHERE total > 0",
        ),
        _shop("SELECT * FROM open_order WHERE who = %s", below(CUSTOMERS)),
        "missing-index",
        ["orders", "customer_id"],
        ["ON orders (customer_id)"],
        versions=range(16, 100),
        seldom=True,
    ),
    Scenario(
        "a policy of row security without an index",
        (*ORDERS, *POLICY),
        [("shop", of_a_tenant)] * 2,
        "missing-index",
        ["orders", "customer_id"],
        ["ON orders (customer_id"],
        seldom=True,
    ),
    Scenario(
        "a policy of row security with an index",
        (*ORDERS, *POLICY, "CREATE INDEX orders_of_customer ON orders (customer_id, created)"),
        [("shop", of_a_tenant)] * 2,
        seldom=True,
    ),
    Scenario(
        "an update by a column without an index",
        ORDERS,
        _shop("UPDATE orders SET note = 'y' WHERE customer_id = %s AND total = 1000", below(CUSTOMERS)),
        "missing-index",
        ["orders", "customer_id"],
        ["ON orders (customer_id"],
        seldom=True,
    ),
    Scenario(
        "a join to a table without an index",
        LINES,
        _shop(
            "SELECT sum(l.amount) FROM invoice i JOIN line l ON l.order_id = i.id WHERE i.customer = %s",
            below(5_000),
        ),
        "missing-index",
        ["line", "order_id"],
        ["ON line (order_id)"],
    ),
    Scenario(
        "a search for a part of a name",
        PEOPLE,
        _shop("SELECT id FROM people WHERE name ILIKE %s", lambda chance: f"%{chance.randrange(10**6)}%"),
        "missing-index",
        ["people", "name"],
        ["pg_trgm", "gin_trgm_ops"],
        seldom=True,
    ),
    Scenario(
        "a search in documents",
        PEOPLE,
        _shop(
            "SELECT id FROM people WHERE payload @> %s::jsonb",
            lambda chance: f'{{"kind": {chance.randrange(5000)}}}',
        ),
        "missing-index",
        ["people", "payload"],
        ["USING gin", "jsonb_path_ops"],
    ),
    Scenario(
        "a search in arrays",
        PEOPLE,
        _shop("SELECT id FROM people WHERE tags && ARRAY[%s::int]", below(3_000)),
        "missing-index",
        ["people", "tags"],
        ["USING gin (tags)"],
        seldom=True,
    ),
    Scenario(
        "the newest row of each, by an index on the order alone",
        READINGS,
        _shop(
            "SELECT d.id, r.at FROM device AS d CROSS JOIN LATERAL (SELECT at FROM reading AS r "
            "WHERE r.device = d.id ORDER BY at DESC LIMIT 1) AS r WHERE d.id < %s",
            below(60),
        ),
        "missing-index",
        ["reading", "device", "at"],
        ["(device, at)"],
        seldom=True,
    ),
    Scenario(
        "a day in a time zone",
        READINGS,
        _shop(
            "SELECT avg(value) FROM reading WHERE date_trunc('day', at AT TIME ZONE 'UTC') = %s::date",
            lambda chance: f"2026-01-{chance.randrange(1, 28)}",
        ),
        "index-not-usable",
        ["reading_at", "date_trunc"],
        ["AT TIME ZONE 'UTC'"],
        seldom=True,
    ),
    Scenario(
        "a tree without an index on the parent",
        TREE,
        _shop(
            "WITH RECURSIVE below AS (SELECT id FROM node WHERE id = %s UNION ALL "
            "SELECT n.id FROM node AS n JOIN below ON n.parent = below.id) SELECT count(*) FROM below",
            lambda chance: chance.randrange(2_000, 11_000),
        ),
        "missing-index",
        ["node", "parent"],
        ["ON node (parent)"],
        seldom=True,
    ),
    Scenario(
        "a search for words in texts",
        PEOPLE,
        _shop(
            "SELECT id FROM people WHERE to_tsvector('simple', name) @@ plainto_tsquery('simple', %s)",
            lambda chance: f"{chance.randrange(16**4):04x}",
        ),
        "missing-index",
        ["people", "to_tsvector"],
        ["USING gin"],
        seldom=True,
    ),
    Scenario(
        "the interval of a value",
        INTERVALS,
        _shop("SELECT name FROM region WHERE low <= %s AND high >= %s", lambda _: 10**8, lambda _: 10**8),
        "interval-lookup",
        ["region", "low", "high"],
        ["USING gist (int8range(low, high, '[]'))"],
        seldom=True,
    ),
    Scenario(
        "the network of an address",
        NETWORKS,
        _shop(
            "SELECT id FROM network WHERE block >>= %s::inet", lambda chance: f"0.1.{chance.randrange(256)}.7"
        ),
        "missing-index",
        ["network", "block"],
        ["USING gist (block inet_ops)"],
        seldom=True,
    ),
    Scenario(
        "an expression without an index",
        PEOPLE,
        _shop(
            "SELECT id FROM people WHERE lower(email) = %s",
            lambda chance: f"person{chance.randrange(150000)}@example.com",
        ),
        "missing-index",
        ["people", "lower(email)"],
        ["(lower(email))"],
        seldom=True,
    ),
)
SALES = (
    "CREATE TABLE sale AS SELECT n AS id, (n::bigint * 7919 % 200)::int AS shop, n % 1000 AS amount, "
    "repeat('x', 100) AS note FROM generate_series(1, 400000) AS n",
    "CREATE INDEX sale_shop ON sale (shop)",
    "VACUUM ANALYZE sale",
)
SUM_OF_SHOP = "SELECT sum(amount) FROM sale WHERE shop = %s"
COVERING = (
    Scenario(
        "scattered rows that an index finds, for one column of each",
        SALES,
        _shop(SUM_OF_SHOP, below(200), clients=3),
        "covering-index",
        ["sale", "sale_shop"],
        ["ON sale (shop) INCLUDE (amount)"],
    ),
    Scenario(
        "rows that an index with their column returns",
        (*SALES, "CREATE INDEX sale_shop_amount ON sale (shop) INCLUDE (amount)", "VACUUM ANALYZE sale"),
        _shop(SUM_OF_SHOP, below(200), clients=3),
        seldom=True,
    ),
)
TWO_SEARCHES = (
    "SELECT l.id, i.code FROM line AS l JOIN invoice AS i ON i.id = l.order_id "
    "WHERE i.code = %s OR l.tag = %s"
)
TAGGED = (
    *LINES,
    "ALTER TABLE line ADD tag text; UPDATE line SET tag = 't' || id",
    "ALTER TABLE invoice ADD code text; UPDATE invoice SET code = 'c' || id",
    "CREATE INDEX line_order ON line (order_id)",
    "CREATE INDEX line_tag ON line (tag)",
    "CREATE INDEX invoice_code ON invoice (code)",
    "VACUUM ANALYZE line, invoice",
)
NOT_USABLE = (
    Scenario(
        "an OR over columns of two tables",
        TAGGED,
        _shop(
            TWO_SEARCHES,
            lambda chance: f"c{chance.randrange(50_000)}",
            lambda chance: f"t{chance.randrange(1, 200_000)}",
        ),
        "index-not-usable",
        ["invoice.code", "line.tag"],
        ["UNION ALL", "IS NOT TRUE"],
        seldom=True,
    ),
    Scenario(
        "the parts of an OR over two tables in a SELECT each",
        TAGGED,
        _shop(
            TWO_SEARCHES.replace(" OR l.tag = %s", "")
            + " UNION ALL "
            + TWO_SEARCHES.replace("i.code = %s OR ", ""),
            lambda chance: f"c{chance.randrange(50_000)}",
            lambda chance: f"t{chance.randrange(1, 200_000)}",
        ),
        seldom=True,
    ),
    Scenario(
        "an order in another collation than that of its index",
        (*PEOPLE, 'CREATE INDEX people_name ON people (name COLLATE "POSIX")'),
        _shop("SELECT id, name FROM people ORDER BY name LIMIT 10", clients=3),
        "missing-index",
        ["people", "name"],
        ["ON people (name)"],
        seldom=True,
    ),
    Scenario(
        "a function on an indexed column",
        (*PEOPLE, "CREATE UNIQUE INDEX people_email ON people (email)"),
        _shop(
            "SELECT id FROM people WHERE lower(email) = %s",
            lambda chance: f"person{chance.randrange(150000)}@example.com",
        ),
        "index-not-usable",
        ["people_email", "lower(email)"],
        ["(lower(email))"],
    ),
    Scenario(
        "a cast of an indexed column",
        (*ORDERS, "CREATE INDEX orders_created ON orders (created)"),
        _shop(
            "SELECT id FROM orders WHERE created::date = %s::date + %s::int AND total = 5",
            lambda _: "2026-01-01",
            below(130),
        ),
        "index-not-usable",
        ["orders_created", "created", "date"],
        ["created >="],
        seldom=True,
    ),
    Scenario(
        "a parameter of another type",
        ORDERS,
        _shop("SELECT * FROM orders WHERE id = %s", lambda chance: float(chance.randrange(1, 200_000))),
        "index-not-usable",
        ["orders_pkey", "id"],
        ["$1::integer"],
    ),
    Scenario(
        "a prefix in a collation that does not order characters",
        (
            *PEOPLE[:1],
            'ALTER TABLE people ALTER code TYPE text COLLATE "en-x-icu"',
            *PEOPLE[1:],
            "CREATE INDEX people_code ON people (code)",
        ),
        _shop("SELECT id FROM people WHERE code LIKE %s", lambda chance: f"{chance.randrange(1000, 9999)}7%"),
        "index-not-usable",
        ["people_code"],
        ["text_pattern_ops"],
        seldom=True,
    ),
    Scenario(
        "a condition with OR on two columns",
        (*PEOPLE, "CREATE INDEX people_code ON people (code)"),
        _shop(
            "SELECT id FROM people WHERE code = %s OR city = %s",
            lambda chance: str(chance.randrange(150_000)),
            below(9_000),
        ),
        "index-not-usable",
        ["people"],
        ["(city)"],
    ),
    Scenario(
        "the second column of an index",
        (*ORDERS, "CREATE INDEX orders_total ON orders (total, customer_id)"),
        _shop("SELECT * FROM orders WHERE customer_id = %s", below(CUSTOMERS)),
        "index-not-usable",
        ["orders_total", "customer_id"],
        ["(customer_id)"],
        seldom=True,
    ),
)
LOGGED = (
    "CREATE TABLE event AS SELECT n AS id, n % 100 AS kind, md5(n::text) AS a, md5((n + 1)::text) AS b, "
    "md5((n + 2)::text) AS c, n AS at FROM generate_series(1, 150000) AS n",
    "ALTER TABLE event ADD PRIMARY KEY (id)",
)
RECORD = (
    "INSERT INTO event SELECT (random() * 2e9)::int + n, n % 100, md5((n * random())::text), "
    "md5((n * random())::text), md5((n * random())::text), n "
    "FROM generate_series(1, 500) AS n ON CONFLICT DO NOTHING"
)
UPKEEP = (
    Scenario(
        "indexes that repeat others",
        (
            *LOGGED,
            "CREATE INDEX event_a ON event (a)",
            "CREATE INDEX event_a_again ON event (a)",
            "CREATE INDEX event_b ON event (b)",
            "CREATE INDEX event_b_c ON event (b, c)",
            "VACUUM ANALYZE event",
        ),
        [
            *_shop(RECORD, pause=0.02),
            ("shop", sends("SELECT id FROM event WHERE a = %s AND b > %s", str, str, pause=0.01)),
        ],
        "redundant-index",
        ["event"],
        ["DROP INDEX CONCURRENTLY event_a_again", "DROP INDEX CONCURRENTLY event_b;"],
    ),
    Scenario(
        "indexes that nobody uses",
        (
            *LOGGED,
            "CREATE INDEX event_a ON event (a)",
            "CREATE INDEX event_b ON event (b)",
            "CREATE INDEX event_c ON event (c, a)",
            "VACUUM ANALYZE event",
        ),
        _shop(RECORD, pause=0.02),
        "unused-index",
        ["event"],
        ["DROP INDEX CONCURRENTLY event_b;"],
    ),
    Scenario(
        "an invalid index",
        (
            *ORDERS,
            "CREATE INDEX orders_customer ON orders (customer_id)",
            "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'orders_customer'::regclass",
        ),
        _shop("SELECT * FROM orders WHERE customer_id = %s", below(CUSTOMERS)),
        "invalid-index",
        ["orders_customer", "orders"],
        ["REINDEX INDEX CONCURRENTLY orders_customer"],
    ),
    Scenario(
        "deletes that scan the referring table",
        (
            *LINES,
            "ALTER TABLE line ADD CONSTRAINT line_invoice FOREIGN KEY (order_id) REFERENCES invoice",
            "INSERT INTO invoice SELECT n, 1 FROM generate_series(100000, 300000) AS n",
            "VACUUM ANALYZE invoice, line",
        ),
        _shop("DELETE FROM invoice WHERE id = %s", lambda chance: chance.randrange(100_000, 300_000)),
        "foreign-key-without-index",
        ["invoice", "line", "order_id"],
        ["ON line (order_id)"],
    ),
)
HEALTHY = (
    Scenario(
        "deletes with an index on the foreign key",
        (
            *LINES,
            "ALTER TABLE line ADD CONSTRAINT line_invoice FOREIGN KEY (order_id) REFERENCES invoice",
            "CREATE INDEX line_order ON line (order_id)",
            "INSERT INTO invoice SELECT n, 1 FROM generate_series(100000, 300000) AS n",
            "VACUUM ANALYZE invoice, line",
        ),
        _shop(
            "DELETE FROM invoice WHERE id = %s", lambda chance: chance.randrange(100_000, 300_000), clients=4
        ),
    ),
    Scenario(
        "most rows are wanted",
        ITEM,
        _shop(
            "SELECT count(*), sum(id) FROM item WHERE customer <> %s AND id > %s", below(20_000), below(10)
        ),
    ),
    Scenario(
        "a sum over the whole table",
        ORDERS,
        _shop("SELECT region, sum(total) FROM orders WHERE id > 0 GROUP BY region", pause=0.5),
    ),
    Scenario(
        "a small table without an index",
        (
            "CREATE TABLE tiny AS SELECT n AS id, n % 100 AS kind FROM generate_series(1, 2000) AS n",
            "VACUUM ANALYZE tiny",
        ),
        _shop("SELECT * FROM tiny WHERE kind = %s", below(100)),
    ),
    Scenario(
        "few rows behind an index in another order",
        (*ORDERS, "CREATE INDEX orders_customer ON orders (customer_id)"),
        _shop(
            "SELECT id FROM orders WHERE customer_id = %s AND total > 10 ORDER BY created DESC LIMIT 5",
            below(CUSTOMERS),
            clients=3,
        ),
        seldom=True,
    ),
)
SCENARIOS = (*MISSING, *COVERING, *NOT_USABLE, *UPKEEP, *HEALTHY)
