"""Made-up but plausible results: the numbers follow the cluster-names case, measured and published."""

import dataclasses
import math
import random

from uncork.model.results.experiment import (
    ArmMetric,
    Comparison,
    Cost,
    CrossoverPoint,
    FactorFacts,
    LatencyCurve,
    Levels,
    NoiseFloor,
    PlanFacts,
    RunFacts,
    RunResult,
    SizeFacts,
    VariantFacts,
    WorkloadFacts,
)
from uncork.model.verdict import Verdict

ROWS = ("100", "1000", "10000", "50000", "100000")
INDEXES = ("none", "btree")
TYPES = {"char": "char(36)", "varchar": "varchar(36)", "bytea": "bytea", "uuid": "uuid"}
PRACTICAL = 0.05

_AT_100K_MS = {
    ("select", "none"): {"char": 2.516, "varchar": 2.365, "bytea": 1.744, "uuid": 1.284},
    ("delete", "none"): {"char": 2.205, "varchar": 2.114, "bytea": 1.613, "uuid": 1.133},
    ("insert", "none"): {"char": 0.0306, "varchar": 0.0305, "bytea": 0.0304, "uuid": 0.0303},
    ("select", "btree"): {"char": 0.0313, "varchar": 0.0311, "bytea": 0.0308, "uuid": 0.0307},
    ("delete", "btree"): {"char": 0.0268, "varchar": 0.0269, "bytea": 0.0265, "uuid": 0.0263},
    ("insert", "btree"): {"char": 0.0342, "varchar": 0.0391, "bytea": 0.0341, "uuid": 0.0337},
}
_PUBLISHED_NS = {
    ("insert", "100000", "none"): (3030527, 3019363, 2962184, 2988198),
    ("delete", "100000", "none"): (11399657, 11439103, 11334972, 9881923),
    ("select", "100000", "none"): (10860747, 11064993, 10914949, 8749562),
    ("insert", "50000", "none"): (2044506, 2037891, 2020112, 2037548),
    ("delete", "50000", "none"): (7413309, 7466647, 7296210, 6645221),
    ("select", "50000", "none"): (5375757, 5579126, 5480033, 4437253),
    ("insert", "10000", "none"): (2006754, 2051222, 2019572, 2042202),
    ("delete", "10000", "none"): (2539460, 2474926, 2552969, 2402486),
    ("select", "10000", "none"): (1269443, 1323098, 1332636, 1080828),
    ("select", "1000", "none"): (313019, 288332, 294040, 262347),
    ("delete", "100000", "btree"): (4438956, 4436202, 4434197, 4433377),
    ("select", "100000", "btree"): (151399, 152682, 144385, 143342),
    ("select", "50000", "btree"): (145972, 152372, 147668, 145055),
    ("select", "10000", "btree"): (157450, 156115, 149408, 154142),
}
_SQL = {
    "insert": "INSERT INTO report (org_id, account_number, cluster, notification_type, state, report)\n"
    "VALUES (:org, 1, :cluster, 1, 1, :report)",
    "select": "SELECT org_id, account_number, notification_type, state, report, updated_at\n"
    "FROM report\nWHERE cluster = :cluster",
    "delete": "DELETE FROM report WHERE cluster = :cluster",
}


def run_facts(**changes: object) -> RunFacts:
    """Return the facts of a complete run, changed as asked."""
    facts = RunFacts(
        id="20260301-101500-cluster-names",
        name="cluster-names",
        question="Which type should hold a UUID that is searched for: char, varchar, bytea or uuid?",
        status="complete",
        started_at="2026-03-01T10:15:00+00:00",
        elapsed_ns=1_512_000_000_000,
        seed=42,
        rounds=10,
        trials=6000,
        failed_trials=3,
        stopped_because="Every interval is narrower than 5 %, or its comparison was given up as noise.",
        reproduce="uncork run cluster-names --seed 42",
        uncork_version="0.1.0",
    )
    return dataclasses.replace(facts, **changes)


def variant(name: str, baseline: bool = False) -> VariantFacts:
    """Return a variant whose one substituted text is a column type."""
    type_ = TYPES.get(name, name)
    return VariantFacts(name, f"cluster as {type_}", baseline, {"type": type_}, {})


