"""Databases whose statements are planned or executed badly, and some that only look so."""

from __future__ import annotations

from random import Random

from databases.scenario import ITEM, ROWS, Scenario, sends

LOADED = (
    "CREATE TABLE parcel (id int PRIMARY KEY, depot int, batch int, state int) "
    "WITH (autovacuum_enabled = off)",
    "CREATE TABLE route AS SELECT n AS depot, n % 40 AS truck FROM generate_series(0, 1999) AS n",
    "VACUUM ANALYZE route",
    "INSERT INTO parcel SELECT n, n % 2000, 1, 0 FROM generate_series(1, 60000) AS n",
)
"""A table that was loaded and never analysed."""
CARS = (
    "CREATE TABLE car AS SELECT n AS id, n % 400 AS model, (n % 400) / 4 AS maker, (n % 400) / 4 AS country, "
    "n % 6000 AS dealer, repeat('x', 40) AS note FROM generate_series(1, 200000) AS n",
    "CREATE INDEX car_country ON car (country)",
    "CREATE TABLE dealer AS SELECT n AS id, n % 50 AS region FROM generate_series(0, 5999) AS n",
    "VACUUM ANALYZE car",
    "VACUUM ANALYZE dealer",
)
"""A table whose columns maker and country follow from model."""
ORDERS = (
    "CREATE TABLE orders AS SELECT n AS id, CASE WHEN n > 199900 THEN 'open' WHEN n % 2 = 0 THEN 'done' "
    "ELSE 'paid' END AS state, n % 50 AS shop, repeat('x', 80) AS note FROM generate_series(1, 200000) AS n",
    "ALTER TABLE orders ADD PRIMARY KEY (id)",
    "CREATE INDEX orders_state ON orders (state)",
    "VACUUM ANALYZE orders",
)
"""A table whose last rows have a rare state."""
POSTS = (
    "CREATE TABLE post AS SELECT n AS id, timestamptz '2026-01-01' + n * interval '1 minute' AS created, "
    "n % 40 AS author, repeat('x', 60) AS title FROM generate_series(1, 200000) AS n",
    "ALTER TABLE post ADD PRIMARY KEY (id), ALTER created SET NOT NULL",
    "CREATE INDEX post_created ON post (created, id)",
    "CREATE INDEX post_author ON post (author)",
    "VACUUM ANALYZE post",
)
"""A table whose rows are shown in pages."""
BLOCKED = (
    *ITEM,
    "CREATE INDEX item_customer ON item (customer)",
    "CREATE TABLE blocked AS SELECT n * 3 AS item FROM generate_series(1, 30000) AS n",
    "ALTER TABLE blocked ADD PRIMARY KEY (item)",
    "VACUUM ANALYZE blocked",
)
LINES = (
    "CREATE TABLE client AS SELECT n AS id, n % 10 AS region FROM generate_series(1, 40000) AS n",
    "CREATE TABLE payment AS SELECT n AS id, n % 40000 AS client, n * 0.01 AS amount "
    "FROM generate_series(1, 200000) AS n",
    "ALTER TABLE client ADD PRIMARY KEY (id)",
    "CREATE INDEX payment_client ON payment (client)",
    "VACUUM ANALYZE client",
    "VACUUM ANALYZE payment",
)
"""Clients with a few payments each."""
NEWEST = (
    *POSTS,
    "CREATE VIEW newest AS SELECT *, rank() OVER (PARTITION BY created::date ORDER BY created DESC) AS place "
    "FROM post",
)
RATES = (
    *LINES,
    "CREATE TABLE rate AS SELECT n AS region, 1.0 + n * 0.1 AS factor FROM generate_series(0, 999) AS n",
    "ALTER TABLE rate ADD PRIMARY KEY (region)",
    "VACUUM ANALYZE rate",
    "CREATE FUNCTION factor_of(wanted int) RETURNS numeric LANGUAGE plpgsql AS "
    "$$ BEGIN RETURN (SELECT factor FROM rate WHERE region = wanted); END $$",
    "CREATE FUNCTION limit_for(kind int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN kind * 10; END $$",
)
DOCUMENTS = (
    "CREATE TABLE document (id int PRIMARY KEY, folder int NOT NULL, title text, body text)",
    "ALTER TABLE document ALTER body SET STORAGE EXTERNAL",
    "INSERT INTO document SELECT n, n % 50, 'title ' || n, repeat(md5(n::text), 250) "
    "FROM generate_series(1, 5000) AS n",
    "CREATE INDEX document_folder ON document (folder)",
    "VACUUM ANALYZE document",
)
"""A table with a large text in each row."""
METERS = (
    "CREATE TABLE reading (meter int, taken timestamp NOT NULL, value int) PARTITION BY RANGE (taken)",
    "DO $$ BEGIN FOR day IN 0..29 LOOP EXECUTE format('CREATE TABLE reading_%s PARTITION OF reading FOR "
    "VALUES "
    "FROM (%L) TO (%L)', day, date '2026-01-01' + day, date '2026-01-02' + day); END LOOP; END $$",
    "INSERT INTO reading SELECT n % 500, timestamp '2026-01-01' + n % 30 * interval '1 day' "
    "+ n % 86400 * interval '1 second', n FROM generate_series(1, 200000) AS n",
    "CREATE INDEX reading_meter ON reading (meter)",
    "VACUUM ANALYZE reading",
)
"""A table with a partition for each day."""
MANY_PARTS = (
    "CREATE TABLE visit (site int, day int, hits int) PARTITION BY RANGE (day)",
    "DO $$ BEGIN FOR day IN 0..249 LOOP EXECUTE format('CREATE TABLE visit_%s PARTITION OF visit FOR VALUES "
    "FROM (%s) TO (%s)', day, day, day + 1); END LOOP; END $$",
    "INSERT INTO visit SELECT n % 100, n % 250, n FROM generate_series(1, 20000) AS n",
    "CREATE INDEX visit_site ON visit (site)",
    "ANALYZE visit",
)
"""A table with hundreds of tiny partitions."""


