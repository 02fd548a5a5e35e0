"""Build the services and the requests of a trial from an HTTP workload and a variant. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from uncork.experiment.plan.order import texts_for
from uncork.experiment.run.parameters import draw
from uncork.experiment.run.request import FITTED_NS, Pools
from uncork.experiment.spec.http_workloads import RequestFacts
from uncork.experiment.spec.schema import Spec
from uncork.experiment.spec.services import fill_texts
from uncork.model.http import HttpServer, HttpSpec, HttpVersion, Request, Variable
from uncork.model.http_trial import AskedRequest, HttpTrial, fill, names_in_braces
from uncork.model.load import Arrivals
from uncork.model.server import Target
from uncork.model.service import Served, ServiceJob
from uncork.model.trial import Cell, Trial

READING = ("GET", "HEAD", "OPTIONS")
"""Methods that change nothing according to HTTP; data is not restored before such requests."""


def reads_only(spec: Spec, workload: str) -> bool:
    """Return whether a workload sends HTTP requests that change nothing."""
    facts = spec.workloads[workload].http
    return facts is not None and all(request.verb in READING for request in facts.requests)


def service_jobs(spec: Spec, cell: Cell, variant: str) -> tuple[ServiceJob, ...]:
    """Return the services to start for a variant in a cell, in order; the last one receives the requests."""
    texts = texts_for(spec, cell, variant)
    by_udp = {
        spec.services_of(text)[-1]
        for workload in spec.http_workloads
        for text in spec.compared(workload)
        if _version(spec, workload, text) == "3"
    }
    jobs = []
    for name in spec.services_of(variant):
        service, own = spec.services[name], spec.variants[variant].services.get(name)
        command = service.command if own is None or own.command is None else own.command
        environment = {**service.environment, **({} if own is None else own.environment)}
        taken = {} if own is None else own.files
        named = {file: taken.get(file, file) for file in (*command, *service.files, *taken)}
        files = {file: spec.files[source] for file, source in named.items() if source in spec.files}
        jobs.append(
            ServiceJob(
                name=name,
                command=tuple(fill_texts(word, texts) for word in command),
                environment=tuple((key, fill_texts(text, texts)) for key, text in environment.items()),
                ready=service.ready,
                timeout_ns=service.timeout,
                after=tuple(service.after),
                files=files,
                digest=_digest(files),
                tls=service.tls,
                udp=name in by_udp,
            )
        )
    return tuple(jobs)


def _version(spec: Spec, workload: str, variant: str) -> HttpVersion:
    facts, own = spec.workloads[workload].http, spec.variants[variant].http
    assert facts is not None  # noqa: S101 -- called only for HTTP workloads
    return facts.version if own is None or own.version is None else own.version


def http_clients(spec: Spec, workload: str, variant: str, levels: Mapping[str, str]) -> int:
    """Return the number of HTTP connections of a workload and variant for these factor levels."""
    own = spec.variants[variant].http
    return spec.clients(workload, levels) if own is None or own.clients is None else own.clients


def http_trial(spec: Spec, trial: Trial, target: Target, served: Served, pools: Pools) -> HttpTrial:
    """Build the load of a timed HTTP trial. Every arm of a block draws the same positions."""
    facts, variant = spec.workloads[trial.workload], trial.arm.variant
    assert facts.http is not None  # noqa: S101 -- called only for HTTP workloads
    own = spec.variants[variant].http
    stream = f"parameters/{trial.round}/{trial.block}/{trial.cell.name}/{trial.workload}"
    columns = draw(facts, pools, seed=spec.experiment.seed, stream=stream)
    texts = texts_for(spec, trial.cell, variant)
    return HttpTrial(
        target=target,
        served=served,
        spec=HttpSpec(
            server=HttpServer(served.host, served.port, served.tls, verify=not served.tls),
            requests=_requests(facts.http.requests, trial.workload, texts),
            login=_requests(facts.http.login, f"{trial.workload}.login", texts),
            cookies=facts.http.keeps_cookies,
            in_order=facts.http.order == "sequential",
            version=_version(spec, trial.workload, variant),
            variables=tuple(
                Variable(name, values=tuple(value or "" for value in column), in_turn=True)
                for name, column in zip(facts.parameters, columns, strict=True)
            ),
            clients=http_clients(spec, trial.workload, variant, dict(trial.cell.levels)),
            streams=facts.http.streams if own is None or own.streams is None else own.streams,
            on_close=facts.http.on_close if own is None or own.on_close is None else own.on_close,
            threads=facts.threads,
            seed=_seed(f"{spec.experiment.seed}/{stream}"),
            arrivals=None if facts.http.rate is None else Arrivals("constant", facts.http.rate),
            operations=facts.operations,
            duration_ns=FITTED_NS if facts.fitted else facts.duration,
            request_timeout_ns=facts.http.timeout,
        ),
        warmup_operations=facts.warmup_operations,
        deadline_ns=spec.stop.trial_timeout,
        late_ns=facts.http.deadline,
    )


def asked_requests(
    spec: Spec, cell: Cell, workload: str, variant: str, pools: Pools
) -> tuple[AskedRequest, ...]:
    """Return the first requests of a workload, the same for every variant, with the kinds in turn.

    If all requests only read, identical requests are sent once. Requests that use captured values are left
    out, because they differ from client to client.
    """
    facts = spec.workloads[workload]
    assert facts.http is not None  # noqa: S101 -- called only for HTTP workloads
    count = min(facts.operations or spec.setup.answers, spec.setup.answers)
    captured = facts.http.captured
    kinds = [request for request in facts.http.requests if not captured & _names(request)]
    count = max(count, len(kinds)) if kinds else 0
    stream = f"answers/{cell.name}/{workload}"
    columns = draw(facts, pools, seed=spec.experiment.seed, stream=stream, rows=count)
    texts = texts_for(spec, cell, variant)
    found = []
    for number in range(count):
        row = {name: column[number] or "" for name, column in zip(facts.parameters, columns, strict=True)}
        one, values = kinds[number % len(kinds)], {**texts, **row}
        body, _ = one.content
        found.append(
            AskedRequest(
                one.verb,
                fill(one.target, values),
                tuple((fill(name, values), fill(text, values)) for name, text in one.all_headers.items()),
                None if body is None else fill(body, values),
            )
        )
    return (
        tuple(dict.fromkeys(found)) if all(request.method in READING for request in found) else tuple(found)
    )


def _names(table: RequestFacts) -> set[str]:
    return {name for text in table.texts for name in names_in_braces(text)}


def _requests(tables: Sequence[RequestFacts], workload: str, texts: Mapping[str, str]) -> tuple[Request, ...]:
    def filled(text: str) -> str:
        return fill(text, texts, last=False)

    return tuple(
        table.request(table.name or _name(workload, number, tables), filled, statuses=tuple(table.statuses))
        for number, table in enumerate(tables, start=1)
    )


def _name(workload: str, number: int, kinds: Sequence[object]) -> str:
    return workload if len(kinds) == 1 else f"{workload}.{number}"


def _digest(files: Mapping[str, str]) -> str:
    return hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest() if files else ""


def _seed(stream: str) -> int:
    """Return a 63-bit number from a named stream; it determines the order of the kinds of requests."""
    return int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8], "little") >> 1
