"""Databases whose cost is inside a function or a trigger, and a twin that needs nothing."""

from __future__ import annotations

from databases.indexes import LINES, ORDERS, below
from databases.scenario import Client, Scenario, sends

ARCHIVE = (
    *LINES,
    "ALTER TABLE line ADD CONSTRAINT line_invoice FOREIGN KEY (order_id) REFERENCES invoice",
    "INSERT INTO invoice SELECT n, 1 FROM generate_series(100000, 300000) AS n",
    "CREATE FUNCTION archive_old(wanted int) RETURNS int LANGUAGE plpgsql AS $$ DECLARE gone int; BEGIN "
    "/* DELETE FROM line; */ DELETE FROM invoice WHERE id = wanted RETURNING id INTO gone; "
    "RETURN gone; END $$",
    "VACUUM ANALYZE invoice, line",
)
TOTALS = (
    *ORDERS,
    "CREATE TABLE customer_totals AS SELECT n AS customer_id, 0 AS amount, repeat('x', 40) AS note "
    "FROM generate_series(0, 99999) AS n",
    "CREATE FUNCTION add_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    "IF NEW.total <> OLD.total THEN UPDATE customer_totals SET amount = amount + NEW.total - OLD.total "
    "WHERE customer_id = NEW.customer_id; END IF; RETURN NEW; END $$",
    "CREATE TRIGGER adding AFTER UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION add_up()",
    "VACUUM ANALYZE customer_totals",
)


def change(pause: float = 0.0) -> tuple[str, Client]:
    """Return a client that fires the trigger; without a pause, it works like a loop over rows."""
    return "shop", sends("UPDATE orders SET total = total + 1 WHERE id = %s", below(200_000), pause=pause)


def remove(pause: float = 0.0) -> tuple[str, Client]:
    """Return a client that calls the function."""
    return "shop", sends(
        "SELECT archive_old(%s)", lambda chance: chance.randrange(100_000, 300_000), pause=pause
    )


SCENARIOS = (
    Scenario(
        "a function deletes rows, and the foreign key has no index",
        ARCHIVE,
        [remove()] * 2,
        "foreign-key-without-index",
        ["invoice", "line", "order_id"],
        ["ON line (order_id)"],
        seldom=True,
    ),
    Scenario(
        "a trigger searches a table without an index",
        TOTALS,
        [change()] * 2,
        "missing-index",
        ["customer_totals", "customer_id"],
        ["ON customer_totals (customer_id)"],
        seldom=True,
    ),
    Scenario(
        "a function and a trigger that search by indexes",
        (
            *ARCHIVE,
            *TOTALS,
            "CREATE INDEX line_order ON line (order_id)",
            "ALTER TABLE customer_totals ADD PRIMARY KEY (customer_id)",
            "VACUUM ANALYZE",
        ),
        [*[change(0.03)] * 3, *[remove(0.03)] * 3],
        seldom=True,
    ),
)
