"""A stored load can be carried out again: its plan says what was asked for."""

import json
from dataclasses import replace

import pytest

from fakes.http_results import HTTP_SPEC
from fakes.load_results import CLOSED_SPEC, CONNECTION, OPEN_SPEC
from uncork.errors import UsageError
from uncork.load.again import http_spec_of, sql_spec_of
from uncork.load.http import http_plan, without_secrets
from uncork.load.run import load_plan, without_password
from uncork.model.http import Checks, HttpServer, Request, Variable
from uncork.model.load import Arrivals, LoadLog, Recorded

TRACE = Arrivals("trace", offsets_ns=(0, 5, 9))
EVERYTHING = (
    Request("list", "POST", "/list?id={id}", 3, headers=(("accept", "text/plain"),),
            body=b"\xff\x00",
            checks=Checks((200, 204), (("etag", None), ("server", "x")), 5, "ab" * 32,
                          (("/0/id", 7),))),
    Request("look", "GET", "/", body=b"plain"),
)  # fmt: skip


def stored(plan):
    """Return a plan as it comes back from disk."""
    return json.loads(json.dumps(plan))


@pytest.mark.parametrize("changes", [
    {},
    {"operations_each": 10, "duration_ns": None},
    {"arrivals": Arrivals("bursts", 9.0, 3), "operations_each": 10, "duration_ns": None},
    {"arrivals": TRACE, "duration_ns": None},
    {"arrivals": TRACE, "operations_each": 2, "duration_ns": None},
    {"arrivals": TRACE},
    {"pipeline_depth": 8, "protocol": "prepared", "connect_each": True, "max_tries": 0},
    {"warmup_ns": 5},
])  # fmt: skip
@pytest.mark.parametrize("spec", [CLOSED_SPEC, OPEN_SPEC], ids=["closed", "open"])
def test_a_load_by_sql_comes_back_from_its_plan(spec, changes):
    asked = replace(spec, **changes)
    plan = stored(without_password(load_plan(asked, CONNECTION, pid=7)))
    found = sql_spec_of(plan)
    scripts = tuple(replace(one, builtin=False) for one in asked.scripts)
    assert found == replace(asked, scripts=scripts, progress_s=None, log=None)
    assert load_plan(found, plan["connection"], pid=7) == plan


def test_a_recording_is_not_stored_with_the_load():
    recorded = Recorded((0, 0), {"p1_1": ("secret", None)}, (0, 1), 2)
    plan = stored(load_plan(replace(OPEN_SPEC, arrivals=TRACE, recorded=recorded), CONNECTION, pid=None))
    assert plan["recorded"] == {"scripts": [0, 0], "variables": ["p1_1"], "clients": [0, 1]}
    with pytest.raises(UsageError, match="with the recording again"):
        sql_spec_of(plan)


def test_a_log_of_operations_is_not_written_again():
    asked = replace(CLOSED_SPEC, log=LoadLog("prefix"), progress_s=5)
    found = sql_spec_of(load_plan(asked, CONNECTION, pid=None))
    assert (found.log, found.progress_s) == (None, None)


@pytest.mark.parametrize("changes", [
    {},
    {"operations": 10, "duration_ns": None},
    {"operations": None, "duration_ns": None, "arrivals": TRACE},
    {"operations": 2, "duration_ns": None, "arrivals": TRACE},
    {"requests": EVERYTHING, "version": "negotiated", "streams": 4, "on_close": "stop"},
    {"server": HttpServer("::1", 8443, True, False), "request_timeout_ns": None, "warmup_ns": 5},
    {"server": HttpServer("a.example", 443, True, cacert="/ca.pem"), "max_clients": 9},
    {"variables": (Variable("id", 1, 9), Variable("who", values=("a", "b"), in_turn=True))},
])  # fmt: skip
def test_a_load_by_http_comes_back_from_its_plan(changes):
    asked = replace(HTTP_SPEC, **changes)
    plan = stored(without_secrets(http_plan(asked)))
    found = http_spec_of(plan)
    assert found == replace(asked, progress_s=None)
    assert stored(http_plan(found)) == plan


def test_a_header_that_is_a_secret_must_be_given_again():
    secret = Request("list", "GET", "/", headers=(("Authorization", "Bearer hush"), ("accept", "x")))
    plan = without_secrets(http_plan(replace(HTTP_SPEC, requests=(secret,))))
    with pytest.raises(UsageError, match=r'give it again with --header "Authorization: \.\.\."'):
        http_spec_of(plan)
    found = http_spec_of(plan, [("authorization", "Bearer hush")])
    assert found.requests == (secret,)
