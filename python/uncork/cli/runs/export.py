"""Export the time series of a stored run: `uncork export`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

import typer

from uncork.analysis.runs.telemetry import run_telemetry
from uncork.cli import console
from uncork.cli.pages import check_page
from uncork.cli.runs.last_run import note_skipped
from uncork.errors import UsageError
from uncork.model.units import count_words
from uncork.report.write.otlp import otlp_requests
from uncork.requests.stored_options import ExportOptions
from uncork.store.layout import find_run, write_atomically
from uncork.workbench.load.collector import metrics_address, send_requests

_HEADERS: Final = "OTEL_EXPORTER_OTLP_HEADERS"


def export(options: ExportOptions) -> None:
    """Export the time series of a run."""
    if options.otlp is None:
        raise UsageError("name a destination: --otlp FILE, or --otlp http://127.0.0.1:4318 for a collector")
    by_network = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", options.otlp) is not None
    if options.header and not by_network:
        raise UsageError("--header requires a collector: a file has no headers")
    if not by_network and options.otlp != "-":
        check_page(Path(options.otlp))
    headers = _headers(options.header or ()) if by_network else {}
    note_skipped(options.runs, options.run)
    telemetry = run_telemetry(find_run(options.runs, options.run), options.service)
    requests = otlp_requests(telemetry)
    points = sum(len(metric.points) for metric in telemetry.metrics)
    told = f"{count_words(points, 'point')} of {count_words(len(telemetry.metrics), 'metric')}"
    if by_network:
        address = metrics_address(options.otlp)
        rejected = send_requests(address, requests, headers)
        left = f"; it rejected {rejected}" if rejected else ""
        console.note(f"{told} sent to {address}{left}")
    elif options.otlp == "-":
        for line in requests:
            typer.echo(line)
    else:
        write_atomically(Path(options.otlp), "".join(f"{line}\n" for line in requests))
        console.note(f"{told} written to {options.otlp}")


def _headers(given: list[str] | tuple[()]) -> dict[str, str]:
    """Return the headers to send: from the environment, in OpenTelemetry's format, then from options."""
    found: dict[str, str] = {}
    for text in filter(None, os.environ.get(_HEADERS, "").split(",")):
        found |= _header(text, "=", _HEADERS)
    for text in given:
        found |= _header(text, ":", "--header")
    return found


def _header(text: str, sign: str, where: str) -> dict[str, str]:
    name, found, value = (part.strip() for part in text.partition(sign))
    sendable = re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) and value.isascii() and value.isprintable()
    if not found or not sendable:  # the value may be a secret: do not show it
        raise UsageError(f'{where}: write a header as "NAME{sign} VALUE", in printable ASCII')
    return {name: value}
