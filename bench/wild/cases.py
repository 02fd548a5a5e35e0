"""Published cases, rebuilt small: the database, its clients, the published change, and what uncork must do.

Each case has a `Scenario` (``tests/databases``), whose clients are real sessions. README.md cites the public
issue or pull request of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import md5
from random import Random
from threading import Event
from typing import Final, Literal

from psycopg import Connection

from databases.scenario import Client, Draw, Scenario, sends

Expected = Literal["cured", "named", "left"]
"""cured: a copy proves the published change; named: it is the first finding's first candidate, which only a
person can make; left: no change may be proposed, because the tempting one harms or gains nothing."""


@dataclass(frozen=True)
class Case:
    """A published case.

    `unit` is part of the text of a statement that is called once for each unit of work, with the present
    clients and with `clients`, those of the published change. `change` is its SQL. For a case that must be
    left alone, they are the tempting change. `rare` are statements that nobody executes during the watch;
    they are executed once before and after a change, and rolled back. `silent` are the rules that must find
    nothing.
    """

    scenario: Scenario
    expected: Expected
    unit: str
    change: Sequence[str] = ()
    clients: Sequence[tuple[str, Client]] = ()
    rare: Sequence[str] = ()
    silent: Sequence[str] = ()
    seconds: float = 8.0


def below(number: int) -> Draw:
    """Return a draw of a whole number."""
    return lambda chance: chance.randrange(number)


# ---- GVM: a results page whose compilation takes most of its time ----

_FLAGS: Final = ",\n".join(
    f"EXISTS (SELECT FROM override o WHERE o.nvt = r.nvt AND o.severity > {number} "
    f"AND (o.host = r.host OR o.host IS NULL)) AS flag_{number}"
    for number in range(12)
)
_RESULTS: Final = (
    "CREATE TABLE result AS SELECT n AS id, n % 80 AS report, n % 900 AS nvt, n % 60 AS host, "
    "(n % 100) / 10.0 AS severity, md5(n::text) AS description FROM generate_series(1, 80000) AS n",
    "ALTER TABLE result ADD PRIMARY KEY (id)",
    "CREATE INDEX result_report ON result (report)",
    "CREATE TABLE override AS SELECT n AS id, n % 9000 AS nvt, n % 60 AS host, n % 11 AS severity "
    "FROM generate_series(1, 60000) AS n",
    "ALTER TABLE override ADD PRIMARY KEY (id)",
    "CREATE INDEX override_nvt ON override (nvt)",
    "VACUUM ANALYZE result, override",
)
_PAGE: Final = (
    f"SELECT r.id, r.nvt, r.host, r.severity, {_FLAGS} FROM result r WHERE r.report = %s "  # noqa: S608
    "ORDER BY r.severity DESC"
)

JIT: Final = Case(
    Scenario(
        "GVM: a results page compiled by jit",
        _RESULTS,
        [("gvm", sends(_PAGE, below(80)))] * 3,
        "jit",
        compiled=True,
    ),
    "cured",
    "FROM result r",
    ("ALTER DATABASE {database} SET jit = off",),
    seconds=20.0,
)

# ---- Janus: a counter that each uploaded report updates ----


def _upload(shards: int, *, batched: bool) -> Client:
    """Return a client that stores ten reports in a transaction, and counts them one by one or at once."""

    def client(connection: Connection, over: Event, chance: Random) -> None:
        count = (
            "INSERT INTO task_upload_counters (task_id, ord, report_success) VALUES (1, %s, %s) "
            "ON CONFLICT (task_id, ord) DO UPDATE "
            "SET report_success = task_upload_counters.report_success + excluded.report_success"
        )
        while not over.is_set():
            shard = chance.randrange(shards)
            connection.execute("BEGIN")
            for _ in range(10):
                connection.execute(
                    "INSERT INTO client_reports (task_id, nonce, share) VALUES (1, %s, repeat('x', 200))",
                    (f"{chance.getrandbits(128):032x}",),
                )
                if not batched:
                    connection.execute(count, (shard, 1))
            if batched:
                connection.execute(count, (shard, 10))
            connection.execute("COMMIT")

    return client


COUNTER: Final = Case(
    Scenario(
        "Janus: a counter that each insert updates",
        (
            "CREATE TABLE client_reports (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
            "task_id bigint NOT NULL, nonce text NOT NULL, share text, UNIQUE (task_id, nonce))",
            "CREATE TABLE task_upload_counters (task_id bigint, ord bigint, "
            "report_success bigint NOT NULL DEFAULT 0, PRIMARY KEY (task_id, ord))",
            "INSERT INTO task_upload_counters SELECT n, 0, 0 FROM generate_series(1, 50) AS n",
            "VACUUM ANALYZE task_upload_counters",
        ),
        [("aggregator", _upload(1, batched=False))] * 8,
        "hot-row",
        names=("task_upload_counters",),
        remedy=("over 16 rows",),
    ),
    "named",
    "INSERT INTO client_reports",
    ("ALTER TABLE task_upload_counters SET (fillfactor = 50)",),
    [("aggregator", _upload(32, batched=True))] * 8,
)

# ---- Cala: balances whose updates are never heap-only ----


def _accounts(chance: Random) -> list[int]:
    """Return the accounts of a journal, whose rows lie together."""
    first = chance.randrange(1, 39_950)
    return list(range(first, first + 50))


_POST: Final = sends(
    "UPDATE current_balances SET latest_version = latest_version + 1, "
    "settled = settled + 1 WHERE account_id = ANY (%s)",
    _accounts,
    before=("SET synchronous_commit = off",),
)
ROOM: Final = Case(
    Scenario(
        "Cala: balances without room for updates",
        (
            "CREATE TABLE current_balances AS SELECT md5(n::text)::uuid AS journal_id, n AS account_id, "
            "'BTC' AS currency, 1 AS latest_version, 0::numeric AS settled, "
            "jsonb_build_object('entry', md5(n::text), 'pad', repeat('x', 400)) AS latest_values, "
            "timestamptz '2026-01-01' + n * interval '1 minute' AS created_at "
            "FROM generate_series(1, 40000) AS n",
            "ALTER TABLE current_balances ADD PRIMARY KEY (account_id)",
            "CREATE UNIQUE INDEX current_balances_key ON current_balances (journal_id, account_id, currency)",
            "CREATE INDEX current_balances_created ON current_balances (created_at, journal_id)",
            "VACUUM ANALYZE current_balances",
        ),
        [("ledger", _POST)] * 3,
        "hot-prevented",
        names=("current_balances",),
        remedy=("fillfactor",),
    ),
    "cured",
    "UPDATE current_balances",
    (
        "ALTER TABLE current_balances SET (fillfactor = 70)",
        "VACUUM (FULL, ANALYZE) current_balances",
    ),
)

# ---- Harbor: tasks found by a value within a document ----

DOCUMENT: Final = Case(
    Scenario(
        "Harbor: tasks by a value in a document",
        (
            "CREATE TABLE task AS SELECT n AS id, n / 3 AS execution_id, 'Success' AS status, "
            "json_build_object('artifact_id', n, 'report_uuids', json_build_array(md5(n::text)), "
            "'robot_id', n % 7, 'note', repeat('x', 80)) AS extra_attrs "
            "FROM generate_series(1, 30000) AS n",
            "ALTER TABLE task ADD PRIMARY KEY (id)",
            "VACUUM ANALYZE task",
        ),
        [
            (
                "core",
                sends(
                    "SELECT * FROM task WHERE extra_attrs::jsonb -> 'report_uuids' @> %s::jsonb",
                    lambda chance: f'["{md5(b"%d" % chance.randrange(1, 30_000)).hexdigest()}"]',  # noqa: S324
                ),
            )
        ]
        * 2,
        "missing-index",
        names=("task",),
        remedy=("USING gin",),
    ),
    "cured",
    "FROM task WHERE",
    ("CREATE INDEX idx_task_report_uuids ON task USING gin ((extra_attrs::jsonb -> 'report_uuids'))",),
)

# ---- Trustify: deletes that cascade to tables without an index ----

_CHILDREN: Final = {"advisory_vulnerability_score": 40_000, "purl_status": 80_000, "product_status": 40_000}


def _ingest(connection: Connection, over: Event, chance: Random) -> None:
    """Delete an advisory, and load it anew with its scores."""
    while not over.is_set():
        number = chance.randrange(1, 20_000)
        connection.execute("DELETE FROM advisory WHERE id = %s", (number,))
        connection.execute("INSERT INTO advisory VALUES (%s, 'new') ON CONFLICT DO NOTHING", (number,))


CASCADE: Final = Case(
    Scenario(
        "Trustify: cascades without an index",
        (
            "CREATE TABLE advisory AS SELECT n AS id, 'advisory ' || n AS title "
            "FROM generate_series(0, 19999) AS n",
            "ALTER TABLE advisory ADD PRIMARY KEY (id)",
            *(
                statement
                for name, rows in _CHILDREN.items()
                for statement in (
                    f"CREATE TABLE {name} AS SELECT n AS id, n * 7919 % 20000 AS advisory_id, "  # noqa: S608
                    f"n % 9 AS status FROM generate_series(1, {rows}) AS n",
                    f"ALTER TABLE {name} ADD PRIMARY KEY (id), ADD FOREIGN KEY (advisory_id) "
                    "REFERENCES advisory (id) ON DELETE CASCADE",
                )
            ),
            f"VACUUM ANALYZE advisory, {', '.join(_CHILDREN)}",
        ),
        [("importer", _ingest)] * 2,
        "foreign-key-without-index",
        names=("advisory",),
        remedy=("(advisory_id)",),
    ),
    "cured",
    "DELETE FROM advisory",
    tuple(f"CREATE INDEX ON {name} (advisory_id)" for name in _CHILDREN),
)

# ---- Yuzu: the items of each pack of a page, one query a pack ----


def _list_packs(*, at_once: bool) -> Client:
    def client(connection: Connection, over: Event, chance: Random) -> None:
        query = "SELECT id, name FROM product_packs WHERE id > %s ORDER BY id LIMIT 100"
        while not over.is_set():
            packs = connection.execute(query, (chance.randrange(9_000),)).fetchall()
            numbers = [number for number, _ in packs]
            if at_once:
                connection.execute(
                    "SELECT pack_id, kind, body FROM pack_items WHERE pack_id = ANY (%s)", (numbers,)
                ).fetchall()
                continue
            for number in numbers:
                connection.execute(
                    "SELECT kind, body FROM pack_items WHERE pack_id = %s", (number,)
                ).fetchall()

    return client


LOOP: Final = Case(
    Scenario(
        "Yuzu: a query for the items of each pack",
        (
            "CREATE TABLE product_packs AS SELECT n AS id, 'pack ' || n AS name "
            "FROM generate_series(1, 10000) AS n",
            "ALTER TABLE product_packs ADD PRIMARY KEY (id)",
            "CREATE TABLE pack_items AS SELECT n AS id, n % 10000 + 1 AS pack_id, n % 5 AS kind, "
            "repeat('x', 200) AS body FROM generate_series(1, 30000) AS n",
            "ALTER TABLE pack_items ADD PRIMARY KEY (id), "
            "ADD FOREIGN KEY (pack_id) REFERENCES product_packs (id)",
            "CREATE INDEX pack_items_pack ON pack_items (pack_id)",
            "VACUUM ANALYZE product_packs, pack_items",
        ),
        [("server", _list_packs(at_once=False))] * 3,
        "lookup-loop",
        names=("pack_items",),
        remedy=("= ANY ($1)",),
    ),
    "named",
    "FROM product_packs",
    clients=[("server", _list_packs(at_once=True))] * 3,
)

# ---- Transitland: pages far from the first by OFFSET ----

_STOPS: Final = (
    "CREATE TABLE schedule_stop_pairs AS SELECT n AS id, (n - 1) / 100000 AS operator_id, n % 977 AS trip, "
    "repeat('x', 80) AS note FROM generate_series(1, 300000) AS n",
    "ALTER TABLE schedule_stop_pairs ADD PRIMARY KEY (id)",
    "CREATE INDEX schedule_stop_pairs_operator ON schedule_stop_pairs (operator_id, id)",
    "VACUUM ANALYZE schedule_stop_pairs",
)
OFFSET: Final = Case(
    Scenario(
        "Transitland: pages by a large OFFSET",
        _STOPS,
        [
            (
                "feed",
                sends(
                    "SELECT * FROM schedule_stop_pairs WHERE operator_id = %s ORDER BY id "
                    "LIMIT 200 OFFSET %s",
                    below(3),
                    lambda chance: 200 * chance.randrange(100, 450),
                ),
            )
        ]
        * 2,
        "offset-pagination",
        names=("OFFSET", "schedule_stop_pairs"),
        remedy=("(id) > ($",),
    ),
    "named",
    "FROM schedule_stop_pairs",
    clients=[
        (
            "feed",
            sends(
                "SELECT * FROM schedule_stop_pairs WHERE operator_id = %s AND id > %s ORDER BY id LIMIT 200",
                lambda _: 1,
                lambda chance: 100_000 + 200 * chance.randrange(100, 450),
            ),
        )
    ]
    * 2,
)

# ---- Auxx: a ranked list, for which a key is slower than OFFSET ----

_RANK: Final = "ts_rank_cd(body, to_tsquery('simple', %s)) + ts_rank(title, to_tsquery('simple', %s))"
_MATCH: Final = "FROM records WHERE body @@ to_tsquery('simple', %s)"


def _ranked(*, keyset: bool) -> Client:
    """Return a client that reads the first pages of a ranked list."""

    def client(connection: Connection, over: Event, chance: Random) -> None:
        page = f"SELECT id, {_RANK} AS rank {_MATCH}"
        while not over.is_set():
            word = f"w{chance.randrange(40)}"
            after: tuple[float, int] | None = None
            for place in range(3):
                if not keyset:
                    connection.execute(
                        f"{page} ORDER BY rank DESC, id DESC LIMIT 20 OFFSET %s".encode(),
                        (word, word, word, 20 * place),
                    ).fetchall()
                    continue
                more, values = "", list[object]()
                if after is not None:
                    more = f" AND ({_RANK} < %s::real OR ({_RANK} = %s::real AND id < %s))"
                    values = [word, word, after[0], word, word, after[0], after[1]]
                rows = connection.execute(
                    f"{page}{more} ORDER BY rank DESC, id DESC LIMIT 20".encode(),
                    (word, word, word, *values),
                ).fetchall()
                after = (rows[-1][1], rows[-1][0]) if rows else None

    return client


KEYSET: Final = Case(
    Scenario(
        "Auxx: the first pages of a ranked list",
        (
            "CREATE TABLE records AS SELECT n AS id, to_tsvector('simple', 'record w' || n % 40) AS title, "
            "to_tsvector('simple', 'w' || n % 40 || ' w' || n % 9 || ' text w' || n % 40 || ' ' || "
            "repeat('filler ', n % 5)) AS body FROM generate_series(1, 40000) AS n",
            "ALTER TABLE records ADD PRIMARY KEY (id)",
            "CREATE INDEX records_body ON records USING gin (body)",
            "VACUUM ANALYZE records",
        ),
        [("search", _ranked(keyset=False))] * 2,
    ),
    "left",
    "FROM records WHERE",
    clients=[("search", _ranked(keyset=True))] * 2,
    silent=("offset-pagination",),
)

# ---- NOT IN with a subquery that fits into a hash table ----

_TEXTS: Final = (
    "CREATE TABLE texts AS SELECT n AS id, n % 50 AS kind, repeat('x', 40) AS body "
    "FROM generate_series(1, 20000) AS n",
    "ALTER TABLE texts ADD PRIMARY KEY (id)",
    "CREATE TABLE details AS SELECT n AS id, n * 2 AS doc_id FROM generate_series(1, 9000) AS n",
    "ALTER TABLE details ADD PRIMARY KEY (id), ALTER doc_id SET NOT NULL",
    "CREATE INDEX details_doc ON details (doc_id)",
    "VACUUM ANALYZE texts, details",
)
NOT_IN: Final = Case(
    Scenario(
        "NOT IN with a hashed subquery",
        _TEXTS,
        [
            (
                "shop",
                sends(
                    "SELECT count(*) FROM texts WHERE kind <> %s AND id NOT IN (SELECT doc_id FROM details)",
                    below(50),
                ),
            )
        ]
        * 2,
    ),
    "left",
    "FROM texts WHERE",
    clients=[
        (
            "shop",
            sends(
                "SELECT count(*) FROM texts WHERE kind <> %s AND NOT EXISTS "
                "(SELECT FROM details WHERE details.doc_id = texts.id)",
                below(50),
            ),
        )
    ]
    * 2,
    silent=("not-in-subquery",),
)

# ---- Nocturne and Super Productivity: indexes that are used rarely but decisively ----

_SOME_SYNCS: Final = sends(
    "UPDATE operations SET received_at = now() WHERE id = ANY (%s)",
    lambda chance: sorted(chance.sample(range(1, 150_000), 200)),
    before=("SET synchronous_commit = off",),
)
_RECORD: Final = sends(
    "INSERT INTO operations (user_id, device_id, received_at, entity) "
    "SELECT n % 500, n % 3000, now(), md5(n::text || random()) FROM generate_series(1, 200) AS n",
    before=("SET synchronous_commit = off",),
    pause=0.02,
)
_PURGE: Final = (
    "SELECT id FROM operations WHERE received_at < timestamptz '2026-01-01 00:02' ORDER BY received_at "
    "LIMIT 500"
)
RARE: Final = Case(
    Scenario(
        'Nocturne: "unused" indexes of a nightly query and of a foreign key',
        (
            "CREATE TABLE device AS SELECT n AS id, 'device ' || n AS name "
            "FROM generate_series(0, 4999) AS n",
            "ALTER TABLE device ADD PRIMARY KEY (id)",
            "CREATE TABLE operations (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, "
            "user_id int NOT NULL, device_id int NOT NULL REFERENCES device (id) ON DELETE CASCADE, "
            "received_at timestamptz NOT NULL, entity text NOT NULL)",
            "INSERT INTO operations (user_id, device_id, received_at, entity) SELECT n % 500, n % 3000, "
            "timestamptz '2026-01-01' + n * interval '1 second', md5(n::text) "
            "FROM generate_series(1, 150000) AS n",
            "CREATE INDEX operations_user ON operations (user_id)",
            "CREATE INDEX operations_received ON operations (received_at)",
            "CREATE INDEX operations_entity ON operations (entity)",
            "CREATE INDEX operations_device ON operations (device_id)",
            "VACUUM ANALYZE operations, device",
            _PURGE,
        ),
        [("sync", _SOME_SYNCS), ("sync", _SOME_SYNCS), ("import", _RECORD)],
    ),
    "left",
    "UPDATE operations",
    ("DROP INDEX operations_received", "DROP INDEX operations_entity", "DROP INDEX operations_device"),
    rare=(
        _PURGE,
        "DELETE FROM device WHERE id BETWEEN 3000 AND 3199",
        "SELECT id FROM operations WHERE entity = md5('77')",
    ),
)

CASES: Final = (JIT, COUNTER, ROOM, DOCUMENT, CASCADE, LOOP, OFFSET, KEYSET, NOT_IN, RARE)
