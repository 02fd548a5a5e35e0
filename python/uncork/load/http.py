"""Run an HTTP load with one call of the Rust core."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from uncork import _native
from uncork.load.parts import Lease, part_deadline_ns
from uncork.load.run import GRACE_NS, UNBOUNDED_NS, Messages, common_plan, run_plan
from uncork.load.sampler import sampler_plan, trial_watch
from uncork.load.traceparent import traced
from uncork.model.http import HttpSpec, Request, Variable
from uncork.model.load import LoadMeasurement, LoadProgress
from uncork.model.redaction import (
    NOT_STORED,
    is_secret_field,
    without_body_secrets,
    without_header_secret,
)
from uncork.model.system import Watch


def check_http(spec: HttpSpec) -> None:
    """Check that a load is valid and its requests can be sent, without connecting.

    Raises LoadError if it is not; the message names the request. Raises ConnectError if the root
    certificates cannot be read.
    """
    _native.check_load(json.dumps(http_plan(spec)).encode(), pa.table({}))


def run_http(
    spec: HttpSpec,
    *,
    watch: Sequence[Watch] = (),
    progress: Callable[[LoadProgress], None] | None = None,
    lease: Lease | None = None,
    messages: Messages | None = None,
    stopped: Callable[[], bool] | None = None,
) -> LoadMeasurement:
    """Run a load. A server that refuses connections or goes away, and Ctrl-C, are outcomes, not errors.

    `watch` lists processes to sample besides this one. A part of a load with a lease ends unless `lease` is
    renewed. For `messages` and `stopped`, see `run_load`. Raises LoadError if a request cannot be sent; then
    nothing was sent.
    """
    return run_plan(http_plan(spec, watch), progress, lease, messages, stopped)


def http_plan(spec: HttpSpec, watch: Sequence[Watch] = ()) -> dict[str, Any]:
    """Return the plan for the core. It contains all secrets."""
    spec = traced(spec)
    server, deadline_ns = spec.server, UNBOUNDED_NS
    if spec.duration_ns is not None:  # with the timeout of requests that run at the end
        deadline_ns = spec.duration_ns + spec.connect_timeout_ns + (spec.request_timeout_ns or GRACE_NS)
    return {
        "driver": "http",
        "http": {
            "host": server.host,
            "port": server.port,
            "authority": server.authority,
            "tls": {"verify": server.verify, "roots": server.cacert} if server.tls else None,
            "version": spec.version,
            "connect_timeout_ns": spec.connect_timeout_ns,
            "request_timeout_ns": spec.request_timeout_ns,
            "variables": [_variable(variable) for variable in spec.variables],
            "login": [{"name": step.name, "request": _request(step)} for step in spec.login],
            "cookies": spec.cookies,
            "environment": dict(spec.environment),
        },
        **common_plan(spec),
        "pipeline_depth": spec.streams,
        "scripts": [
            {"name": request.name, "weight": request.weight, "request": _request(request)}
            for request in spec.requests
        ],
        "order": "sequential" if spec.in_order else "weighted",
        "on_lost": spec.on_close,
        "stop": _stop(spec),
        "deadline_ns": part_deadline_ns(spec.part, deadline_ns, spec.warmup_ns),
        "sample": sampler_plan([*watch, *trial_watch(None)]),
    }


def without_secrets(plan: dict[str, Any]) -> dict[str, Any]:
    """Return a plan that may be stored: without secrets, except values that are only ``{name}``."""

    def safe(script: dict[str, Any]) -> dict[str, Any]:
        request = script["request"]
        headers = [[name, without_header_secret(name, value)] for name, value in request["headers"]]
        kept = {**request, "headers": headers}
        if request["body_kind"] != "text":
            kept["body"] = without_body_secrets(request["body"], request["body_kind"])
        return {**script, "request": kept}

    http = plan["http"]
    return {
        **plan,
        "http": {
            **http,
            "login": [safe(step) for step in http["login"]],
            "variables": [
                {**variable, "values": {"listed": [NOT_STORED]}}
                if "listed" in variable["values"] and is_secret_field(variable["name"])
                else variable
                for variable in http["variables"]
            ],
            "environment": dict.fromkeys(http["environment"], NOT_STORED),
        },
        "scripts": [safe(script) for script in plan["scripts"]],
    }


def _request(request: Request) -> dict[str, Any]:
    body: dict[str, str] = {}
    if request.body is not None:
        try:
            body = {"body": request.body.decode()}
        except UnicodeDecodeError:
            body = {"body_base64": base64.b64encode(request.body).decode()}
    return {
        "method": request.method,
        "path": request.path,
        "headers": [list(pair) for pair in request.headers],
        **body,
        "body_kind": request.body_kind,
        "captures": [
            {"name": capture.name, "from": {capture.source: capture.where}, "default": capture.default}
            for capture in request.captures
        ],
        "checks": json.loads(json.dumps(asdict(request.checks))),
    }


def _variable(variable: Variable) -> dict[str, Any]:
    found = asdict(variable)
    ends, listed = [found.pop("first"), found.pop("last")], found.pop("values")
    return {**found, "values": {"listed": listed} if listed else {"range": ends}}


def _stop(spec: HttpSpec) -> dict[str, int]:
    if spec.duration_ns is not None:
        return {"duration_ns": spec.duration_ns}
    if spec.operations is not None:
        return {"operations": spec.operations}
    return {"operations": len(spec.arrivals.offsets_ns) if spec.arrivals else 1}
