"""The arguments of `uncork sql`."""

import pytest

from uncork.cli.sql import query_words


@pytest.mark.parametrize(("words", "read"), [
    (("last", None), ("last", None)),
    (("shop-20260301-101500", None), ("shop-20260301-101500", None)),
    (("all", "FROM runs"), ("all", "FROM runs")),
    (("FROM trials", None), ("last", "FROM trials")),
    (("\n select 1", None), ("last", "\n select 1")),
    (("with a AS (SELECT 1) FROM a", None), ("last", "with a AS (SELECT 1) FROM a")),
    (("SHOW TABLES", None), ("last", "SHOW TABLES")),
    (("from", None), ("from", None)),
    (("my runs/selected", None), ("my runs/selected", None)),
    (("FROM trials", "FROM trials"), ("FROM trials", "FROM trials")),
])  # fmt: skip
def test_a_query_alone_is_about_the_newest_run(words, read):
    assert query_words(*words) == read
