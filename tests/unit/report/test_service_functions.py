"""The table of functions by request in the report on a service."""

from types import SimpleNamespace
from typing import cast

from uncork.model.results.service import RequestFacts, RequestFunctions, SentTemplate, ServiceResult
from uncork.model.results.stacks import FrameFacts
from uncork.report.service.document import functions_table


def frame(name, own, total):
    return FrameFacts(name, False, own, total, None, None)


def request(name, *templates, functions=True):
    found = RequestFunctions(frame("parse", 0.4, 0.4), frame("list_orders", 0.1, 0.7), 90)
    return RequestFacts(
        name, 9, 0, 1e6, 2_000_000, 1e6, None, None, None, templates, functions=found if functions else None
    )


def table_of(*requests):
    return functions_table(cast(ServiceResult, SimpleNamespace(requests=requests)))


def test_statements_have_a_column_only_if_they_were_counted():
    counted = SentTemplate(0, "select 1", 1.0, None, None, None, 1e6, 1e6)
    both = table_of(request("/a", counted), request("/b"))
    assert [column.title for column in both.columns][-1] == "statement with most time"
    assert [row[-1].text for row in both.rows] == ["select 1", ""]
    alone = table_of(request("/a"))
    assert [column.title for column in alone.columns] == ["request", "most time within", "hottest function"]
    assert alone.rows[0][1].text == "list_orders" and alone.rows[0][1].note == "70 %"
    assert "statements" not in alone.caption
    assert table_of(request("/a", functions=False)) is None
