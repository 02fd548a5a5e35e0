"""A guard for CI: JUnit XML, Markdown for a comment on a pull request, and Go's benchmark format. Pure.

JUnit XML has no standard. It follows the schema of Jenkins (junit-10 of its xunit plugin), which GitLab and
others read too. A broken gate is a *failure*; an acknowledged or undecided gate is *skipped*. An *error*
would describe an undecided gate better, but Jenkins and GitLab count errors as failed tests, so noise alone
would turn a test red. The exit status separates broken from undecided (3 and 4).

The Markdown begins with the answer. A hidden marker, the same for every guard of the same question, lets a
bot find its comment and replace it. GitHub rejects comments above 65 536 characters, so texts that exceed
`MOST` are left out with a note, the longest first.

In Go's format, the key `side` separates both sides: ``benchstat -col side FILE``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from uncork.model.results.gate_metrics import GATE_METRICS
from uncork.model.results.guard import GateCheck, GateOutcome, GuardResult
from uncork.model.units import count_words
from uncork.report.blocks import Block, Bullets, Code, Fold
from uncork.report.guard.answer import (
    OUTCOME_SIGNS,
    acknowledgement_words,
    check_place,
    check_sentence,
    effect_figures,
    guard_steps,
    side_words,
    values_text,
)
from uncork.report.guard.document import (
    difference_tables,
    explanations,
    gates_table,
    guard_facts,
    plan_block,
    plans_at,
    settings_lines,
    why_lines,
)
from uncork.report.headline import split_answer
from uncork.report.load.gobench import bench_environment, bench_number, bench_word
from uncork.report.write.junit import attributes, element, suite_xml
from uncork.report.write.markdown import block_lines, escape, footer, step_lines


def guard_junit(result: GuardResult) -> str:
    """Return the guard as XML with its declaration, ending with a newline. Texts are plain text."""
    counts = {outcome: sum(check.outcome is outcome for check in result.checks) for outcome in GateOutcome}
    failures = counts[GateOutcome.BROKEN]
    skipped = counts[GateOutcome.UNDECIDED] + counts[GateOutcome.ACKNOWLEDGED]
    name = f"uncork guard: {result.name}" if result.name else "uncork guard"
    seconds = f"{result.elapsed_ns / 1e9:.3f}"
    totals = {"tests": str(len(result.checks)), "failures": str(failures), "errors": "0"}
    suite = {"name": name, **totals, "skipped": str(skipped), "time": seconds}
    suite["timestamp"] = result.started_at[:19]
    steps = [f"{step.text} {step.command}".strip() for step in guard_steps(result)]
    facts = [*guard_facts(result), ("guard", result.id), ("status", str(result.status))]
    cases = (line for check in result.checks for line in _case(result, check, name))
    output = "\n".join([result.answer, *result.reasons, *result.warnings, *steps])
    return suite_xml({"name": name, **totals, "time": seconds}, suite, facts, cases, output)


def _case(result: GuardResult, check: GateCheck, suite: str) -> Iterator[str]:
    """Yield a test case: its name is the gate; its class, by which CI groups it, the guard and place."""
    place = check_place(check)
    # Dots separate packages in the tree of Jenkins.
    group = ".".join(part.replace(".", "_") for part in (suite, place) if part)
    name = f"{check.gate.text} ({place})" if place else check.gate.text
    yield f"<testcase{attributes({'name': name, 'classname': group})}>"
    sentence = check_sentence(check, result.baseline, result.against, result.confidence)
    match check.outcome:
        case GateOutcome.BROKEN:
            text = "\n".join([sentence, *filter(None, [check.reason]), *_evidence(result, check)])
            yield element("failure", text, {"type": "broken gate", "message": sentence})
        case GateOutcome.UNDECIDED:
            message = f"not decided: {sentence}{f' ({check.reason})' if check.reason else ''}"
            yield element("skipped", "", {"type": "not decided", "message": message})
        case GateOutcome.ACKNOWLEDGED:
            known = check.acknowledgement
            words = f"; {acknowledgement_words(known)}" if known is not None else ""
            yield element(
                "skipped", "", {"type": "acknowledged", "message": f"acknowledged: {sentence}{words}"}
            )
    figures = ", ".join(filter(None, (values_text(check), effect_figures(check))))
    shown = [*([figures] if figures else ()), *check.warnings]
    if check.outcome is GateOutcome.UNDECIDED:
        shown += why_lines(result, check)
    if shown:
        yield element("system-out", "\n".join(shown))
    yield "</testcase>"


def _evidence(result: GuardResult, check: GateCheck) -> Iterator[str]:
    yield from (f"- {line}" for line in why_lines(result, check))
    yield from (f"- {line}" for line in settings_lines(result))
    for difference in plans_at(result, check.cell, check.workload):
        if difference.kind == "changed":
            yield f"\n{difference.workload}, {difference.statement}:\n{difference.text}"


MOST: Final = 60_000
"""Maximum length in characters."""
_MOST_ROWS: Final = 100
_MOST_KEPT: Final = 10
"""Kept gates that are shown directly; a longer list is folded."""
_LONGEST: Final = 2_000
"""Maximum length of a line; only absurdly long names exceed it."""
_LEFT_OUT: Final = 90
"""Characters reserved for the note on what is left out."""


def guard_marker(result: GuardResult) -> str:
    """Return the hidden comment by which a bot finds its earlier comment."""
    name = re.sub(r"[^A-Za-z0-9._]+", "-", result.name or result.question).strip("-")
    return f"<!-- uncork-guard: {name or 'guard'} -->"


def guard_markdown(result: GuardResult) -> str:
    """Return the guard as GitHub-flavoured Markdown of at most `MOST` characters."""
    worst = next(
        (outcome for outcome in OUTCOME_SIGNS if any(c.outcome is outcome for c in result.checks)), None
    )
    sign = f"{OUTCOME_SIGNS[worst]} " if worst else ""
    headline, lead = (escape(_short(text)) for text in split_answer(result.answer))
    head = [f"{sign}**{headline}**{f' {lead}' if lead else ''}", "", guard_marker(result), "", *_head(result)]
    foot = f"{footer(tuple(guard_facts(result)), result.uncork_version)}\n"
    text = "\n".join(map(_short, head))
    if len(text) + len(foot) > MOST:  # hundreds of gates with long names
        whole = text[: MOST - len(foot) - _LEFT_OUT].rpartition("\n")[0]
        text = f"{whole}\n\n_The rest is left out because it is too long for a comment._\n"
    room = MOST - len(text) - len(foot)
    return f"{text}\n{_folded(result, room)}\n{foot}".replace("\n\n\n", "\n\n")


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 30]}… (the rest is left out)"


def _head(result: GuardResult) -> Iterator[str]:
    yield from block_lines(Bullets(result.reasons))
    kept = [check for check in result.checks if check.outcome is GateOutcome.KEPT]
    many = len(kept) > _MOST_KEPT
    shown = [check for check in result.checks if not (many and check in kept)]
    for checks, summary in ((shown, ""), (kept if many else [], f"{count_words(len(kept), 'gate')} kept")):
        if checks:
            more = len(checks) - _MOST_ROWS
            table = gates_table(checks[:_MOST_ROWS], f"{more} more are in the report" if more > 0 else "")
            yield from block_lines(Fold(summary, (table,)) if summary else table)
    yield from step_lines(tuple(guard_steps(result)), "**What to do next**")
    if result.warnings:
        yield from block_lines(Fold(f"Warnings ({len(result.warnings)})", (Bullets(result.warnings),)))


def _folded(result: GuardResult, room: int) -> str:
    parts = ["\n".join(block_lines(block)) for block in _explaining(result)]
    while sum(len(part) + 1 for part in parts) > room - _LEFT_OUT:
        parts.remove(max(parts, key=len))
    total = sum(1 for _ in _explaining(result))
    if len(parts) < total:
        left = count_words(total - len(parts), "part")
        parts.append(f"_{left} left out, too long for a comment; see the HTML report._\n")
    return "\n".join(parts)


def _explaining(result: GuardResult) -> Iterator[Block]:
    for explanation in explanations(result):
        yield Fold(explanation.title, (Bullets(explanation.lines),))
    for plan in result.plans:
        code = plan_block(plan)
        yield Fold(code.title, (Code(code.text, code.language),))
    others = settings_lines(result)
    if others:
        yield Fold(f"What else differs between the sides ({len(others)})", (Bullets(others),))
    yield from (Fold(table.caption, (replace(table, caption=""),)) for table in difference_tables(result))


_WORDS: Final = re.compile(r"[^A-Za-z0-9]+")


def guard_gobench(result: GuardResult, environment: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """Return a line per round and side for each workload, cell and metric with a gate, except plans."""
    return "\n".join(_lines(result, environment or {})) + "\n"


def _lines(result: GuardResult, environment: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    yield from bench_environment(environment.get("machine", {}), "uncork/guard")
    measured = {
        (check.cell, check.workload, check.gate.metric): check
        for check in result.checks
        if (check.gate.metric != "plan" and (check.baseline is not None or check.candidate is not None))
    }
    for metric in dict.fromkeys(check.gate.metric for check in measured.values()):
        facts = GATE_METRICS.get(metric)
        yield f"Unit {_unit(metric)} better={facts.better if facts else 'lower'}"
    for place, side in ((0, result.baseline), (1, result.candidate)):
        yield ""
        yield f"# {side.role} is {' '.join(side_words(side).split())}"
        yield f"side: {side.role}"
        title = "".join(part[:1].upper() + part[1:] for part in _WORDS.split(result.name))
        for check in measured.values():
            values = [pair[place] for _, *pair in check.by_round]
            values = values or [(check.baseline, check.candidate)[place]]
            keys = {"workload": check.workload or "all", **dict(check.cell)}
            parts = [f"{bench_word(key)}={bench_word(value)}" for key, value in keys.items()]
            name = "/".join([f"BenchmarkGuard{title}", *parts])
            scale = 100.0 if check.unit == "share" else 1.0
            for value in values:
                if value is not None:
                    yield f"{name} 1 {bench_number(value * scale)} {_unit(check.gate.metric)}"


def _unit(metric: str) -> str:
    """Return a unit that benchstat formats well: it knows ns, B and /op."""
    facts = GATE_METRICS.get(metric)
    if metric == "latency_mean":
        return "ns/op"
    if metric == "throughput":
        return "op/s"
    short = metric.removeprefix("latency_").replace("_bytes", "").replace("_", "-")
    match facts.unit if facts else "":
        case "ns":
            return f"{short}-ns"
        case "B":
            return f"{short}-B"
        case "share":
            return f"{short}-%"
        case _:
            return f"{short}/op"
