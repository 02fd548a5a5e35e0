"""A guard as JUnit XML, which CI systems read: the guard is a suite, each gate and place a test case. Pure.

JUnit XML has no standard. This module follows the schema of Jenkins (junit-10 of its xunit plugin), which
GitLab and others read too. A broken gate is a *failure*; an acknowledged or undecided gate is *skipped*. An
*error* would describe an undecided gate better, but Jenkins and GitLab count errors as failed tests, so noise
alone would turn a test red. The exit status separates broken from undecided (3 and 4), and the message of an
undecided gate begins with "not decided".
"""

from __future__ import annotations

from collections.abc import Iterator

from uncork.model.results.guard import GateCheck, GateOutcome, GuardResult
from uncork.report.guard.answer import acknowledgement_words, guard_steps
from uncork.report.guard.document import guard_facts
from uncork.report.guard.why import plans_at, settings_lines, why_lines
from uncork.report.guard.words import check_place, check_sentence, effect_figures, values_text
from uncork.report.write.junit import HEAD, attributes, element


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
    lines = [
        HEAD,
        f"<testsuites{attributes({'name': name, **totals, 'time': seconds})}>",
        f"<testsuite{attributes(suite)}>",
        *_properties(result),
        *(line for check in result.checks for line in _case(result, check, name)),
        element("system-out", _words(result)),
        "</testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _properties(result: GuardResult) -> Iterator[str]:
    yield "<properties>"
    facts = [*guard_facts(result), ("guard", result.id), ("status", str(result.status))]
    for name, value in facts:
        yield f"<property{attributes({'name': name, 'value': value})}/>"
    yield "</properties>"


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


def _words(result: GuardResult) -> str:
    steps = [f"{step.text} {step.command}".strip() for step in guard_steps(result)]
    return "\n".join([result.answer, *result.reasons, *result.warnings, *steps])