def any_of(most: int):
    """Return a draw of a number below `most`."""

    def draw(chance: Random) -> int:
        return chance.randrange(most)

    return draw


def always(value: object):
    """Return a draw of one value."""

    def draw(_chance: Random) -> object:
        return value

    return draw


SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "statistics that were never gathered",
        LOADED,
        [
            (
                "shop",
                sends(
                    "SELECT count(*) FROM parcel JOIN route ON route.depot = parcel.depot + 0 "
                    "WHERE batch = %s AND state = %s AND truck = %s",
                    always(1),
                    always(0),
                    any_of(40),
                ),
            )
        ]
        * 2,
        "stale-statistics",
        ("parcel",),
        ("ANALYZE parcel",),
    ),
    Scenario(
        "columns that depend on each other",
        CARS,
        [
            (
                "shop",
                sends(
                    "SELECT count(*) FROM car JOIN dealer ON dealer.id = car.dealer + 0 "
                    "WHERE maker = %s AND country = %s AND model / 4 = %s AND region = %s",
                    always(7),
                    always(7),
                    always(7),
                    any_of(50),
                ),
            )
        ]
        * 2,
        "correlated-columns",
        ("car", "maker", "country"),
        ("CREATE STATISTICS", "maker, country"),
    ),
    Scenario(
        "a generic plan for a rare value",
        ORDERS,
        [
            (
                "shop",
                sends(
                    "SELECT id, shop, note FROM orders WHERE state = %s ORDER BY id LIMIT %s",
                    always("open"),
                    always(20),
                    before=("SET plan_cache_mode = force_generic_plan",),
                ),
            )
        ]
        * 2,
        "generic-plan",
        ("orders.state",),
        ("plan_cache_mode = force_custom_plan",),
    ),
    Scenario(
        "the few values of a column",
        (*ORDERS, "CREATE INDEX orders_shop ON orders (shop)"),
        [("shop", sends("SELECT DISTINCT shop FROM orders ORDER BY shop"))] * 2,
        "distinct-values",
        ("orders", "shop"),
        ("WITH RECURSIVE",),
        seldom=True,
    ),
    Scenario(
        "a short statement that is compiled",
        ITEM,
        [
            (
                "shop",
                sends(
                    "SELECT customer, count(*), sum(id), max(note) FROM item WHERE id BETWEEN %s AND 2000 "
                    "GROUP BY customer HAVING count(*) > 4 ORDER BY 2",
                    any_of(100),
                    before=(
                        "SET jit = on",
                        "SET jit_above_cost = 5",
                        "SET jit_inline_above_cost = -1",
                        "SET jit_optimize_above_cost = -1",
                    ),
                ),
            )
        ]
        * 2,
        "jit",
        ("jit",),
        ("SET jit = off",),
        compiled=True,
    ),
    Scenario(
        "a sort on disk",
        ITEM,
        [
            (
                "shop",
                sends(
                    "SELECT * FROM item WHERE id BETWEEN %s AND 9000 ORDER BY note, customer DESC",
                    any_of(100),
                    before=("SET work_mem = '64kB'",),
                ),
            )
        ]
        * 2,
        "temporary-files",
        ("item",),
        ("work_mem",),
    ),
    Scenario(
        "pages by OFFSET",
        POSTS,
        [
            (
                "shop",
                sends(
                    "SELECT id, title FROM post ORDER BY created DESC LIMIT %s OFFSET %s",
                    always(20),
                    lambda chance: 1000 * chance.randrange(40, 150),
                ),
            )
        ]
        * 2,
        "offset-pagination",
        ("OFFSET", "post"),
        ("(created, id) < ($",),
    ),
    Scenario(
        "NOT IN with a large subquery",
        BLOCKED,
        [
            (
                "shop",
                sends(
                    "SELECT id FROM item WHERE customer = %s AND id NOT IN (SELECT item FROM blocked)",
                    any_of(20_000),
                ),
            )
        ]
        * 2,
        "not-in-subquery",
        ("NOT IN", "blocked"),
        ("NOT EXISTS (SELECT",),
    ),
    Scenario(
        "a subquery for each row",
        LINES,
        [
            (
                "shop",
                sends(
                    "SELECT id, (SELECT sum(amount) FROM payment WHERE payment.client = client.id) AS paid "
                    "FROM client WHERE region < %s",
                    always(10),
                ),
            )
        ]
        * 2,
        "subplan-not-hashed",
        ("payment",),
        ("GROUP BY",),
    ),
    Scenario(
        "a view that keeps filters out",
        NEWEST,
        [("shop", sends("SELECT id, place FROM newest WHERE author = %s", any_of(40)))] * 2,
        "view-barrier",
        ("newest", "author"),
        ("PARTITION BY",),
    ),
    Scenario(
        "a common table that is stored first",
        POSTS,
        [
            (
                "shop",
                sends(
                    "WITH shown AS MATERIALIZED (SELECT * FROM post WHERE author <> %s) "
                    "SELECT id, title FROM shown WHERE id = %s",
                    always(3),
                    any_of(200_000),
                ),
            )
        ]
        * 2,
        "materialised-cte",
        ("shown",),
        ("shown AS NOT MATERIALIZED (",),
    ),
    Scenario(
        "a function with a query for each row",
        RATES,
        [
            (
                "shop",
                sends("SELECT sum(factor_of(region)) FROM client WHERE id BETWEEN %s AND 8000", any_of(100)),
            )
        ]
        * 2,
        "function-per-row",
        ("factor_of",),
        ("join",),
    ),
    Scenario(
        "a volatile function in a condition",
        RATES,
        [
            (
                "shop",
                sends("SELECT region FROM client WHERE id = limit_for(%s)", any_of(4_000)),
            )
        ]
        * 2,
        "function-per-row",
        ("limit_for",),
        ("ALTER FUNCTION limit_for STABLE",),
        seldom=True,
    ),
    Scenario(
        "large values in a list",
        DOCUMENTS,
        [("shop", sends("SELECT * FROM document WHERE folder = %s", any_of(50)))] * 2,
        "wide-columns",
        ("document.body",),
        ("id, folder",),
    ),
    Scenario(
        "a partition key in an expression",
        METERS,
        [
            (
                "shop",
                sends(
                    "SELECT max(value) FROM reading WHERE date_trunc('day', taken) = %s::timestamp",
                    lambda chance: f"2026-01-{chance.randrange(1, 29):02}",
                ),
            )
        ]
        * 2,
        "partitions-not-pruned",
        ("reading", "taken"),
        ("taken >=",),
        seldom=True,
    ),
    Scenario(
        "hundreds of partitions",
        MANY_PARTS,
        [
            (
                "shop",
                sends(
                    "SELECT sum(hits) FROM visit WHERE site = %s AND day = (SELECT %s::int)",
                    any_of(100),
                    any_of(250),
                    before=("SET plan_cache_mode = force_custom_plan",),
                ),
            )
        ]
        * 2,
        "too-many-partitions",
        ("visit",),
        ("Prepare",),
    ),
    Scenario(
        "a range without an end",
        POSTS,
        [
            (
                "shop",
                sends(
                    "SELECT id, title FROM post WHERE created > %s::timestamptz",
                    lambda chance: f"2026-04-{chance.randrange(1, 20):02}",
                ),
            )
        ]
        * 2,
        "unbounded-range",
        ("post", "created"),
        ("created <",),
    ),
    Scenario(
        "random rows of a large table",
        POSTS,
        [("shop", sends("SELECT id, title FROM post ORDER BY random() LIMIT %s", always(5)))] * 3,
        "random-order",
        ("random()", "post"),
        ("ARRAY(SELECT least", "TABLESAMPLE SYSTEM"),
        seldom=True,
    ),
    Scenario(
        "all rows counted for each page",
        POSTS,
        [("shop", sends("SELECT count(*) FROM post"))] * 3,
        "whole-count",
        ("post",),
        ("LIMIT 1001", "reltuples"),
        seldom=True,
    ),
    Scenario(
        "pages by OFFSET with a filter that most rows pass",
        POSTS,
        [
            (
                "shop",
                sends(
                    "SELECT id, title FROM post WHERE author <> %s ORDER BY created DESC LIMIT 20 OFFSET %s",
                    any_of(40),
                    lambda chance: 1000 * chance.randrange(40, 150),
                ),
            )
        ]
        * 2,
        "offset-pagination",
        ("OFFSET", "post"),
        ("(created, id) < ($",),
        seldom=True,
    ),
    # Healthy: what looks like one of the above, and costs nothing.
    Scenario(
        "healthy pages from the start",
        POSTS,
        [
            (
                "shop",
                sends(
                    "SELECT id, title FROM post ORDER BY created DESC LIMIT %s OFFSET %s",
                    always(20),
                    lambda chance: 20 * chance.randrange(3),
                ),
            )
        ]
        * 3,
        seldom=True,
    ),
    Scenario(
        "healthy common tables, subqueries and NOT IN",
        BLOCKED,
        [
            (
                "shop",
                sends(
                    "WITH mine AS MATERIALIZED (SELECT * FROM item WHERE id = %s) SELECT mine.id, "
                    "(SELECT count(*) FROM blocked WHERE blocked.item = mine.id) FROM mine WHERE customer "
                    "> 3",
                    any_of(ROWS),
                ),
            ),
            (
                "other",
                sends(
                    "SELECT id FROM item WHERE id BETWEEN %s AND 50 AND id NOT IN (SELECT item FROM blocked "
                    "WHERE item < 60)",
                    any_of(40),
                ),
            ),
        ],
    ),
    Scenario(
        "healthy partitions",
        METERS,
        [
            (
                "shop",
                sends(
                    "SELECT max(value) FROM reading WHERE meter = %s AND taken >= %s::timestamp "
                    "AND taken < %s::timestamp + interval '1 day'",
                    any_of(500),
                    always("2026-01-07"),
                    always("2026-01-07"),
                ),
            )
        ]
        * 3,
    ),
    Scenario(
        "healthy reports on disk and compiled",
        POSTS,
        [
            (
                "reports",
                sends(
                    "SELECT author, title, count(*) FROM post WHERE id > %s GROUP BY author, title, id "
                    "ORDER BY title, author",
                    any_of(10),
                    pause=2.0,
                    before=("SET jit_above_cost = 1000",),
                ),
            ),
            ("shop", sends("SELECT * FROM post WHERE id = %s", any_of(200_000))),
        ],
    ),
)
