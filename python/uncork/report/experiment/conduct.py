"""Sections on the run itself and how to repeat it: noise, warnings, definitions, environment, method."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from uncork.model.results.experiment import (
    ArmSystem,
    FactorFacts,
    HostFacts,
    RunResult,
    ScopeEffect,
    SliceCheckFacts,
    WorkloadFacts,
)
from uncork.model.system import GENERATOR, SERVER, ProcessUse, SystemUse
from uncork.model.units import (
    count_words,
    format_bytes,
    format_count,
    format_duration,
    format_percent,
    series_words,
    share_text,
)
from uncork.report.blocks import Block, Bullets, Code, Fold, Paragraph, Section, Table, Value, filled_section
from uncork.report.cells import (
    column,
    facts_table,
    folded_if_long,
    header,
    number,
    table_if_any,
    table_of,
    without_empty_columns,
)
from uncork.report.experiment.view import View
from uncork.report.system_blocks import lacks_words, system_blocks, system_doubts
from uncork.report.words import (
    MEASURED,
    capitalised,
    cell_words,
    effect_with_interval,
    figures_text,
    has_effect,
    metric_title,
    sentence,
)

_MOST_RANKED: Final = 200


def conduct_sections(view: View) -> Iterable[Section]:
    """Yield the sections on the run itself; the last one says how to repeat it."""
    result = view.result
    yield from filled_section("noise", "Noise floor", *_noise(view))
    yield from filled_section("warnings", "Warnings and disturbances", *_warnings(view))
    yield Section("definitions", "What was compared", tuple(_definitions(view)))
    if result.environment:
        tables = tuple(_known_facts(title, facts) for title, facts in result.environment.items() if facts)
        yield Section("environment", "Environment", tables)
    yield Section("reproduce", "How to repeat this run", tuple(_reproduce(view)))


def _noise(view: View) -> tuple[Block, ...]:
    noise = view.result.noise
    blocks: list[Block] = [Paragraph(sentence(noise.sentence))] if noise.sentence else []
    if noise.false_alarms:
        times = count_words(noise.false_alarms, "time")
        blocks.append(
            Paragraph(
                f"{view.baseline} was reported as different from itself {times}; each is a false alarm."
            )
        )
    measured = [c for c in noise.comparisons if has_effect(c)]
    if measured:
        table = table_of(
            f"{view.baseline} against itself (two trials in every block)",
            measured,
            header("workload", lambda comparison: comparison.workload),
            header("cell", lambda comparison: view.cell(comparison.cell)),
            column("effect", figures_text),
            column("verdict", lambda comparison: comparison.verdict.value),
        )
        blocks.append(folded_if_long(table, 4))
    if checked := slice_check_words(view.result.slice_checks):
        blocks.append(Paragraph(checked))
    return (*blocks, *_by_ranks(view))


def _by_ranks(view: View) -> Iterable[Block]:
    ranked = [(c, c.ranks) for c in view.result.comparisons if c.ranks is not None and has_effect(c)]
    ranked = ranked[:_MOST_RANKED]
    if not ranked:
        return
    words = Paragraph(
        "The median of all pairwise means of the rounds, with the interval of Wilcoxon's signed ranks. A few "
        "extreme rounds hardly move it. It checks the verdicts, which do not depend on it, and is not "
        "corrected for repeated looks."
    )
    table = table_of(
        "Effects by mean and by ranks",
        [comparison for comparison, _ in ranked],
        header("variant", lambda comparison: comparison.variant),
        column("workload", lambda comparison: comparison.workload),
        column("cell", lambda comparison: view.cell(comparison.cell)),
        column("effect", figures_text),
        column("by ranks", [effect_with_interval(ranks.ratio, ranks.low, ranks.high) for _, ranks in ranked]),
    )
    title = f"The same effects by ranks (Hodges-Lehmann, {count_words(len(ranked), 'comparison')})"
    yield Fold(title, (words, table))


def _warnings(view: View) -> tuple[Block, ...]:
    result = view.result
    items = [*result.warnings, *disturbed_words(result.slice_checks, view.result.factors)]
    shared: dict[str, list[str]] = {}
    for c in result.comparisons:
        for warning in c.warnings:
            shared.setdefault(warning, []).append(f"{c.variant} on {view.place((c.cell, c.workload))}")
    for warning, where in shared.items():
        more = f", and {len(where) - 3} more" if len(where) > 3 else ""
        items.append(f"{capitalised(warning)}: {'; '.join(where[:3])}{more}.")
    if result.run.failed_trials:
        items.append(
            f"{format_count(result.run.failed_trials)} of {count_words(result.run.trials, 'trial')} failed "
            "and were left out of the statistics."
        )
    touched = {name: count for name, count in result.disturbances.items() if count}
    items += [
        f"Affected by {name}, but kept in the statistics: {count_words(count, 'trial')}."
        for name, count in touched.items()
    ]
    return (Bullets(tuple(items)),) if items else ()


def _definitions(view: View) -> Iterable[Block]:
    table = table_of(
        "Variants",
        view.result.variants,
        header("variant", lambda variant: Value(variant.name, note="baseline" if variant.baseline else "")),
        column("what it is", lambda variant: variant.title),
        column("texts", lambda variant: _assignments(variant.values)),
        column("settings", lambda variant: _assignments(variant.settings)),
        column("services", lambda variant: Value("; ".join(variant.services), code=True)),
    )
    yield without_empty_columns(table)
    for workload in view.result.workloads:
        yield Fold(f"Workload {workload.name}: {workload.title}", tuple(_workload(workload)))


def _assignments(texts: Mapping[str, str]) -> Value:
    return Value("; ".join(f"{name} = {text}" for name, text in texts.items()), code=True)


def _workload(workload: WorkloadFacts) -> Iterable[Block]:
    for text in workload.sql:
        yield Code(text, "sql")
    if workload.requests:
        yield Code("\n".join(workload.requests), "text")
    facts = {
        "compared by": f"{metric_title(workload.metric)}, {workload.better} is better",
        "clients": str(workload.clients),
        "protocol": workload.protocol,
        "caches at the start of a trial": workload.cache,
        "state": workload.state,
        "answer": workload.answer,
        "a trial stops after": workload.stop,
    }
    yield _known_facts(f"How {workload.name} is run", facts)


def _reproduce(view: View) -> Iterable[Block]:
    result = view.result
    yield Code(result.run.reproduce, "sh")
    confidence, share, precision = (
        f"{number * 100:.3g} %" for number in (result.confidence, result.practical, result.precision)
    )
    items = [
        f"The seed {result.run.seed} reproduces the order of the trials; the times depend on the machine.",
        f"Effects are ratios within blocks, averaged over rounds; intervals keep their {confidence} "
        f"confidence at every look. Rounds stop at {precision} precision; differences under {share} do not "
        "matter.",
        result.correction,
        f"Source of the case: {result.source}." if result.source else "",
    ]
    yield Bullets(tuple(item for item in items if item))


def _known_facts(caption: str, facts: Mapping[str, str]) -> Table:
    return facts_table(caption, [(name, text) for name, text in facts.items() if text], "name", "value")


# ---- sentences on whether short slices show the same effects as long ones ----


def slice_check_words(checks: Sequence[SliceCheckFacts]) -> str:
    """Return how far the effects of short and long slices agree; empty without such slices."""
    if not checks:
        return ""
    known = [
        check for check in checks if check.low is not None and check.high is not None and not check.disturbed
    ]
    if not known:
        if any(check.disturbed for check in checks):
            return ""
        return (
            "Variants took turns in short slices. Whether this disturbs them was not checked: the check "
            "needs at least two rounds of long slices (every third round), and this run ended earlier."
        )
    widest = max(max(-math.log(check.low or 1.0), math.log(check.high or 1.0)) for check in known)
    fewest = min(check.rounds for check in known)
    return (
        "Variants took turns in short slices; every third round had slices five times as long. Both lengths "
        f"show the same effects to within {format_percent(math.exp(widest)).removeprefix('+')} "
        f"({count_words(len(known), 'comparison')}, each with at least {count_words(fewest, 'round')} of "
        "long slices)."
    )


def disturbed_words(checks: Sequence[SliceCheckFacts], factors: Sequence[FactorFacts]) -> Iterator[str]:
    """Yield a sentence for each cell and workload for which only long slices count."""
    places = dict.fromkeys((check.cell, check.workload) for check in checks if check.disturbed)
    for cell, workload in places:
        here = [check for check in checks if (check.cell, check.workload) == (cell, workload) and check.ratio]
        worst = max(here, key=lambda one: abs(math.log(one.ratio or 1.0)))
        where = f" at {cell_words(cell, factors)}" if cell else ""
        yield (
            f"Short slices disturb each other on {workload}{where}: there {worst.variant} differs by "
            f"{effect_with_interval(worst.ratio or 1.0, worst.low, worst.high)} from its result with "
            "long slices. Only rounds with slices five times as long count for it. Give the "
            "workload a duration, so that trials run one after the other."
        )


_OPEN_ROWS: Final = 24
_MOST_FOLDS: Final = 24
"""Variants, by workload and cell, whose samples are shown in full; the tables of the run hold all."""

_Read = Callable[[ArmSystem], float | None]


def machine_sections(view: View) -> Iterable[Section]:
    """Yield the section; none if nothing was sampled."""
    systems = view.result.systems
    if not systems:
        return
    blocks: list[Block] = []
    warnings = {text: None for system in systems for text in system_doubts(system.use)}
    if warnings:
        blocks.append(Bullets(tuple(f"{capitalised(text)}." for text in list(warnings)[:6])))
    for workload in dict.fromkeys(system.workload for system in systems):
        blocks.append(folded_if_long(_machine_table(view, workload), _OPEN_ROWS))
    blocks.append(Paragraph(" ".join(_how(systems))))
    for system in systems[:_MOST_FOLDS]:
        title = f"{system.variant} on {view.place((system.cell, system.workload))}"
        blocks.append(Fold(f"All of {title}", tuple(system_blocks(system.use, system.operations))))
    yield Section("machine", "The machine", tuple(blocks))


def _how(systems: tuple[ArmSystem, ...]) -> Iterator[str]:
    elapsed = sum(system.use.elapsed_ns for system in systems)
    own = sum(system.use.own * system.use.elapsed_ns for system in systems) / max(1, elapsed)
    samples = sum(system.use.samples for system in systems)
    yield (
        f"Sampled in every trial: {count_words(samples, 'reading')} over {format_duration(elapsed)}. "
        f"Sampling took {share_text(own)} of one processor."
    )
    if not any(system.use.cpu_ns(SERVER) for system in systems):
        yield "This is the machine of the load generator; the server's processes are not visible from here."
    yield from dict.fromkeys(text for system in systems for text in lacks_words(system.use))


def _machine_table(view: View, workload: str) -> Table:
    own = [system for system in view.result.systems if system.workload == workload]
    systems = sorted(own, key=lambda system: view.order(system.cell, system.variant))
    return table_of(
        f"{workload}: the machine's processors by mode, and the cost per operation",
        systems,
        header("cell", lambda system: view.cell(system.cell)),
        header("variant", lambda system: system.variant),
        *(
            number(title, [_value(read(system), show) for system in systems], when=any(map(read, own)))
            for title, read, show in _COLUMNS
        ),
    )


def _value(amount: float | None, show: Callable[[float], str]) -> Value:
    return Value("", tone="muted") if amount is None else Value(show(amount), sort=amount)


def _mode(*names: str) -> _Read:
    def read(system: ArmSystem) -> float | None:
        modes = system.use.modes
        return None if modes is None else sum(modes[name] for name in names)

    return read


def _stall(name: str) -> _Read:
    return lambda system: system.use.stalls.get(name)


def _each(role: str, read: Callable[[ProcessUse], int | None]) -> _Read:
    def total(system: ArmSystem) -> float | None:
        known = [value for part in _of(system.use, role) if (value := read(part)) is not None]
        return sum(known) / system.operations if known and system.operations else None

    return total


def _of(use: SystemUse, role: str) -> Iterator[ProcessUse]:
    return (process for process in use.processes if process.role == role)


def _throttled(system: ArmSystem) -> float | None:
    return max((bounds.throttled for bounds in system.use.bounds), default=0.0) or None


def _plain(number: float) -> str:
    return f"{number:.3g}"


def _switches(part: ProcessUse) -> int | None:
    return _sum(part.voluntary_switches, part.involuntary_switches)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


_COLUMNS: Final[tuple[tuple[str, _Read, Callable[[float], str]], ...]] = (
    ("programs", _mode("user", "nice"), share_text),
    ("kernel", _mode("system", "irq", "softirq"), share_text),
    ("idle", _mode("idle", "iowait"), share_text),
    ("stolen", _mode("steal"), share_text),
    ("waited for a processor", _stall("cpu_some"), share_text),
    ("for a disk", _stall("io_some"), share_text),
    ("for memory", _stall("memory_some"), share_text),
    ("throttled", _throttled, share_text),
    ("server user", _each(SERVER, lambda part: part.user_ns), format_duration),
    ("server system", _each(SERVER, lambda part: part.system_ns), format_duration),
    ("generator user", _each(GENERATOR, lambda part: part.user_ns), format_duration),
    ("generator system", _each(GENERATOR, lambda part: part.system_ns), format_duration),
    ("server switches", _each(SERVER, _switches), _plain),
    ("server faults", _each(SERVER, lambda part: _sum(part.minor_faults, part.major_faults)), _plain),
    ("server reads", _each(SERVER, lambda part: part.read_bytes), format_bytes),
    ("server writes", _each(SERVER, lambda part: part.written_bytes), format_bytes),
)


_NEEDED: Final = "a claim about others needs at least five hosts, and a metric other than success"


def host_words(result: RunResult) -> Iterator[str]:
    """Yield about which hosts the verdicts are, and which hosts are odd; nothing for a run of one host."""
    if not result.hosts:
        return
    many = count_words(len(result.hosts), "host")
    if len(result.hosts) == 1:
        yield f"All rounds were measured on {result.hosts[0].name}, which counts as one host."
        return
    measured = [comparison for comparison in result.comparisons if comparison.verdict in MEASURED]
    others = [
        comparison
        for comparison in measured
        if comparison.scopes is not None and comparison.scopes.hosts_like_these is not None
    ]
    if others:
        yield (
            f"Measured on {many}. The verdicts are about hosts like these: each interval is the wider of the "
            "one from rounds and the one from the means of hosts."
        )
        if len(others) < len(measured):
            rest = count_words(len(measured) - len(others), "comparison")
            yield f"The verdicts of {rest} are about these hosts only, because {_NEEDED}."
    else:
        yield (f"Measured on {many}. The verdicts are about these hosts only, because {_NEEDED}.")
    yield from _waves(result)
    yield from lost_words(result.hosts)
    odd = [host for host in result.hosts if host.odd]
    if odd:
        names = series_words([f"{host.name} ({_effect(host.itself)})" for host in odd])
        yield f"The baseline differs from itself on {names}. The rounds of these hosts count like the others."


def host_sections(view: View) -> Iterator[Section]:
    """Yield the section about the hosts, if there are several."""
    result = view.result
    if not result.hosts:
        return
    waves = any(host.waves for host in result.hosts)
    blocks = [
        table_of(
            "",
            result.hosts,
            header("host", lambda host: host.name),
            column("processors", lambda host: host.processor),
            number("rounds", lambda host: Value(str(host.rounds), sort=host.rounds)),
            column(
                "baseline against itself",
                lambda host: f"{_effect(host.itself)}{' (odd)' if host.odd else ''}",
            ),
        )
    ]
    compared = table_if_any(
        "Effects with their intervals by scope",
        [
            (
                f"{comparison.variant} on {view.place((comparison.cell, comparison.workload))}",
                comparison.scopes,
            )
            for comparison in result.comparisons
            if comparison.scopes is not None
        ],
        header("comparison", lambda effect: effect[0]),
        column("on these hosts", lambda effect: _effect(effect[1].these_hosts), whole=True),
        column(
            "on hosts like these", lambda effect: _effect(effect[1].hosts_like_these) or "unknown", whole=True
        ),
        column(
            "at other times",
            lambda effect: _effect(effect[1].other_times) or "unknown",
            whole=True,
            when=waves,
        ),
    )
    if compared is not None:
        blocks.append(compared)
    text = (
        "A variant may gain more on one kind of machine than on another. Rounds of one host share this "
        "difference, so the interval for other hosts has one observation per host."
        + (" Rounds of one wave likewise share what is peculiar to that time." if waves else "")
    )
    yield Section("hosts", "Hosts", (Paragraph(text), *blocks))


def _waves(result: RunResult) -> Iterator[str]:
    """Say what rounds at the same time mean for the verdicts; nothing for runs merged afterwards."""
    waves = max(host.waves for host in result.hosts)
    if waves == 0:
        return
    if any(
        comparison.scopes is not None and comparison.scopes.other_times is not None
        for comparison in result.comparisons
    ):
        yield (
            f"The hosts measured at the same time, in {waves} waves. Where the interval from the means of "
            "waves is wider still, it decides."
        )
    else:
        yield (
            f"The hosts measured at the same time, in {count_words(waves, 'wave')}: fewer than five say "
            "nothing about other times."
        )


def lost_words(hosts: Sequence[HostFacts]) -> Iterator[str]:
    """Yield which hosts were lost, and why; nothing if none was."""
    lost = [host for host in hosts if host.lost]
    if lost:
        rounds = count_words(len(lost), "round")
        names = series_words([f"{host.name} ({host.lost})" for host in lost])
        yield f"{rounds} {'was' if len(lost) == 1 else 'were'} lost with {names}."


def _effect(effect: ScopeEffect | None) -> str:
    if effect is None or effect.ratio is None:
        return ""
    return effect_with_interval(effect.ratio, effect.low, effect.high)