def workload(name: str, metric: str = "latency_mean", better: str = "lower") -> WorkloadFacts:
    """Return a workload of one statement."""
    return WorkloadFacts(
        name=name,
        title={"insert": "Insert one row", "select": "Find by cluster", "delete": "Delete by cluster"}.get(
            name, name
        ),
        sql=(_SQL.get(name, f"SELECT {name}"),),
        metric=metric,
        better=better,
        clients=1,
        protocol="prepared",
        state="restored, vacuumed, warm",
        answer="must be the same",
        stop="2 000 operations or 250 ms",
    )


def comparison(
    variant: str = "uuid",
    verdict: Verdict = Verdict.FASTER,
    ratio: float | None = 0.54,
    low: float | None = 0.52,
    high: float | None = 0.56,
    *,
    cell: Levels = (),
    workload: str = "select",
    reason: str = "",
    **more: object,
) -> Comparison:
    """Return one comparison; without arguments, a variant that is clearly faster."""
    if verdict in (Verdict.REFUSED, Verdict.SKIPPED):
        ratio = low = high = None
    numbers = {"rounds": 0 if ratio is None else 10, "e_value": None if ratio is None else 900.0}
    return Comparison(
        cell=cell,
        workload=workload,
        variant=variant,
        verdict=verdict,
        reason=reason,
        ratio=ratio,
        low=low,
        high=high,
        std_dev=None if ratio is None else 0.02,
        value=None if ratio is None else 1e6 * ratio,
        baseline_value=None if ratio is None else 1e6,
        **numbers
        | {"direction": verdict.value if verdict in (Verdict.FASTER, Verdict.SLOWER) else None}
        | more,
    )


def noise(floor: float | None = 0.02, sentence: str = "") -> NoiseFloor:
    """Return a noise floor without A/A comparisons."""
    return NoiseFloor(floor, sentence, 0, ())


def small_result() -> RunResult:
    """Return a result of two cells, one workload and two variants."""
    return _result(("100000",), ("char", "uuid"), ("select",), seed=1)


def large_result() -> RunResult:
    """Return the 120-cell matrix: 5 sizes, 2 indexes, 3 workloads, 4 variants, every kind of verdict."""
    return _result(ROWS, ("char", "varchar", "bytea", "uuid"), ("insert", "select", "delete"), seed=2)


def _nothing() -> RunResult:
    return RunResult(
        run=run_facts(), answer="", reasons=(), correction="", confidence=0.95, practical=PRACTICAL,
        precision=0.03, variants=(), factors=(), workloads=(), comparisons=(), noise=noise(None),
        metrics=(), costs=(), sizes=(), plans=(), latencies=(), crossovers=(), disturbances={},
        environment={},
    )  # fmt: skip


def bare_result(*comparisons: Comparison, **changes: object) -> RunResult:
    """Return a result with comparisons and nothing else: no costs, plans, sizes, curves or factors."""
    names = list(dict.fromkeys(c.variant for c in comparisons)) or ["uuid"]
    works = list(dict.fromkeys(c.workload for c in comparisons)) or ["select"]
    result = dataclasses.replace(
        _nothing(), comparisons=comparisons, workloads=tuple(workload(name) for name in works),
        variants=(variant("char", True), *(variant(name) for name in names)),
    )  # fmt: skip
    return _answered(dataclasses.replace(result, **changes))


def _answered(result: RunResult) -> RunResult:
    from uncork.report.experiment.answer import answer_experiment

    return answer_experiment(result)


