"""A guard as JUnit XML, which CI systems read: the guard is a suite, each gate and place a test case. Pure.

JUnit XML has no standard. This module follows the schema of Jenkins (junit-10 of its xunit plugin), which
GitLab and others read too. A broken gate is a *failure*; an acknowledged or undecided gate is *skipped*. An
*error* would describe an undecided gate better, but Jenkins and GitLab count errors as failed tests, so noise
alone would turn a test red. The exit status separates broken from undecided (3 and 4), and the message of an
undecided gate begins with "not decided".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.sax.saxutils import quoteattr

from uncork.model.results.guard import GateCheck, GateOutcome, GuardResult
from uncork.report.guard.answer import acknowledgement_words, guard_steps
from uncork.report.guard.document import guard_facts
from uncork.report.guard.why import plans_at, settings_lines, why_lines
from uncork.report.guard.words import check_place, check_sentence, effect_figures, values_text

__all__ = ["guard_junit"]

_INVALID: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot represent, even escaped."""


def guard_junit(result: GuardResult) -> str:
    """Return the guard as XML with its declaration, ending with a newline. Texts are plain text."""
    counts = {outcome: sum(one.outcome is outcome for one in result.checks) for outcome in GateOutcome}
    failures = counts[GateOutcome.BROKEN]
    skipped = counts[GateOutcome.UNDECIDED] + counts[GateOutcome.ACKNOWLEDGED]
    name = f"uncork guard: {result.name}" if result.name else "uncork guard"
    seconds = f"{result.elapsed_ns / 1e9:.3f}"
    totals = {"tests": str(len(result.checks)), "failures": str(failures), "errors": "0"}
    suite = {"name": name, **totals, "skipped": str(skipped), "time": seconds}
    suite["timestamp"] = result.started_at[:19]
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites{_attributes({'name': name, **totals, 'time': seconds})}>",
        f"<testsuite{_attributes(suite)}>",
        *_properties(result),
        *(line for check in result.checks for line in _case(result, check, name)),
        _text("system-out", _words(result)),
        "</testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _properties(result: GuardResult) -> Iterator[str]:
    yield "<properties>"
    facts = [*guard_facts(result), ("guard", result.id), ("status", str(result.status))]
    for name, value in facts:
        yield f"<property{_attributes({'name': name, 'value': value})}/>"
    yield "</properties>"


def _case(result: GuardResult, check: GateCheck, suite: str) -> Iterator[str]:
    """Yield a test case: its name is the gate; its class, by which CI groups it, the guard and place."""
    place = check_place(check)
    # Dots separate packages in the tree of Jenkins.
    group = ".".join(part.replace(".", "_") for part in (suite, place) if part)
    name = f"{check.gate.text} ({place})" if place else check.gate.text
    yield f"<testcase{_attributes({'name': name, 'classname': group})}>"
    sentence = check_sentence(check, result.baseline, result.against, result.confidence)
    match check.outcome:
        case GateOutcome.BROKEN:
            text = "\n".join([sentence, *filter(None, [check.reason]), *_evidence(result, check)])
            yield _text("failure", text, {"type": "broken gate", "message": sentence})
        case GateOutcome.UNDECIDED:
            message = f"not decided: {sentence}{f' ({check.reason})' if check.reason else ''}"
            yield _text("skipped", "", {"type": "not decided", "message": message})
        case GateOutcome.ACKNOWLEDGED:
            known = check.acknowledgement
            words = f"; {acknowledgement_words(known)}" if known is not None else ""
            yield _text(
                "skipped", "", {"type": "acknowledged", "message": f"acknowledged: {sentence}{words}"}
            )
    figures = ", ".join(filter(None, (values_text(check), effect_figures(check))))
    shown = [*([figures] if figures else ()), *check.warnings]
    if check.outcome is GateOutcome.UNDECIDED:
        shown += why_lines(result, check)
    if shown:
        yield _text("system-out", "\n".join(shown))
    yield "</testcase>"


def _evidence(result: GuardResult, check: GateCheck) -> Iterator[str]:
    yield from (f"- {line}" for line in why_lines(result, check))
    yield from (f"- {line}" for line in settings_lines(result))
    for one in plans_at(result, check.cell, check.workload):
        if one.kind == "changed":
            yield f"\n{one.workload}, {one.statement}:\n{one.text}"


def _words(result: GuardResult) -> str:
    steps = [f"{step.text} {step.command}".strip() for step in guard_steps(result)]
    return "\n".join([result.answer, *result.reasons, *result.warnings, *steps])


def _attributes(values: dict[str, str]) -> str:
    return "".join(f" {name}={quoteattr(_clean(value))}" for name, value in values.items())


def _text(tag: str, text: str, attributes: dict[str, str] | None = None) -> str:
    opened = f"{tag}{_attributes(attributes or {})}"
    if not text:
        return f"<{opened}/>"
    # CDATA keeps diffs readable in the file. It cannot contain its own end marker, so split the marker.
    whole = _clean(text).replace("]]>", "]]]]><![CDATA[>")
    return f"<{opened}><![CDATA[{whole}]]></{tag}>"


def _clean(text: str) -> str:
    return _INVALID.sub("\N{REPLACEMENT CHARACTER}", text)
