"""The scripts that make and revert changes: locks, checks, settings of the database, texts as comments."""

from __future__ import annotations

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


def plain(script):
    """The statements of a script without its comments."""
    kept = "\n".join(line for line in script.splitlines() if not line.startswith("--"))
    return [" ".join(one.split()) for one in statements_in(kept)]


def test_an_index_is_created_without_a_lock_timeout_and_then_checked():
    script = up_sql([INDEX], "shop", {"a_idx": "orders is read whole"})
    extension, timeout, create, check = plain(script)
    assert extension == "CREATE EXTENSION IF NOT EXISTS pg_trgm"
    assert timeout == "SET lock_timeout = 0"
    assert create == 'CREATE INDEX CONCURRENTLY "A_idx" ON app.orders (a)'
    assert "to_regclass('app.\"A_idx\"') AND indisvalid" in check
    assert 'Execute DROP INDEX CONCURRENTLY app."A_idx"; and then' in check
    for words in (
        "-- Create an index on orders.\n-- Finding: orders is read whole.\n",
        "12.3 s of sessions' time saved per hour (95 % interval: 10 to 15)",
        "-- Against: It's 1 MB.", "-- It locks no table.\nCREATE EXTENSION", "SHARE UPDATE EXCLUSIVE",
    ):  # fmt: skip
        assert words in script
    assert plain(down_sql([INDEX], "shop")) == [
        "SET lock_timeout = 0", 'DROP INDEX CONCURRENTLY app."A_idx"',
    ]  # fmt: skip


def test_an_index_that_is_created_again_is_checked_too():
    dropped = Change("x", "index", "Drop it.", INDEX.undo, INDEX.sql, "cured", "")
    assert "indisvalid" in plain(down_sql([dropped], "shop"))[-1]


def test_a_setting_is_that_of_the_database_and_returns_to_what_it_was():
    script = up_sql([SETTING, COST], "My shop")
    assert plain(script) == [
        'ALTER DATABASE "My shop" SET jit = \'off\'',
        'ALTER DATABASE "My shop" SET random_page_cost = \'1.1\'',
    ]  # fmt: skip
    assert "For one role only: ALTER ROLE app IN DATABASE shop SET jit = off;" in script
    assert plain(down_sql([SETTING, COST], "My shop")) == [
        'ALTER DATABASE "My shop" RESET random_page_cost', 'ALTER DATABASE "My shop" RESET jit',
    ]  # fmt: skip
    own = Change(
        "x", "setting", "", "ALTER DATABASE a SET jit = off;", "ALTER DATABASE a SET jit = on;", "cured", ""
    )
    assert plain(down_sql([own], "a")) == ["ALTER DATABASE a SET jit = 'on'"]


def test_a_rewritten_statement_is_a_comment_with_both_texts():
    script = up_sql([TEXT], "shop")
    assert plain(script) == plain(down_sql([TEXT], "shop")) == []
    assert "--   SELECT 1\n--   WHERE ';' = $1\n-- instead of:\n--   SELECT 2 WHERE $1 = ';'\n" in script


def test_strong_locks_are_waited_for_briefly():
    script = up_sql([FILL], "shop")
    assert plain(script) == [
        "SET lock_timeout = '2s'", "ALTER TABLE orders SET (fillfactor = 80)",
        "SET lock_timeout = '2s'", "VACUUM (FULL, ANALYZE) orders",
    ]  # fmt: skip
    assert "ACCESS EXCLUSIVE lock: nobody can read or write the table meanwhile.\nSET" in script


def test_a_trigger_is_replaced_in_a_transaction_and_an_index_built_outside_of_it():
    up = plain(up_sql([SWAP], "shop"))
    begun, ended = up.index("BEGIN"), up.index("COMMIT")
    assert [one.split("(")[0] for one in up[begun + 1 : ended]] == [
        "SET LOCAL lock_timeout = '2s'",
        "CREATE FUNCTION count_all",
        "DROP TRIGGER counting ON item",
        "CREATE TRIGGER counting_all AFTER INSERT ON item FOR EACH STATEMENT EXECUTE FUNCTION count_all",
    ]
    assert up.index("CREATE INDEX CONCURRENTLY i ON item (a)") < begun
    down = plain(down_sql([SWAP], "shop"))
    assert down.index("BEGIN") < down.index("DROP FUNCTION count_all()") < down.index("COMMIT")
    assert down[-1] == "DROP INDEX CONCURRENTLY i"