def _result(rows: tuple[str, ...], names: tuple[str, ...], works: tuple[str, ...], seed: int) -> RunResult:
    dice = random.Random(seed)
    cells = [(("rows", row), ("index", index)) for row in rows for index in INDEXES]
    comparisons, metrics, costs, sizes, plans, curves, again = [], [], [], [], [], [], []
    for cell in cells:
        for name in names:
            sizes += _sizes(cell, name)
        for work in works:
            base = _time_ns(cell, work, names[0])
            for name in names:
                value = _time_ns(cell, work, name)
                if name != names[0]:
                    comparisons.append(_judged(dice, cell, work, name, value, base))
                metrics += _arms(dice, cell, work, name, value, baseline=name == names[0])
                costs.append(_cost(cell, work, name, value))
                curves.append(_curve(cell, work, name, value))
                if work != "insert":
                    plans.append(_plan(cell, work, name, names[0], value))
            wobble = 1 + dice.uniform(-0.012, 0.012)
            ends = (wobble, wobble / 1.02, wobble * 1.02)
            same = Verdict.NO_PRACTICAL_DIFFERENCE
            again.append(comparison(names[0], same, *ends, cell=cell, workload=work))
    several = len(works) > 1
    crossover = ("rows", (("index", "none"),))
    words = "char against itself differs by up to 2.2 % here: smaller differences may be noise."
    result = dataclasses.replace(
        _nothing(),
        correction=f"{len(comparisons)} comparisons share one error rate: at most 5 % false discoveries.",
        variants=tuple(variant(name, name == names[0]) for name in names),
        factors=(FactorFacts("rows", rows, True), FactorFacts("index", INDEXES, False)),
        workloads=tuple(workload(name) for name in works),
        comparisons=tuple(comparisons), noise=NoiseFloor(0.022, words, 0, tuple(again)),
        metrics=tuple(metrics), costs=tuple(costs), sizes=tuple(sizes), plans=tuple(plans),
        latencies=tuple(curves),
        environment={
            "machine": {"processor": "4 × Example 2.4 GHz", "memory": "16 GB", "kernel": "6.1.0"},
            "server": {"version": "PostgreSQL 18.0", "shared_buffers": "128MB", "jit": "off"},
        },
        source="A talk by the Red Hat Insights team",
    )  # fmt: skip
    if several:
        result = dataclasses.replace(
            result,
            crossovers=(
                CrossoverPoint(*crossover, "delete", "char", "uuid", 100, 1000, 420, True),
                CrossoverPoint(*crossover, "select", "varchar", "uuid", 100, 1000, 310, False),
            ),
            disturbances={"autovacuum": 14, "checkpoint": 3, "steal": 0},
            warnings=("The generator and the server share 4 processors.",),
        )
    return _answered(result)


def _time_ns(cell: Levels, work: str, name: str) -> float:
    rows, index = cell[0][1], cell[1][1]
    full = _AT_100K_MS[work, index][name] * 1e6
    if work == "insert" or index == "btree":
        return full * (1 + 0.02 * (math.log10(int(rows)) - 5))
    return 24_000 + (full - 24_000) * int(rows) / 100_000


def _judged(dice: random.Random, cell: Levels, work: str, name: str, value: float, base: float) -> Comparison:
    published = _PUBLISHED_NS.get((work, cell[0][1], cell[1][1]))
    more: dict[str, object] = {}
    if published:
        own = published[list(TYPES).index(name)]
        more = {"published_ratio": own / published[0], "published_value": float(own)}
    if (name, work, cell[0][1], cell[1][1]) == ("bytea", "insert", "100000", "btree"):
        return comparison(
            name, Verdict.SKIPPED, cell=cell, workload=work, reason="setting up took more than 5 min", **more
        )
    if (name, work, cell[0][1], cell[1][1]) == ("varchar", "delete", "100", "btree"):
        reason = "the variant deleted 2 rows where char deleted 1"
        return comparison(name, Verdict.REFUSED, cell=cell, workload=work, reason=reason, **more)
    ratio = value / base * math.exp(dice.gauss(0, 0.006))
    width = 0.16 if cell[0][1] == "100" and dice.random() < 0.4 else dice.uniform(0.018, 0.034)
    low, high = ratio * math.exp(-width), ratio * math.exp(width)
    if high < 1:
        verdict, reason = Verdict.FASTER, "the whole interval lies below 1"
    elif low > 1:
        verdict, reason = Verdict.SLOWER, "the whole interval lies above 1"
    elif low > 1 / (1 + PRACTICAL) and high < 1 + PRACTICAL:
        verdict, reason = Verdict.NO_PRACTICAL_DIFFERENCE, "the whole interval lies within 5 %"
    else:
        verdict = Verdict.NOT_ENOUGH_EVIDENCE
        reason = "the interval holds both a practical difference and none"
    warnings = ("the rounds drift: lag-1 autocorrelation 0.52",) if dice.random() < 0.06 else ()
    found = comparison(
        name, verdict, ratio, low, high, cell=cell, workload=work, reason=reason, warnings=warnings, **more
    )
    return dataclasses.replace(found, value=ratio * base, baseline_value=base, std_dev=width / 1.2)


