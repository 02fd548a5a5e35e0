"""Load a service: `uncork load http`, which speaks h2load."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from uncork.cli import console
from uncork.cli.examples import examples_of
from uncork.cli.load import http_options as given
from uncork.cli.load import options as shared
from uncork.cli.options import DEFAULT_RUNS
from uncork.cli.pages import BenchForm, check_page
from uncork.cli.stored_command import redacted_command
from uncork.errors import UsageError
from uncork.model.load import LoadProgress

if TYPE_CHECKING:
    from uncork.requests.http import HttpOptions

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb to `uncork load`."""
    app.command("http", epilog=examples_of("load http"))(http)


def http(
    urls: given.Urls = None,
    input_file: given.InputFile = None,
    method: given.Method = None,
    header: given.Header = None,
    data: given.Data = None,
    body: given.Body = None,
    var: given.Var = None,
    expect_status: given.ExpectStatus = None,
    expect_header: given.ExpectHeader = None,
    expect_size: given.ExpectSize = None,
    expect_sha256: given.ExpectSha256 = None,
    expect_json: given.ExpectJson = None,
    clients: given.Clients = None,
    streams: given.Streams = None,
    threads: given.Threads = None,
    h1: given.H1 = False,
    h2: given.H2 = False,
    no_tls_proto: given.NoTlsProto = None,
    connect_each: given.ConnectEach = False,
    on_close: given.OnClose = None,
    timeout: given.Timeout = None,
    connect_timeout: given.ConnectTimeout = None,
    cacert: given.CaCert = None,
    insecure: given.Insecure = False,
    seed: given.Seed = None,
    requests: given.Requests = None,
    duration: given.Duration = None,
    warm_up: given.WarmUp = None,
    rps: given.Rps = None,
    rate: given.Rate = None,
    arrivals: given.Arrivals = None,
    max_clients: given.MaxClients = None,
    latency_limit: given.LatencyLimit = None,
    sweep: given.Sweep = None,
    to: given.To = None,
    objective: shared.Objective = None,
    budget: shared.Budget = None,
    service_pid: given.ServicePid = None,
    postgres: given.Postgres = None,
    progress: shared.Progress = None,
    as_json: shared.AsJson = False,
    go_bench: shared.GoBench = False,
    html: shared.Html = None,
    hdr_log: shared.HdrLog = None,
    runs: shared.Runs = DEFAULT_RUNS,
) -> None:
    """Load-test a service by HTTP/1.1 or HTTP/2.

    Speaks h2load: the same options. The run is stored; `uncork report` shows it again.
    """
    words = locals()
    from uncork.requests.http import HttpOptions  # noqa: PLC0415 -- keeps `uncork --help` fast

    asked = HttpOptions(**{name: value for name, value in words.items() if name in HttpOptions.__slots__})
    _load(asked, runs, html, hdr_log)


def _load(asked: HttpOptions, runs: Path, html: Path | None, hdr_log: Path | None) -> None:
    from uncork.cli.load.sql import finish_load  # noqa: PLC0415
    from uncork.cli.load.sweep import sweep_load  # noqa: PLC0415
    from uncork.requests.http import read_http, read_pids, sweep_of_http  # noqa: PLC0415
    from uncork.requests.jobs import HttpJob  # noqa: PLC0415
    from uncork.requests.sweep import sweep_wanted  # noqa: PLC0415
    from uncork.workbench.load.http import new_http_load  # noqa: PLC0415

    spec = read_http(asked, read=_read, seed=secrets.randbits(63))
    wanted = sweep_wanted(sweep_of_http(asked, spec, hdr_log=hdr_log is not None))
    job = HttpJob(spec, redacted_command(sys.argv[1:]), read_pids(asked.service_pid), asked.postgres)
    for path in (html, hdr_log):
        check_page(path)
    if wanted is not None:
        sweep_load(job, wanted, runs, as_json=asked.as_json, html=html)
        return
    session = new_http_load(runs, job)
    console.note(f"run {session.folder.name}")
    progress = _progress(open_loop=spec.arrivals is not None) if spec.progress_s else None
    outcome = session.run(progress, console.note)
    form: BenchForm = "json" if asked.as_json else "go-bench" if asked.go_bench else "terminal"
    finish_load(session.folder, outcome, form, html, hdr_log)


def _progress(*, open_loop: bool) -> Callable[[LoadProgress], None]:
    from uncork.workbench.event_words import progress_line  # noqa: PLC0415

    def tell(progress: LoadProgress) -> None:
        typer.echo(progress_line(progress, open_loop=open_loop, http=True), err=True)

    return tell


def _read(name: str) -> bytes:
    """Read a file; ``-`` is standard input."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f'could not open file "{name}": {error.strerror}') from error
