"""Build the document of advice: what is wrong first, then each finding with its evidence."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from rich.console import Console

from uncork.model.database.finding import Finding
from uncork.model.results.advice import AdviceResult
from uncork.model.units import count_words, format_duration
from uncork.report.blocks import Code, Document, Section, Step
from uncork.report.findings import (
    careful_last,
    costly_words,
    finding_blocks,
    finding_headline,
    finding_sections,
    finding_sentence,
    finding_steps,
    hidden_sentences,
    hidden_steps,
    looked_at_words,
    missing_words,
    nothing_found_words,
    proof_steps,
    server_conninfo,
)
from uncork.report.headline import join_sentences
from uncork.report.write.terminal_text import write_block, write_lines, write_report, write_title

_INDENT: Final = 4


def answer_advice(result: AdviceResult) -> AdviceResult:
    """Return the result with its answer and reasons."""
    first, *rest = result.findings or (None,)
    hidden = hidden_sentences(result.hidden, result.looked_at.unplanned)
    if first is None and result.lost:
        answer = "The connection to the server was lost, so most faults cannot be found."
    elif first is None:
        answer = nothing_found_words(result.sessions, result.costliest, hidden=bool(hidden))
    else:
        more = f"{count_words(len(rest), 'more finding')} below" if rest else ""
        answer = join_sentences((finding_headline(first), more))
    reasons = [*map(finding_sentence, rest), *costly_words(result.costliest)]
    return replace(
        result,
        answer=join_sentences((*hidden, answer)),
        reasons=(*reasons, *looked_at_words(result.looked_at, result.sessions)),
    )


def build_advice_document(result: AdviceResult) -> Document:
    """Return the report of advice."""
    about = ", ".join(
        f"{source.server} for {format_duration(source.seconds * 1e9)}" for source in result.sources
    )
    return Document(
        title="advice",
        question=f"What is wrong with this database? {about}",
        answer=result.answer,
        reasons=(*result.reasons, *missing_words(result.missing)),
        steps=careful_last(_steps(result)),
        facts=tuple((source.kind, source.run) for source in result.sources),
        sections=(
            *finding_sections(result.findings),
            Section("reproduce", "How to repeat this", (Code(result.reproduce, "sh"),)),
        ),
        version=result.uncork_version,
    )


def _steps(result: AdviceResult) -> Iterator[Step]:
    yield from hidden_steps(result.hidden, result.looked_at.unplanned, result.reproduce)
    if not result.sessions and (result.hidden is None or not result.hidden.most):
        yield Step("Watch the server while it is slow, or for longer:", result.reproduce)
    elif result.lost:
        yield Step("Watch the server again to its end:", result.reproduce)
    yield from finding_steps(result.findings)
    if result.findings:
        first = result.sources[0]
        address = f" {shlex.quote(server_conninfo(first.server))}" if first.kind == "database" else ""
        shown = [number for number, finding in enumerate(result.findings, 1) if finding.for_experiment]
        prove = "Prove the first change before you make it:"
        if first.kind == "database":
            logs = [name for source in result.sources for name in source.files]
            for step in proof_steps(result.findings, first.run, first.server, logs):
                yield step
                prove = "Or write an experiment about the first change, to read and run it yourself:"
        if shown:
            yield Step(
                prove if shown[0] == 1 else f"Write an experiment about finding {shown[0]}:",
                f"uncork advise {first.run}{address} --experiment {shown[0]} > question.toml",
            )


def render_advice_terminal(result: AdviceResult, console: Console) -> None:
    """Print advice: the answer, then each finding with its bill, evidence and candidates."""
    write_report(console, build_advice_document(result), [partial(write_findings, result.findings)])


def write_findings(findings: Iterable[Finding], console: Console) -> None:
    """Print each finding with its bill, evidence and candidates."""
    for number, finding in enumerate(findings, 1):
        write_title(console, f"{number}. {finding.headline}")
        for block in finding_blocks(finding):
            write_block(console, block, _INDENT)
        if finding.bill is None and finding.cost:
            write_lines(console, [f"{' ' * _INDENT}costs {finding.cost}"])
        console.print()
