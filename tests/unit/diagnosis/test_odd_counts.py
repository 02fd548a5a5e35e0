"""No count that a server can report makes a rule fail: zeros, ones, huge numbers, and unknown counts."""

from hypothesis import given
from hypothesis import strategies as st

from fakes.table_evidence import column, evidence, foreign_key, index, scan, statement, table
from uncork.diagnosis.findings import find_findings

STATEMENTS = (
    "SELECT * FROM item WHERE customer = $1",
    "SELECT note, big FROM item WHERE id = $1",
    "SELECT customer, count(*) FROM item WHERE at > $1 GROUP BY customer",
    "SELECT * FROM item i JOIN person p ON p.id = i.customer WHERE p.name LIKE $1 ORDER BY i.at LIMIT 10",
    "SELECT p.id, (SELECT count(*) FROM item i WHERE i.customer = p.id) FROM person p",
    "SELECT id FROM item WHERE customer = $1 OR note = $2",
    "SELECT count(*) FROM item",
    "SELECT DISTINCT customer FROM item",
    "SELECT id FROM item ORDER BY random() LIMIT 1",
    "SELECT id FROM item ORDER BY at OFFSET $1 LIMIT 20",
    "SELECT sum(id) FROM pick",
    "SELECT nextval('seq')",
    "INSERT INTO item (customer, note) VALUES ($1, $2)",
    "UPDATE item SET note = $1 WHERE customer = $2",
    "DELETE FROM person WHERE id = $1",
    "CREATE TEMP TABLE pick (id int)",
    "SAVEPOINT a",
    "COMMIT",
    "NOTIFY news",
    "LOCK TABLE item",
)
COLUMNS = (
    column("item", "id", "bigint"),
    column("item", "customer", distinct=20_000),
    column("item", "note", "text", distinct=None),
    column("item", "big", "text", distinct=0, width=2_000.0),
    column("item", "at", "timestamp with time zone", correlation=None),
    column("person", "id"),
    column("person", "name", "text"),
)
COUNTS = st.sampled_from((None, 0, 1, 7, 10**6, 10**12))
SIZES = st.sampled_from((0, 1, 10_000, 10**7))


@given(
    counts=st.lists(st.tuples(COUNTS, COUNTS, COUNTS), min_size=len(STATEMENTS), max_size=len(STATEMENTS)),
    sizes=st.tuples(SIZES, SIZES, SIZES),
    changed=SIZES,
    planned=SIZES,
)
def test_no_rule_fails_on_odd_counts(counts, sizes, changed, planned):
    rows, blocks, others = sizes
    statements = []
    for number, (sql, (calls, returned, read)) in enumerate(zip(STATEMENTS, counts, strict=True)):
        plans = (scan("item", "(customer = 5)", rows=planned, cost=planned),) if "item" in sql else ()
        mean = None if calls is None else 0.0 if returned == 0 else 5e6
        known = {"calls": calls, "rows": returned, "blocks": read, "mean_ns": mean, "plans": plans}
        statements.append(
            statement(number, sql, **known, temp_bytes=read, wal_bytes=returned, blocks_read=read)
        )
    written = {"inserted": changed, "updated": changed, "deleted": changed, "hot_updated": 0}
    tables = (table("item", rows, blocks, **written), table("person", others, blocks))
    seen = evidence(
        statements,
        tables,
        COLUMNS,
        (index("CREATE INDEX item_at ON item (at)", size=blocks), index("CREATE INDEX p ON person (id)")),
        (foreign_key("item", "customer", "person"),),
    )
    for one in find_findings(seen):
        assert one.headline
        assert one.bill is None or 0.0 <= one.bill.share <= 1.0
