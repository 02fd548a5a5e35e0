"""The scripts that make and revert changes: locks, checks, settings of the database, texts as comments."""

from __future__ import annotations

from fakes.goldens import compare_cases
from uncork.experiment.cure.handed import down_sql, up_sql
from uncork.experiment.spec.sqltext import statements_in
from uncork.model.results.cure import Change, Net

INDEX = Change(
    "a_idx", "index", "Create an index\non orders.",
    'CREATE EXTENSION IF NOT EXISTS pg_trgm;\nCREATE INDEX CONCURRENTLY "A_idx" ON app.orders (a);',
    'DROP INDEX CONCURRENTLY app."A_idx";', "cured", "", Net(12.345, 10, 15, 100), against=("It's 1 MB.",),
)  # fmt: skip
SETTING = Change(
    "jit", "setting", "Turn jit off.", "ALTER ROLE app IN DATABASE shop SET jit = off;",
    "ALTER ROLE app IN DATABASE shop RESET jit;", "cured", "",
)  # fmt: skip
COST = Change(
    "cost", "setting", "", "ALTER SYSTEM SET random_page_cost = 1.1; SELECT pg_reload_conf();",
    "ALTER SYSTEM SET random_page_cost = '4'; SELECT pg_reload_conf();", "cured", "",
)  # fmt: skip
TEXT = Change(
    "text", "statement", "Use NOT EXISTS.", "SELECT 1\nWHERE ';' = $1;",
    "SELECT 2 WHERE $1 = ';'", "cured", ""
)  # fmt: skip
FILL = Change(
    "fill", "ddl", "Leave space.", "ALTER TABLE orders SET (fillfactor = 80); VACUUM (FULL, ANALYZE) orders;",
    "ALTER TABLE orders RESET (fillfactor);", "cured", "",
)  # fmt: skip
SWAP = Change(
    "swap", "set", "Count once.",
    "CREATE INDEX CONCURRENTLY i ON item (a);\nCREATE FUNCTION count_all() RETURNS trigger LANGUAGE "
    "plpgsql AS $body$\nBEGIN\n  UPDATE total SET n = n + 1;\n  RETURN NULL;\nEND\n$body$;\n"
    "DROP TRIGGER counting ON item;\n"
    "CREATE TRIGGER counting_all AFTER INSERT ON item FOR EACH STATEMENT EXECUTE FUNCTION count_all();",
    "DROP TRIGGER counting_all ON item;\nCREATE TRIGGER counting AFTER INSERT ON item FOR EACH ROW "
    "EXECUTE FUNCTION count();\nDROP FUNCTION count_all();\nDROP INDEX CONCURRENTLY i;", "cured", "",
)  # fmt: skip
DROPPED = Change("x", "index", "Drop it.", INDEX.undo, INDEX.sql, "cured", "")
OWN = Change(
    "x", "setting", "", "ALTER DATABASE a SET jit = off;", "ALTER DATABASE a SET jit = on;", "cured", ""
)


def scripts(*changes, database="shop", found=None):
    """Return the script that makes the changes, and the one that reverts them; each can be executed."""
    made = up_sql(changes, database, found), down_sql(changes, database)
    assert all(statements_in(one) or TEXT in changes for one in made)
    return made


def test_what_makes_and_what_reverts_changes():
    compare_cases("cure/handed", [
        ("an index is created without a lock timeout and then checked",
         *scripts(INDEX, found={"a_idx": "orders is read whole"})),
        ("an index that is created again is checked too", *scripts(DROPPED)),
        ("a setting is that of the database and returns to what it was",
         *scripts(SETTING, COST, database="My shop")),
        ("a setting of the database returns to its own value", *scripts(OWN, database="a")),
        ("a rewritten statement is a comment with both texts", *scripts(TEXT)),
        ("strong locks are waited for briefly", *scripts(FILL)),
        ("a trigger is replaced in a transaction and an index built outside of it", *scripts(SWAP)),
    ])  # fmt: skip
