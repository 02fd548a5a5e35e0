"""Export the series of a stored run to another system: `uncork export`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Final

import typer

from uncork.cli import console, options
from uncork.cli.examples import examples_of
from uncork.errors import UsageError
from uncork.model.units import count_words

__all__ = ["register"]

_HEADERS: Final = "OTEL_EXPORTER_OTLP_HEADERS"


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("export", epilog=examples_of("export"))(export)


def export(
    run_id: options.StoredRun = "last",
    otlp: Annotated[
        str | None,
        typer.Option(
            "--otlp",
            metavar="FILE|URL",
            help="Write OpenTelemetry metrics as JSON lines to FILE (- prints them), or post them to a "
            "collector at URL, such as http://127.0.0.1:4318.",
        ),
    ] = None,
    service: Annotated[
        str, typer.Option("--service", metavar="NAME", help="The service.name of what is exported.")
    ] = "uncork",
    header: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            metavar="'NAME: VALUE'",
            help=f"Send this to a collector too; or {_HEADERS}.",
        ),
    ] = None,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Export the series of a stored run with its times: to a file, or to an OpenTelemetry collector.

    Of a load operations, failures and latencies second by second, answers by status and the machine's
    processors; of every run the figures that `uncork compare` names. Service, run, commit and environment
    stand with them as attributes.
    """
    from uncork.analysis.runs.telemetry import run_telemetry  # noqa: PLC0415
    from uncork.cli.pages import check_page  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.report.write.otlp import otlp_requests  # noqa: PLC0415
    from uncork.store.layout import find_run, write_atomically  # noqa: PLC0415

    if otlp is None:
        raise UsageError("say where to: --otlp FILE, or --otlp http://127.0.0.1:4318 for a collector")
    by_network = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", otlp) is not None
    if header and not by_network:
        raise UsageError("--header is for a collector; a file takes none")
    if not by_network and otlp != "-":
        check_page(Path(otlp))
    headers = _headers(header or ()) if by_network else {}
    telemetry = run_telemetry(find_run(runs, run_id), service)
    requests = otlp_requests(telemetry)
    points = sum(len(metric.points) for metric in telemetry.metrics)
    told = f"{count_words(points, 'point')} of {count_words(len(telemetry.metrics), 'metric')}"
    if by_network:
        from uncork.workbench.load.collector import metrics_address, send_requests  # noqa: PLC0415

        address = metrics_address(otlp)
        rejected = send_requests(address, requests, headers)
        left = f"; it left out {rejected}" if rejected else ""
        console.note(f"{told} sent to {address}{left}")
    elif otlp == "-":
        for line in requests:
            typer.echo(line)
    else:
        write_atomically(Path(otlp), "".join(f"{line}\n" for line in requests))
        console.note(f"{told} written to {otlp}")


def _headers(given: list[str] | tuple[()]) -> dict[str, str]:
    """Return the headers to send: those of the environment, written as OpenTelemetry has it, then others."""
    found: dict[str, str] = {}
    for text in filter(None, os.environ.get(_HEADERS, "").split(",")):
        found |= _header(text, "=", _HEADERS)
    for text in given:
        found |= _header(text, ":", "--header")
    return found


def _header(text: str, sign: str, where: str) -> dict[str, str]:
    name, found, value = (part.strip() for part in text.partition(sign))
    sendable = re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) and value.isascii() and value.isprintable()
    if not found or not sendable:  # the value may be a secret: it is not told
        raise UsageError(f'{where}: a header is written "NAME{sign} VALUE", in printable ASCII')
    return {name: value}
