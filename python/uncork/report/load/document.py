"""The report on a load, as a document and in a terminal: the answer, then charts and tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

from rich.console import Console

from uncork.model.load import LoadOutcome
from uncork.model.results.load import LoadResult
from uncork.model.system import SERVER, SERVICE
from uncork.model.units import count_words, format_count, format_duration
from uncork.report.blocks import (
    Block,
    Bullets,
    Code,
    Document,
    Fold,
    Legend,
    Paragraph,
    Section,
    Step,
    filled_section,
)
from uncork.report.cells import facts_table
from uncork.report.findings import (
    careful_last,
    finding_sections,
    finding_sentence,
    finding_steps,
    proof_steps,
)
from uncork.report.load.answer import steady_sentence
from uncork.report.load.charts import (
    SERIES,
    distribution_chart,
    failures_chart,
    percentiles_chart,
    statuses_chart,
    throughput_chart,
)
from uncork.report.load.tables import (
    answers_table,
    connections_table,
    counts_table,
    errors_table,
    latency_table,
    logins_table,
    parts_reasons,
    parts_table,
    pool_sentence,
    scripts_table,
    statements_table,
    step_gap_sentences,
    steps_table,
    use_table,
    waits_for_pool,
)
from uncork.report.load.words import (
    arrivals_words,
    bottleneck_lines,
    clients_words,
    operation_word,
    resource_title,
    stop_words,
)
from uncork.report.system_blocks import system_blocks
from uncork.report.words import duration_text
from uncork.report.write.terminal_text import TerminalPart, write_items, write_report

_OTHER_PROTOCOL = "other protocol"
"""The kind of failure if the server speaks HTTP/2 only."""
_EMBEDDED: Final = "embedded"
"""The server of a load that is gone when the load has ended."""
_LENGTH: Final = re.compile(r" -[cTt] \d+")
"""Options of a load that a sweep sets for each of its steps."""
_WATCHING: Final = re.compile(r""" --(?:advise|(?:postgres|pooler|logs)[ =](?:'[^']*'|"[^"]*"|\S)+)(?= |$)""")
"""Options of a load by SQL that only watch it."""
_STEADY_SHARE = 0.7
"""Fraction of a closed loop's throughput at which to measure latency: below the limit, but busy."""


def build_load_document(result: LoadResult) -> Document:
    """Return the report on a load, without empty sections."""
    statuses = statuses_chart(result)
    return Document(
        title=result.run.id,
        question=_question(result),
        answer=result.answer,
        reasons=tuple(_reasons(result)),
        steps=careful_last(_steps(result)),
        facts=tuple(_facts(result)),
        variants=(*SERIES, *(() if statuses is None else statuses.variants)),
        sections=tuple(_sections(result)),
        version=result.run.uncork_version,
    )


def _reasons(result: LoadResult) -> Iterator[str]:
    for bottleneck in result.bottlenecks[:1]:
        yield f"Bottleneck: {bottleneck.sentence}."
    pool = pool_sentence(result)
    if pool is not None:
        yield pool
    if result.findings is not None:
        yield from (finding_sentence(finding) for finding in result.findings)
    if result.findings == ():
        yield "The database was watched while the load was sent again: nothing stands out."
    yield from parts_reasons(result)
    if result.generator.sentence:
        yield result.generator.sentence
    steady = steady_sentence(result)
    if steady:
        yield steady
    yield from result.warnings


def _question(result: LoadResult) -> str:
    settings = result.settings
    scripts = ", ".join(script.name for script in result.scripts)
    if settings.recorded is not None:
        scripts = f"{count_words(len(result.scripts), 'script')} of a recording"
    if result.http is not None:
        scripts = f"{scripts} of {result.run.server}"
    length, warmup_ns = stop_words(settings), settings.warmup_ns
    if warmup_ns:
        length += f" (a warm-up of {format_duration(warmup_ns)} before is not counted)"
    protocol = f"{settings.protocol} protocol" if result.http is None else settings.protocol
    return f"{scripts} by {clients_words(settings)} for {length}, {protocol}; {arrivals_words(settings)}"


def _steps(result: LoadResult) -> Iterator[Step]:
    settings, command = result.settings, result.run.reproduce
    command = command.replace(" --advise", "") if result.http else _WATCHING.sub("", command)
    if result.parts is not None:
        return  # its command sends a part only
    if result.run.outcome is LoadOutcome.REFUSED:
        yield Step(
            "Check that the server runs and accepts connections, then repeat the load:"
            if result.http
            else "Check that the server runs, accepts connections and knows the role, then repeat the load:",
            command,
        )
        return
    if _OTHER_PROTOCOL in result.counts.errors:
        yield Step("Send the requests by HTTP/2:", f"{command} --h2")
    if waits_for_pool(result) is not None:
        yield Step(
            "Raise default_pool_size of PgBouncer if the server has idle processors, or use fewer clients."
        )
    findings = result.findings or ()
    yield from finding_steps(findings)
    if result.database is not None and result.run.server != _EMBEDDED:
        yield from proof_steps(findings, result.run.id, result.database)
    for bottleneck in () if findings else result.bottlenecks[:1]:
        yield Step(f"{resource_title(bottleneck.resource)}: {bottleneck.remedy}.")
    repeatable = result.counts.succeeded and settings.arrivals != "trace"
    if repeatable and result.http is None and result.findings is None:
        yield Step("Repeat the load, and find out what is wrong with the database:", f"{command} --advise")
    if result.http is None and not (result.bottlenecks or settings.open_loop) and result.counts.succeeded:
        yield Step(
            "Find the bottleneck: raise the load step by step until the server is saturated:",
            f"{_LENGTH.sub('', command)} --sweep clients",
        )
    if result.counts.unsent and settings.recorded == "replay":
        yield Step("Find the pace that the server keeps up with: lower --speed until nothing stays unsent.")
    elif result.counts.unsent:
        yield Step("Find the rate that the server keeps up with: lower -R until nothing stays unsent.")
    elif not settings.open_loop and result.counts.succeeded:
        rate = _STEADY_SHARE * result.operations_per_second
        shown = f"{rate:.0f}" if rate >= 10 else f"{rate:.2g}"
        yield Step(
            f"Measure latency at a fixed rate, {_STEADY_SHARE * 100:.0f} % of this throughput:",
            f"{command} -R {shown}",
        )


def _facts(result: LoadResult) -> Iterator[tuple[str, str]]:
    run = result.run
    yield "run", run.id
    yield "started", run.started_at[:16].replace("T", " ")
    yield "measured", format_duration(run.elapsed_ns)
    yield f"{operation_word(result)}s", format_count(result.counts.started)
    yield "server", run.server
    yield "seed", str(result.settings.seed)
    yield "outcome", str(run.outcome)


def _sections(result: LoadResult) -> Iterable[Section]:
    if result.bottlenecks:
        lines = bottleneck_lines(
            (bottleneck.resource, "", bottleneck.sentence, bottleneck.remedy)
            for bottleneck in result.bottlenecks
        )
        yield Section("bottlenecks", "Bottlenecks", (lines,))
    yield from finding_sections(result.findings or ())
    yield from filled_section("parts", "Parts of the load", parts_table(result))
    sent = tuple(_sent(result))
    if sent:
        yield Section("scripts", "Scripts and statements" if result.http is None else "Requests", sent)
    steps = steps_table(result)
    if steps is not None:
        gaps = step_gap_sentences(result)
        yield Section("steps", "Where the time goes", (steps, *([Bullets(gaps)] if gaps else [])))
    distribution = distribution_chart(result)
    names = () if distribution is None else tuple(line.variant for line in distribution.lines)
    yield from filled_section(
        "latency",
        "Latency",
        latency_table(result) if result.operation.count else None,
        Legend(names) if len(names) > 1 else None,
        distribution,
    )
    charts = (percentiles_chart(result), statuses_chart(result))
    series = [block for chart in charts if chart is not None for block in (Legend(chart.variants), chart)]
    yield from filled_section("series", "Over time", throughput_chart(result), *series)
    yield from filled_section("answers", "Answers", answers_table(result))
    yield from filled_section("errors", "Errors", errors_table(result), failures_chart(result))
    yield Section("counts", "Counts", (counts_table(result),))
    yield from filled_section("connections", "Connections", connections_table(result), logins_table(result))
    yield Section("use", "Resources used", (use_table(result),))
    if result.system is not None:
        blocks = tuple(system_blocks(result.system, result.counts.started))
        yield Section("machine", "The machine", (*_remote(result), *blocks))
    yield Section("definitions", "What was sent", tuple(_definitions(result)))
    environment = (
        facts_table(title, facts.items(), "name", "value")
        for title, facts in result.environment.items()
        if facts
    )
    yield from filled_section("environment", "Environment", *environment)
    yield Section("reproduce", "How to repeat this load", (Code(result.run.reproduce, "sh"),))


def _remote(result: LoadResult) -> Iterator[Block]:
    if result.system is None:
        return
    if not any(process.role in (SERVER, SERVICE) for process in result.system.processes):
        yield Paragraph(
            "This is the generator's machine: the server's processes run elsewhere, or are not visible here."
        )


def _definitions(result: LoadResult) -> Iterator[Block]:
    settings = result.settings
    limit = settings.latency_limit_ns
    pairs = [
        ("clients", format_count(settings.clients)),
        ("threads", format_count(settings.threads)),
        ("protocol", settings.protocol),
        ("warm-up", f"{format_duration(settings.warmup_ns)}, not counted" if settings.warmup_ns else ""),
        ("request timeout", duration_text(settings.request_timeout_ns)),
        ("when the server closes a connection", settings.on_close or ""),
        ("arrivals", arrivals_words(settings)),
        ("ends after", stop_words(settings)),
        (
            "tries per transaction",
            "" if result.http else format_count(settings.max_tries) if settings.max_tries else "unlimited",
        ),
        ("random seed", str(settings.seed)),
        ("variables", json.dumps(settings.variables) if settings.variables else ""),
        ("maximum connections", format_count(settings.max_clients) if settings.open_loop else ""),
        (f"{operation_word(result)}s in flight per connection", str(settings.pipeline_depth)),
        ("latency limit", "" if limit is None else format_duration(limit)),
        (f"new connection for each {operation_word(result)}", "yes" if settings.connect_each else ""),
    ]
    yield facts_table("Settings", [(name, text) for name, text in pairs if text], "name", "value")


def _sent(result: LoadResult) -> Iterator[Block]:
    tables = (scripts_table(result), statements_table(result)) if result.operation.count else ()
    yield from (table for table in tables if table is not None)
    for script in result.scripts:
        summary = f"{script.name}, {script.share * 100:.3g} % of the {operation_word(result)}s"
        yield Fold(
            summary, (Code(script.text, "text" if result.http else "sql"),), open=len(result.scripts) == 1
        )


def render_load_terminal(result: LoadResult, console: Console, *, statements: bool = False) -> None:
    """Print the report on a load; `statements` adds a table of statements."""
    write_report(console, build_load_document(result), _tables(result, statements))


def _tables(result: LoadResult, statements: bool) -> Iterator[TerminalPart]:
    yield parts_table(result)
    if result.operation.count:
        yield from (latency_table(result), scripts_table(result))
        yield statements_table(result) if statements else None
        yield steps_table(result)
        gaps = step_gap_sentences(result)
        yield partial(write_items, items=gaps) if gaps else None
    yield logins_table(result)
    yield answers_table(result) if result.http and len(result.http.statuses) > 1 else None
    yield errors_table(result)
    if result.counts.started or result.counts.arrivals:
        yield from (counts_table(result), connections_table(result), use_table(result))