def _arms(
    dice: random.Random, cell: Levels, work: str, name: str, value: float, *, baseline: bool
) -> list[ArmMetric]:
    def by_round() -> tuple[tuple[int, float], ...]:
        return tuple(
            (number, value * (1 + 0.006 * number) * math.exp(dice.gauss(0, 0.012))) for number in range(1, 11)
        )

    return [
        ArmMetric(cell, work, name, again, trials=50, failed=0, value=value, by_round=by_round())
        for again in ((False, True) if baseline else (False,))
    ]


def _cost(cell: Levels, work: str, name: str, value: float) -> Cost:
    writes = work != "select"
    pages = value / 2000
    return Cost(
        cell=cell,
        workload=work,
        variant=name,
        operations=100_000,
        server_user_ns=value * 0.74,
        server_system_ns=value * 0.12,
        client_user_ns=3100.0,
        client_system_ns=2400.0,
        shared_hit=pages,
        shared_read=0.0,
        shared_dirtied=1.8 if writes else 0.0,
        temp_bytes=0.0,
        wal_bytes={"char": 1310.0, "varchar": 1310.0, "bytea": 1268.0, "uuid": 1264.0}[name]
        if writes
        else 0.0,
        wal_records=4.0 if writes else 0.0,
        rows=1.0,
        sent_bytes=92.0,
        received_bytes=1180.0 if work == "select" else 40.0,
    )


def _curve(cell: Levels, work: str, name: str, value: float) -> LatencyCurve:
    quantiles = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 1.0)
    points = tuple(
        (q, value * (0.85 + 0.1 * min(-math.log10(max(1 - q, 1e-5)), 5) ** 1.7)) for q in quantiles
    )
    return LatencyCurve(cell, work, name, 100_000, points)


def _sizes(cell: Levels, name: str) -> list[SizeFacts]:
    rows = int(cell[0][1])
    index = {"char": 96.0, "varchar": 96.0, "bytea": 61.6, "uuid": 61.6}[name]
    relations = [
        ("report", "table", max(8192, rows * 1170), None),
        ("report_pkey", "index", max(16384, round(rows * index)), 1 + (rows > 1000)),
        ("report_cluster", "index", max(16384, round(rows * index * 0.6)), 1),
    ]
    return [
        SizeFacts(cell, name, relation, kind, "report", size, float(rows), depth)
        for relation, kind, size, depth in relations[: 3 if cell[1][1] == "btree" else 2]
    ]


def _plan(cell: Levels, work: str, name: str, base: str, value: float) -> PlanFacts:
    index = "report_cluster" if cell[1][1] == "btree" else "report_pkey"
    kind = "Bitmap Heap Scan on report" if name == "bytea" and index == "report_pkey" else None
    node = kind or f"Index Scan using {index} on report"
    shape = (
        f"Delete on report\n  ->  {node}" if work == "delete" else node
    ) + "\n    Index Cond: (cluster = $1)"
    usual = shape.replace("Bitmap Heap Scan on report", f"Index Scan using {index} on report")
    difference = ""
    if kind and name != base:
        lines = shape.splitlines()
        place = next(i for i, line in enumerate(lines) if kind in line)
        old, new = usual.splitlines()[place], lines[place]
        difference = f"--- char\n+++ {name}\n@@ -1,{len(lines)} +1,{len(lines)} @@\n" + "\n".join(
            f"-{old}\n+{new}" if i == place else f" {line}" for i, line in enumerate(lines)
        )
    text = f"{node}  (cost=0.42..2410.44 rows=1) (actual time=0.021..{value / 1e6:.3f} rows=1 loops=1)"
    text += (
        f"\n  Index Cond: (cluster = $1)\n  Buffers: shared hit={value / 2000:.0f}\nPlanning Time: 0.061 ms"
    )
    return PlanFacts(
        cell=cell, workload=work, variant=name, statement=_SQL[work], text=text, shape=shape,
        difference=difference, buffers=round(value / 2000), execution_ns=value,
    )  # fmt: skip
