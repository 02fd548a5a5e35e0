"""The header that begins a trace with each request."""

import json
import re
from dataclasses import replace

from uncork.load.again import http_spec_of
from uncork.load.http import http_plan
from uncork.load.traceparent import HEADER, group_of, traced, untraced
from uncork.model.http import HttpServer, HttpSpec, Request, Variable

OWN = (HEADER, "00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01")
SPEC = HttpSpec(
    HttpServer("127.0.0.1", 80),
    (Request("/a", "GET", "/a/{id}"), Request("/b", "GET", "/b", headers=(OWN,)), Request("/c", "GET", "/c")),
    variables=(Variable("id", 1, 9),),
    login=(Request("in", "POST", "/in"),),
    operations=1,
    trace="0123ab",
)


def test_each_request_has_a_trace_of_its_load_and_its_place():
    plan = http_plan(SPEC)
    headers = [dict(one["request"]["headers"])[HEADER] for one in plan["scripts"]]
    assert headers[1] == OWN[1], "a request keeps its own header"
    drawn = {one["name"]: str(one["values"].get("range", [0])[0]) for one in plan["http"]["variables"]}
    filled = [re.sub(r"\{(\w+)\}", lambda name: drawn[name[1]], text) for text in headers]
    assert all(re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", text) for text in filled)
    assert [text[3:19] for text in filled] == [group_of("0123ab", 1), OWN[1][3:19], group_of("0123ab", 3)]
    (step,) = plan["http"]["login"]
    assert dict(step["request"]["headers"])[HEADER].startswith(f"00-{group_of('0123ab', 0)}")


def test_from_the_255th_on_requests_share_a_number():
    assert group_of("0123ab", 254)[-2:] == "fe"
    assert {group_of("0123ab", place) for place in (255, 256, 9_999)} == {"756e636b0123abff"}


def test_without_a_trace_nothing_changes():
    plain = replace(SPEC, trace=None)
    assert traced(plain) is plain
    assert untraced(plain) is plain


def test_a_stored_load_is_sent_again_with_traces():
    stored = json.loads(json.dumps(http_plan(SPEC)))
    again = http_spec_of(stored)
    assert again.trace == SPEC.trace
    assert again.requests == SPEC.requests
    assert (again.variables, again.login) == (SPEC.variables, SPEC.login)
    assert http_plan(again) == http_plan(SPEC)
