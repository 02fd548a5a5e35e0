"""The kind of a template: by its first words, whatever brackets, names and lists it has."""

from __future__ import annotations

import pytest

from uncork.analysis.log.contributions import kind_of


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("select ?", "SELECT"),
        ("(select ?) union (select ?)", "SELECT"),
        ("begin", "BEGIN"),
        ("with x as (select ?) insert into t select ?", "INSERT"),
        ("with recursive x(a) as (values (?) union all select a from x) select a from x", "SELECT"),
        ("copy(select a from t) to stdout", "COPY TO"),
        ("copy (insert into t select ? returning a) to ?", "COPY TO"),
        ("copy t from stdin", "COPY FROM"),
        ("copy t to stdout", "COPY TO"),
        ("copy t(a, b) from stdin", "COPY FROM"),
        ('copy "from"("to") to stdout with (format csv)', "COPY TO"),
        ("copy binary s.t from stdin", "COPY FROM"),
        ("copy t", "COPY"),
        ("explain(analyze, buffers) select ?", "EXPLAIN"),
        ("explain (analyze) select ?", "EXPLAIN"),
        ("explain select ?", "EXPLAIN"),
        ("vacuum(full, analyze) t", "VACUUM"),
        ("vacuum (full) t", "VACUUM"),
        ("cluster(verbose) t", "CLUSTER"),
        ("(rare statements)", "other"),
        ("(empty statement)", "other"),
        ("", "other"),
        ("?", "other"),
        ("((", "other"),
        ("1 + 1", "other"),
    ],
)
def test_a_template_has_the_kind_of_its_statement(text, kind):
    assert kind_of(text) == kind
