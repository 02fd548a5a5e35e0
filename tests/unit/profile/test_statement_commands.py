"""Commands have a name and their tables; no text of the fixtures raises an error."""

import gzip
import re
from pathlib import Path

import pytest

from uncork.profile.statement_shape import statement_shape

TABLES = {"orders": ("id", "note"), "shop.items": ("id", "sku")}
ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("sql", "kind", "tables"),
    [
        ("START TRANSACTION READ ONLY", "begin", []),
        ("COMMIT", "commit", []),
        ("ROLLBACK TO SAVEPOINT a", "rollback to savepoint", []),
        ("SAVEPOINT $1", "savepoint", []),
        ("SET LOCAL work_mem = $1", "set", []),
        ("RESET ALL", "reset", []),
        ("FETCH $1 IN c", "fetch", []),
        ("LOCK TABLE orders IN SHARE MODE", "lock", [("orders", False)]),
        ("TRUNCATE orders, shop.items", "truncate", [("orders", True), ("shop.items", True)]),
        ("COPY orders (id) FROM STDIN", "copy", [("orders", True)]),
        ("COPY (SELECT id FROM orders) TO STDOUT", "copy", [("orders", False)]),
        ("VACUUM (ANALYZE) orders", "vacuum", [("orders", False)]),
        ("ANALYZE", "analyze", []),
        ("CREATE INDEX CONCURRENTLY ON orders (lower(note))", "create index", [("orders", False)]),
        ("ALTER TABLE orders ADD COLUMN x int", "alter table", [("orders", False)]),
        ("ALTER TABLE orders RENAME COLUMN x TO y", "alter table", [("orders", False)]),
        ("DROP TABLE IF EXISTS shop.items", "drop table", [("shop.items", False)]),
        ("DROP MATERIALIZED VIEW x", "drop materialized view", []),
        ("REFRESH MATERIALIZED VIEW x", "refresh materialized view", [("x", False)]),
        ("CREATE TEMP TABLE x (a int)", "create table", [("x", True)]),
        ("CREATE TEMP TABLE x AS SELECT * FROM orders", "create table as", [("orders", False), ("x", True)]),
        ("SELECT id INTO TEMP x FROM orders", "create table as", [("orders", False), ("x", True)]),
        ("CREATE AGGREGATE a (int) (sfunc = f, stype = int)", "create aggregate", []),
        ("CREATE TYPE mood AS ENUM ('a')", "create type", []),
        ("EXPLAIN SELECT * FROM orders", "explain", [("orders", False)]),
        ("DECLARE c CURSOR FOR SELECT * FROM orders", "declare cursor", [("orders", False)]),
        ("CALL refresh($1)", "call", []),
        ("REVOKE SELECT ON orders FROM public", "revoke", [("orders", False)]),
    ],
)
def test_commands_have_their_name_and_tables(sql, kind, tables):
    found = statement_shape(sql, TABLES)
    assert found.kind == kind
    assert [(one.name, one.changed) for one in found.tables] == tables
    assert found.temporary == (" TEMP " in sql)


@pytest.mark.parametrize(
    "sql",
    [
        "",
        ";",
        "SELEC 1",
        "SELECT 1; SELECT 2",
        "SELECT 'cut short",
        "SELECT '\0'",
        "SELECT " + " || ".join(["note"] * 2000),
        " UNION ".join(["SELECT 1"] * 500),
    ],
    ids=lambda sql: sql[:20],
)
def test_what_the_grammar_rejects_has_no_shape(sql):
    assert statement_shape(sql, TABLES) is None
    assert statement_shape(sql, TABLES, template=True) is None


def _statements():
    """Yield the SQL in the fixtures and cases, and what is left of it in logs."""
    folders = (ROOT / "tests" / "fixtures", ROOT / "python" / "uncork" / "cases")
    for path in sorted(one for folder in folders for one in folder.rglob("*")):
        if path.suffix == ".sql":
            yield from path.read_text().split(";")
        elif path.suffix in {".log", ".gz", ".py"}:
            whole = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            found = re.findall(
                r"(?:statement|execute [^:]*|Query Text): +(.*)|\"\"\"(.*?)\"\"\"",
                whole.decode(errors="replace"),
            )
            yield from [one or other for one, other in found][:500]


def test_no_statement_of_the_fixtures_raises_an_error():
    kinds = [
        found.kind
        for sql in dict.fromkeys(one.strip() for one in _statements() if len(one) < 20_000)
        for template in (False, True)
        if (found := statement_shape(sql, TABLES, template=template)) is not None
    ]
    assert len(kinds) > 250
    assert {"select", "insert", "update", "create table", "create index"} <= set(kinds)
