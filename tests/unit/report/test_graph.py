"""The graph of foreign keys as a Graphviz file; the golden of the report shows all of one."""

from dataclasses import replace

from fakes.database_results import database_result
from uncork.report.database.graph import foreign_key_dot


def test_names_are_data():
    result = database_result()
    (first, *others) = result.tables
    wild = replace(first, name='<b>"a"&\n')
    named = replace(result, tables=(wild, *others))
    assert r'[label="<b>\"a\"&\n\n11.8 GB"]' in foreign_key_dot(named)


def test_without_foreign_keys_it_has_no_arrow():
    bare = database_result(foreign_keys=(), islands=())
    assert "->" not in foreign_key_dot(bare)
