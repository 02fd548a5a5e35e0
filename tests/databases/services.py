"""Databases as frameworks for web services lay them out, whose clients send several statements each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from threading import Event

from psycopg import Connection

from databases.scenario import Client, Scenario

Step = tuple[int, str, Callable[[Random], Sequence[object]]]
"""How often a client sends a statement beside the others, and a draw of its parameters."""


def mixed(*steps: Step, pause: float = 0.0) -> Client:
    """Return a client that sends one of several statements at a time, at random."""
    weights = [weight for weight, _, _ in steps]
    ready = Event()

    def client(connection: Connection, over: Event, chance: Random) -> None:
        ready.set()
        while not over.is_set():
            _, statement, draw = chance.choices(steps, weights)[0]
            cursor = connection.execute(statement.encode(), draw(chance))
            if cursor.description is not None:
                cursor.fetchall()
            if pause:
                over.wait(pause)

    client.ready = ready
    return client


DOCUMENTS = (
    "CREATE TABLE documents (id bigserial PRIMARY KEY, account_id bigint NOT NULL, title text NOT NULL, "
    "body text, created_at timestamptz NOT NULL DEFAULT now(), deleted_at timestamptz)",
    "INSERT INTO documents (account_id, title, body, created_at, deleted_at) "
    "SELECT 1 + (n * 7919 % 400), 'Document ' || n, repeat(md5(n::text), 6), "
    "timestamptz '2026-01-01' + n * interval '1 minute', CASE WHEN n % 3 = 0 THEN now() END "
    "FROM generate_series(1, 150000) AS n",
    "CREATE INDEX documents_deleted_at ON documents (deleted_at)",
    "VACUUM ANALYZE documents",
)
JOBS = (
    "CREATE TABLE jobs (id bigserial PRIMARY KEY, queue text NOT NULL DEFAULT 'default', "
    "state text NOT NULL DEFAULT 'available', args jsonb NOT NULL DEFAULT '{}', "
    "scheduled_at timestamptz NOT NULL DEFAULT now(), completed_at timestamptz)",
    "INSERT INTO jobs (queue, state, args, scheduled_at) "
    "SELECT CASE WHEN n % 4 = 0 THEN 'mailers' ELSE 'default' END, "
    "CASE WHEN n > 199000 THEN 'available' ELSE 'completed' END, jsonb_build_object('user_id', n), "
    "timestamptz '2026-11-01' + n * interval '1 second' FROM generate_series(1, 200000) AS n",
    "VACUUM ANALYZE jobs",
)
ROLES = (
    "CREATE TABLE users AS SELECT n AS id, 'u' || n || '@example.org' AS email, n % 10 <> 0 AS active "
    "FROM generate_series(1, 50000) AS n",
    "ALTER TABLE users ADD PRIMARY KEY (id)",
    "CREATE TABLE user_roles (user_id int, role_id int, PRIMARY KEY (user_id, role_id))",
    "INSERT INTO user_roles SELECT 1 + n / 4, 1 + (n::bigint * 7919 % 2000)::int "
    "FROM generate_series(0, 199999) AS n ON CONFLICT DO NOTHING",
    "VACUUM ANALYZE users, user_roles",
)
CONTACTS = (
    "CREATE TABLE contacts AS SELECT n AS id, substr(md5((n * 7)::text), 1, 10) AS last_name, "
    "md5(n::text) || '@example.com' AS email FROM generate_series(1, 120000) AS n",
    "ALTER TABLE contacts ADD PRIMARY KEY (id)",
    "CREATE INDEX contacts_last_name ON contacts (last_name)",
    "CREATE INDEX contacts_email ON contacts (email)",
    "VACUUM ANALYZE contacts",
)
SALES = (
    "CREATE TABLE sales AS SELECT n AS id, n % 12 AS region, n % 500 AS amount, "
    "CASE WHEN n % 10 < 8 THEN 'paid' ELSE 'open' END AS status FROM generate_series(1, 100000) AS n",
    "ALTER TABLE sales ADD PRIMARY KEY (id)",
    "VACUUM ANALYZE sales",
)
SESSIONS = (
    "CREATE TABLE sessions AS SELECT n AS id, repeat('d', 100) AS data FROM generate_series(1, 60) AS n",
    "ALTER TABLE sessions ADD PRIMARY KEY (id)",
    "CREATE TABLE settings AS SELECT 'key' || n AS name, 'v' AS value FROM generate_series(1, 40) AS n",
    "VACUUM ANALYZE sessions, settings",
)


def parts_of_words(chance: Random) -> tuple[object, ...]:
    """Return a pattern for each of two columns."""
    pattern = f"%{chance.randrange(16**5):05x}%"
    return pattern, pattern


def work_off(connection: Connection, over: Event, _: Random) -> None:
    """Take the next job of a queue, finish it, and add another."""
    while not over.is_set():
        taken = connection.execute(
            "UPDATE jobs SET state = 'executing' WHERE id = (SELECT id FROM jobs WHERE state = 'available' "
            "AND queue = %s ORDER BY scheduled_at, id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING id",
            ("default",),
        ).fetchone()
        connection.execute("UPDATE jobs SET state = 'completed', completed_at = now() WHERE id = %s", taken)
        connection.execute("INSERT INTO jobs (queue) VALUES ('default')")


def _web(client: Client, clients: int = 2) -> list[tuple[str, Client]]:
    return [("web", client)] * clients


SCENARIOS = (
    Scenario(
        "documents of a tenant that are not deleted",
        DOCUMENTS,
        _web(
            mixed(
                (
                    6,
                    "SELECT * FROM documents WHERE deleted_at IS NULL AND account_id = %s "
                    "ORDER BY created_at DESC LIMIT 20",
                    lambda chance: (chance.randrange(1, 401),),
                ),
                (
                    2,
                    "SELECT * FROM documents WHERE deleted_at IS NULL AND id = %s",
                    lambda chance: (chance.randrange(1, 150_001),),
                ),
                (
                    1,
                    "INSERT INTO documents (account_id, title) VALUES (%s, 'new')",
                    lambda chance: (chance.randrange(1, 401),),
                ),
                (
                    1,
                    "UPDATE documents SET deleted_at = now() WHERE id = %s",
                    lambda chance: (chance.randrange(1, 150_001),),
                ),
            )
        ),
        "missing-index",
        ["documents", "account_id"],
        ["account_id"],
        seldom=True,
    ),
    Scenario(
        "a queue that sorts its jobs to find the next one",
        JOBS,
        _web(work_off),
        "missing-index",
        ["jobs", "state"],
        ["scheduled_at"],
        seldom=True,
    ),
    Scenario(
        "the members of a role",
        ROLES,
        _web(
            mixed(
                (
                    1,
                    "SELECT u.id, u.email FROM users u JOIN user_roles ur ON ur.user_id = u.id "
                    "WHERE ur.role_id = %s AND u.active ORDER BY u.email LIMIT 50",
                    lambda chance: (chance.randrange(1, 2001),),
                ),
                (
                    1,
                    "SELECT role_id FROM user_roles WHERE user_id = %s",
                    lambda chance: (chance.randrange(1, 50_001),),
                ),
            )
        ),
        "index-not-usable",
        ["user_roles", "role_id"],
        ["(role_id"],
        seldom=True,
    ),
    Scenario(
        "contacts by parts of a name or an address",
        CONTACTS,
        _web(
            mixed(
                (
                    3,
                    "SELECT id, last_name, email FROM contacts WHERE last_name ILIKE %s OR email ILIKE %s "
                    "ORDER BY last_name LIMIT 25",
                    parts_of_words,
                ),
                (
                    6,
                    "SELECT * FROM contacts WHERE id = %s",
                    lambda chance: (chance.randrange(1, 120_001),),
                ),
            )
        ),
        "index-not-usable",
        ["contacts", "Patterns"],
        ["(last_name gin_trgm_ops)", "(email gin_trgm_ops)"],
        seldom=True,
    ),
    Scenario(
        "a dashboard that sums most rows",
        SALES,
        _web(
            mixed(
                (
                    1,
                    "SELECT region, count(*), sum(amount) FROM sales WHERE status = %s GROUP BY region",
                    lambda _: ("paid",),
                ),
                (9, "SELECT * FROM sales WHERE id = %s", lambda chance: (chance.randrange(1, 100_001),)),
            )
        ),
        seldom=True,
    ),
    Scenario(
        "sessions and settings in small tables",
        SESSIONS,
        _web(
            mixed(
                (
                    4,
                    "SELECT value FROM settings WHERE name = %s",
                    lambda chance: (f"key{chance.randrange(1, 41)}",),
                ),
                (
                    3,
                    "UPDATE sessions SET data = %s WHERE id = %s",
                    lambda chance: (f"d{chance.randrange(10**9)}", chance.randrange(1, 61)),
                ),
                pause=0.002,
            ),
            clients=4,
        ),
        seldom=True,
    ),
)
