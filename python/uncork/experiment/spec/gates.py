"""Parse gates: from text such as ``latency_p99 < +5%`` to a `Gate`, or an error that says what is allowed.

A gate is a metric, a relation and a bound, and optionally the workload that it applies to::

    p99 < +5%                          worse than the baseline by less than 5 %
    throughput > -3%
    queries a request <= baseline      no worse than the baseline
    success > -0.5 points              shares differ by percentage points
    p99 < 20ms                         the candidate alone
    plan unchanged
    size < +10% on orders

The parser accepts variations in wording: case, underscores, ``a request`` or ``an operation``, ``at most``
for ``<=``. It does not accept ambiguity. A bound that no worse candidate could break (``throughput < +5%``)
is an error, and so is ``5%``, which could mean ``+5%`` or a share.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from pydantic import field_validator

from uncork.errors import UsageError
from uncork.experiment.spec.fields import Section, key
from uncork.experiment.spec.problems import unknown
from uncork.model.results.gate_metrics import (
    GATE_METRICS,
    OWN_METRIC,
    GateMetric,
    metric_words,
    own_metric,
)
from uncork.model.results.guard import Bound, Gate, Relation, metric_of
from uncork.model.units import parse_bytes, parse_duration

if TYPE_CHECKING:
    from uncork.experiment.spec.schema import Spec

_WRITTEN: Final[dict[Relation, tuple[str, ...]]] = {
    "<=": ("<=", "=<", "≤", "at most", "no more than", "up to"),
    "<": ("<", "below", "under", "less than"),
    ">=": (">=", "=>", "≥", "at least", "no less than"),
    ">": (">", "above", "over", "more than"),
    "=": ("unchanged", "stays the same"),
}
_RELATIONS: Final = {word: relation for relation, words in _WRITTEN.items() for word in words}
_SIGNS: Final = sorted((word for word in _RELATIONS if not word[0].isalpha()), key=len, reverse=True)
_WORDS: Final = sorted((word for word in _RELATIONS if word[0].isalpha()), key=len, reverse=True)
_OWN: Final = re.compile(r"metric (\w+)", re.IGNORECASE)
"""A metric of the experiment file, such as ``metric dead_rows``."""
_RELATION: Final = re.compile(
    rf"{'|'.join(map(re.escape, _SIGNS))}|(?<![^\s_])(?:(?:is|stays)[ _])?(?:{'|'.join(_WORDS)})(?!\S)",
    re.IGNORECASE,
)
_EACH: Final = re.compile(
    r"(?: (?:an?|per|each|of an?) | ?/ ?)(?:operation|request|transaction|statement|op|call)$"
)
_ON: Final = re.compile(r"(?:^|\s+)on\s+(\S.*)$", re.IGNORECASE | re.DOTALL)
_NUMBER: Final = r"(?:\d+(?:_\d+)*(?:\.\d+)?|\.\d+)"
_CHANGE: Final = re.compile(
    rf"(?:(?:the )?baseline )?([+-]) ?({_NUMBER}) ?(%|points?|percentage points?|pp)", re.IGNORECASE
)
_TIMES: Final = re.compile(rf"({_NUMBER}) ?[x×*](?: ?(?:the )?baseline)?", re.IGNORECASE)
_BASELINE: Final = re.compile(r"(?:that of )?(?:the )?baseline(?:'s)?", re.IGNORECASE)
_PLAIN: Final = re.compile(rf"({_NUMBER})")
_RATE: Final = re.compile(rf"({_NUMBER}) ?(?:/ ?s|(?:a|per) second|tps|rps|qps)?", re.IGNORECASE)
_SHARE: Final = re.compile(rf"({_NUMBER}) ?%")
_SIMPLE: Final = re.compile(r"[^\s\"']+")

_VALUES: Final = {
    "ns": "a time such as 20ms",
    "B": "a size such as 8kB",
    "/s": "a rate such as 1000/s",
    "share": "a share such as 1%",
    "": "a number",
}


def parse_gate(text: str) -> Gate:
    """Parse a gate. Raises UsageError with the text, the problem, and what is allowed."""
    written = text.strip()
    try:
        return _parse(written)
    except ValueError as error:
        raise UsageError(f'gate "{written}": {error}') from error


def gate_workloads(gate: Gate, spec: Spec) -> tuple[str, ...]:
    """Return the workloads that a gate applies to: the one it names, or all that its metric fits.

    Success rates exist for HTTP requests, plans for SQL. A gate on sizes applies to no workload.
    """
    if metric_of(gate).source == "size":
        return ()
    names = (gate.workload,) if gate.workload else tuple(spec.workloads)
    return tuple(name for name in names if unfit(gate, spec, name) is None)


def unfit(gate: Gate, spec: Spec, workload: str) -> str | None:
    """Return why a gate cannot apply to a workload; None if it can."""
    by_http = spec.workloads[workload].http is not None
    if gate.metric.startswith(OWN_METRIC):
        return _unfit_own(gate, spec)
    source = metric_of(gate).source
    if source == "share" and not by_http:
        return "success counts HTTP requests, but this workload sends SQL"
    if source == "plan" and by_http:
        return "only SQL has plans, but this workload sends HTTP requests"
    if gate.metric == "service_cpu" and not by_http:
        return "this workload sends SQL and runs no services"
    return None


def _unfit_own(gate: Gate, spec: Spec) -> str | None:
    name = gate.metric.removeprefix(OWN_METRIC)
    if name not in spec.metrics:
        known = ", ".join(spec.metrics) or "none"
        return f"the file has no [metrics.{name}]; its metrics: {known}"
    better = spec.metrics[name].better
    if better != metric_of(gate).better:
        limit = "how high it may rise" if better == "lower" else "how low it may fall"
        return f"{better} is better for {name}, so the gate must limit {limit}"
    return None


def default_gates(spec: Spec) -> tuple[Gate, ...]:
    """Return the gates of a guard that specifies none.

    Each workload's own metric may be worse by less than the practical threshold. For HTTP workloads, the
    success rate must be no worse than the baseline's.
    """
    found = []
    for name, facts in spec.workloads.items():
        where = name if len(spec.workloads) > 1 else ""
        practical = Decimal(str(spec.practical(name)))
        if facts.metric == "success":
            text = f"success > -{_decimal(practical * 100)} points"
        else:
            relation, sign = ("<", "+") if GATE_METRICS[facts.metric].better == "lower" else (">", "-")
            text = f"{facts.metric} {relation} {sign}{_decimal(practical * 100)}%"
        gates = [text] if facts.http is None or facts.metric == "success" else [text, "success >= baseline"]
        found += [parse_gate(f"{gate} on {where}" if where else gate) for gate in gates]
    return tuple(found)


# ---- the guard section of an experiment file ----


class Guard(Section):
    """What `uncork guard` requires of a candidate."""

    gates: list[str] = key(
        'Conditions for the candidate, such as "p99 < +5%", "queries a request <= baseline", '
        '"plan unchanged on NAME". Default: each workload\'s own metric may be worse by less than practical, '
        "and the success rate of HTTP workloads must be no worse.",
        list,
    )
    acknowledged: str | None = key(
        "The file of known changes, beside this one. Default: uncork-acknowledged.toml.", min_length=1
    )
    build: list[str] = key(
        "A command, as a list, that runs once in each commit's checkout, without a shell.", list
    )

    @field_validator("gates")
    @classmethod
    def _readable(cls, gates: list[str]) -> list[str]:
        wrong = []
        for gate in gates:
            try:
                parse_gate(gate)
            except UsageError as error:
                wrong.append(str(error))
        if wrong:
            raise ValueError("; and ".join(wrong))
        return gates

    @property
    def parsed(self) -> tuple[Gate, ...]:
        """Return the gates without duplicates."""
        return tuple(dict.fromkeys(map(parse_gate, self.gates)))


def check_gates(spec: Spec, gates: tuple[Gate, ...]) -> Iterator[str]:
    """Yield the problems of gates on an experiment: an unknown workload, or a metric that fits none."""
    for gate in gates:
        if gate.workload and gate.workload not in spec.workloads:
            yield f'gate "{gate.text}": {unknown("workload", gate.workload, spec.workloads)}'
            continue
        names = (gate.workload,) if gate.workload else tuple(spec.workloads)
        reasons = [unfit(gate, spec, name) for name in names]
        if all(reasons):
            yield f'gate "{gate.text}": does not fit workload {names[0]}: {reasons[0]}'


def _parse(text: str) -> Gate:
    spaced = " ".join(text.replace("−", "-").split())
    match = _RELATION.search(spaced)
    said = spaced if match is None else spaced[: match.start()]
    own = _OWN.fullmatch(said.strip())
    if own is not None and match is None:
        raise ValueError(f'expected <, <=, > or >= after "{said.strip()}"; found nothing')
    metric = _metric(said, whole=match is None) if own is None else own_metric(own[1], "lower")
    if match is None:
        raise ValueError(f"expected {_after(metric)} after the metric; found nothing")
    sign = re.sub(r"^(?:is|stays)[ _](?!the same)", "", match[0].lower())
    relation = _RELATIONS[sign]
    if own is not None and relation in (">", ">="):
        metric = own_metric(own[1], "higher")
    rest, workload = _workload(spaced[match.end() :])
    if (metric.source == "plan") != (relation == "="):
        found = match[0]
        raise ValueError(f'expected {_after(metric)} after the metric; found "{found}"')
    if relation == "=":
        if rest:
            raise ValueError(f'expected nothing or "on WORKLOAD" after "{match[0]}"; found "{rest}"')
        return Gate(text, metric.name, "unchanged", "=", 1.0, workload)
    bound, limit = _limit(rest, metric, match[0])
    _same_direction(metric, relation, bound)
    return Gate(text, metric.name, bound, relation, limit, workload)


def _metric(words: str, *, whole: bool) -> GateMetric:
    said = words.strip()
    plain = " ".join(re.sub(r"[_-]", " ", said.lower()).split())
    known = metric_words()
    name = known.get(plain) or known.get(_EACH.sub("", plain))
    if name is not None:
        return GATE_METRICS[name]
    if not plain:
        raise ValueError(f"expected a metric first: one of {', '.join(GATE_METRICS)}")
    if whole and (begun := _begins(plain, known)):
        metric = GATE_METRICS[known[begun]]
        raise ValueError(f'expected {_after(metric)} after "{begun}"; found "{plain[len(begun) :].strip()}"')
    near = difflib.get_close_matches(plain, known, n=1) or difflib.get_close_matches(
        _EACH.sub("", plain), known, n=1
    )
    hint = (
        f'; did you mean "{_shown(near[0], known)}"?'
        if near
        else f"; expected one of {', '.join(GATE_METRICS)}"
    )
    raise ValueError(f'there is no metric "{said}"{hint}')


def _begins(plain: str, known: Iterable[str]) -> str:
    """Return the longest known name that a text begins with; empty if there is none."""
    return max((word for word in known if plain.startswith(f"{word} ")), key=len, default="")


def _shown(word: str, known: dict[str, str]) -> str:
    name = known[word]
    return name if name.replace("_", " ") == word else word


def _after(metric: GateMetric) -> str:
    if metric.source == "plan":
        return '"unchanged"'
    return "< or <=" if metric.better == "lower" else "> or >="


def _workload(rest: str) -> tuple[str, str]:
    match = _ON.search(rest)
    if match is None:
        if re.search(r"(?:^|\s)on$", rest.strip(), re.IGNORECASE):
            raise ValueError('expected a workload\'s name after "on"; found nothing')
        return rest.strip(), ""
    name = match[1].strip()
    if name[0] in "\"'":
        if len(name) < 3 or name[-1] != name[0] or name[0] in name[1:-1]:
            raise ValueError(f'expected one workload in quotes after "on"; found {name}')
        name = name[1:-1]
    elif not _SIMPLE.fullmatch(name):
        raise ValueError(f'expected one workload after "on", in quotes if it has spaces; found "{name}"')
    return rest[: match.start()].strip(), name


def _limit(rest: str, metric: GateMetric, relation: str) -> tuple[Bound, float]:
    share = metric.unit == "share"
    if _BASELINE.fullmatch(rest):
        return ("difference", 0.0) if share else ("ratio", 1.0)
    if match := _CHANGE.fullmatch(rest):
        change = Decimal(match[1] + match[2].replace("_", "")) / 100
        if share and abs(change) < 1:
            return "difference", float(change)
        if not share and match[3] == "%" and change > -1:
            return "ratio", float(1 + change)
    elif not share and (match := _TIMES.fullmatch(rest)) and Decimal(match[1].replace("_", "")):
        return "ratio", float(match[1].replace("_", ""))
    else:
        value = _value(rest, metric)
        if value is not None:
            return "value", value
    changes = "a change such as +0.5 points" if share else f"a change such as {_example(metric)}"
    hint = ""
    if not share and _SHARE.fullmatch(rest):
        hint = f'; did you mean "{"+" if metric.better == "lower" else "-"}{rest}"?'
    found = f'"{rest}"' if rest else "nothing"
    raise ValueError(
        f'expected baseline, {changes}, or {_VALUES[metric.unit]} after "{relation}"; found {found}{hint}'
    )


def _example(metric: GateMetric) -> str:
    return "+5%" if metric.better == "lower" else "-5%"


def _value(text: str, metric: GateMetric) -> float | None:
    if metric.unit in ("ns", "B"):
        try:
            return float(parse_duration(text) if metric.unit == "ns" else parse_bytes(text))
        except ValueError:
            return None
    pattern = {"/s": _RATE, "share": _SHARE, "": _PLAIN}[metric.unit]
    match = pattern.fullmatch(text)
    if match is None:
        return None
    number = Decimal(match[1].replace("_", ""))
    if metric.unit == "share":
        return float(number / 100) if number <= 100 else None
    return float(number)


def _same_direction(metric: GateMetric, relation: Relation, bound: Bound) -> None:
    if (relation in ("<", "<=")) == (metric.better == "lower"):
        return
    turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}[relation]
    what = "how low it may fall" if metric.better == "higher" else "how high it may rise"
    example = "" if bound == "value" else f', such as "{metric.name} {turned} {_example_bound(metric)}"'
    raise ValueError(
        f"{metric.better} is better for {metric.title}, so the gate must limit {what}{example}; "
        f'found "{relation}"'
    )


def _example_bound(metric: GateMetric) -> str:
    sign = "+" if metric.better == "lower" else "-"
    return f"{sign}1 points" if metric.unit == "share" else f"{sign}5%"


def write_bound(gate: Gate) -> str:
    """Return a gate's bound in the notation of gates: ``+5%``, ``-1 points``, ``20ms``, ``baseline``."""
    unit, limit = metric_of(gate).unit, Decimal(repr(gate.limit))
    if gate.bound == "value":
        if unit == "share":
            return f"{_decimal(limit * 100)}%"
        if unit == "ns":
            scale, name = next((s, n) for s, n in _TIMES_DOWN if limit >= s or s == 1)
            return f"{_decimal(limit / scale)}{name}"
        return f"{_decimal(limit)}{unit}"
    change = limit if gate.bound == "difference" else limit - 1
    if not change:
        return "baseline"
    sign = "+" if change > 0 else "-"
    return f"{sign}{_decimal(abs(change) * 100)}{' points' if gate.bound == 'difference' else '%'}"


_TIMES_DOWN: Final = ((10**9, "s"), (10**6, "ms"), (10**3, "us"), (1, "ns"))


def _decimal(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
