"""The rules for what a report may claim, checked on any report: each broken one is named in a sentence.

A report contradicts itself if its answer says what a table or another sentence denies. These rules hold for
reports on databases, services and cures, and for advice, whatever was found.
"""

import re
from collections.abc import Iterator
from typing import Any

from uncork.model.results.costly_parts import CostlyPart
from uncork.report.blocks import Document

ALL_CLEAR = re.compile(r"nothing stands out|no change is needed|healthy", re.IGNORECASE)
COSTLY = 0.05
"""Smallest share of a statement that must have a status."""
UNKNOWN_FACTOR = 100.0
DESTROYS = re.compile(r"\b(DROP|TRUNCATE|DELETE)\b")
SPAN = re.compile(r"interval: (?:over )?([\d\s.]+?) to ([\d\s.]+)")
WHOLE = re.compile(r"all statements take (?!at least)")
OTHER_COMMANDS = ("uncork ", "psql ", "cat ")


def broken_rules(document: Document, result: Any) -> list[str]:
    """Return what a report says against the rules; `result` is what it was made from."""
    return [
        *_statuses(document, result),
        *_all_clears(document, result),
        *_sums(result),
        *_savings(result),
        *_headlines(document, result),
        *_steps(document, result),
        *_intervals(document),
        *_blindness(document, result),
        *_own_statements(document, result),
    ]


def _said(document: Document) -> str:
    return "\n".join([document.answer, *document.reasons, *(step.text for step in document.steps)])


def _costliest(result: Any) -> tuple[CostlyPart, ...]:
    return tuple(getattr(_watched(result), "costliest", ()))


def _watched(result: Any) -> Any:
    """Return the part of a result that has the statements: a service's database, or the result itself."""
    database = getattr(result, "database", None)
    return database if hasattr(database, "costliest") else result


def _statuses(document: Document, result: Any) -> Iterator[str]:
    """The three costliest statements have a status, in the result and in the answer."""
    watched = _watched(result)
    templates = [one for one in getattr(watched, "templates", ()) if getattr(one, "number", -1) >= 0]
    known = {part.name for part in _costliest(result) if part.kind == "statement"}
    if hasattr(watched, "costliest"):
        for template in sorted(templates, key=lambda one: -one.share)[:3]:
            if template.share > COSTLY and template.text not in known:
                yield f"no status of a statement with {template.share:.0%} of the time: {template.text}"
    said = "\n".join(document.reasons)
    if known and "Costliest statements" not in said:
        yield "the answer lists no costliest statements"


def _all_clears(document: Document, result: Any) -> Iterator[str]:
    """Nothing is well beside an unexplained part with a fifth of the time."""
    large = [part for part in _costliest(result) if part.state == "not explained" and part.share >= 0.2]
    found = ALL_CLEAR.search(_said(document))
    if large and found:
        yield f'"{found[0]}" beside {large[0].share:.0%} that nothing explains: {large[0].name}'


def _sums(result: Any) -> Iterator[str]:
    """Shares are parts of one whole."""
    shares = [part.share for part in _costliest(result) if part.kind == "statement"]
    if sum(shares) > 1.0001:
        yield f"the statements' shares add up to {sum(shares):.0%}"
    for finding in getattr(result, "findings", None) or ():
        bill = getattr(finding, "bill", None)
        if bill is not None and not 0.0 <= bill.share <= 1.0001:
            yield f"a finding has {bill.share:.0%} of the time: {finding.headline}"
    for part in _costliest(result):
        findings = getattr(_watched(result), "findings", None)
        if part.state == "found" and findings is not None and not 1 <= (part.finding or 0) <= len(findings):
            yield f"finding {part.finding} is not in the report"


def _savings(result: Any) -> Iterator[str]:
    """A saving is at most the cost, on the same base."""
    for tried in getattr(result, "tried", ()):
        for change in tried.changes:
            if change.net is not None and change.net.saved > change.net.before * 1.0001:
                yield f"{change.name} saves {change.net.saved:.0f} s of {change.net.before:.0f} s"


def _headlines(document: Document, result: Any) -> Iterator[str]:
    """A headline about all statements counts only what was measured."""
    chosen, whole = getattr(result, "chosen", None), getattr(result, "all_s_per_hour", None)
    if not WHOLE.search(document.answer) or chosen is None or chosen.net is None:
        return
    if whole is None or chosen.net.before < 0.99 * whole:
        yield "the headline counts statements that were not measured"


def _steps(document: Document, result: Any) -> Iterator[str]:
    """Each change has its finding in the report, and what destroys comes last."""
    findings = [*(getattr(_watched(result), "findings", None) or ())]
    findings += [tried.finding for tried in getattr(result, "tried", ())]
    offered = {candidate.sql for finding in findings for candidate in getattr(finding, "candidates", ())}
    offered |= {change.sql for tried in getattr(result, "tried", ()) for change in tried.changes}
    careful = False
    for step in document.steps:
        command = step.command
        destroys = DESTROYS.search(command) and not command.startswith(OTHER_COMMANDS)
        if destroys and not (step.careful and step.text.startswith("This ")):
            yield f"a step destroys without saying so first: {command}"
        if careful and not step.careful:
            yield f"a step that destroys or locks stands before: {step.text}"
        careful = careful or step.careful
        if command and not command.startswith(OTHER_COMMANDS) and findings and command not in offered:
            yield f"a step has no finding: {command}"


def _intervals(document: Document) -> Iterator[str]:
    """No interval wider than a factor of 100 is printed as figures."""
    for low, high in SPAN.findall(_text(document)):
        ends = [float(end.replace(" ", "").rstrip(".") or 0) for end in (low, high)]
        if ends[1] > UNKNOWN_FACTOR * ends[0]:
            yield f"an interval from {low} to {high} says nothing"


def _blindness(document: Document, result: Any) -> Iterator[str]:
    """An empty answer says that the role sees little, if it does."""
    watch = getattr(result, "watch", None)
    hidden = getattr(_watched(result), "hidden", None)
    partial = hidden is not None and (hidden.share is None or hidden.share >= COSTLY)
    if partial and ALL_CLEAR.search(document.answer):
        yield "an all-clear beside work that is hidden from this role"
    blind = watch is not None and getattr(watch, "hidden", 0) and not result.tree.sessions
    if blind and not re.search("may see|cannot see", document.answer):
        yield "the answer does not say that sessions are hidden from this role"


def _own_statements(document: Document, result: Any) -> Iterator[str]:
    """No statement is uncork's own. A log whose prefix has no %a does not show whose its entries are."""
    texts = [getattr(template, "text", "") for template in getattr(_watched(result), "templates", ())]
    if "/* uncork */" in "\n".join([_said(document), *texts]):
        yield "the report shows uncork's own statements"


def _text(document: Document) -> str:
    return _said(document) + "\n" + repr(document.sections)
