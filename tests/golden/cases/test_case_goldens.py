"""What each case measures by default and in full. UNCORK_BLESS=1 rewrites it; read the difference first."""

import pytest

from fakes.goldens import compare_cases
from uncork import cases
from uncork.model.units import format_duration
from uncork.requests.source import Options, case_source


def described(name, *, full):
    spec = case_source(name, Options(), full=full).spec
    lines = [f"budget: {format_duration(spec.stop.budget)}", f"engines: {', '.join(spec.engines)}"]
    lines += [f"factor {factor}: {', '.join(spec.levels(factor))}" for factor in spec.factors]
    for workload, facts in spec.workloads.items():
        fitted = ", fitted to the budget" * facts.fitted
        lines.append(f"workload {workload}: {facts.metric}, clients: {facts.clients}{fitted}")
    for variant, facts in spec.variants.items():
        lines.append(f"variant {variant}" + (f": {facts.batching}" if facts.batching else ""))
    return "\n".join(lines)


@pytest.mark.parametrize("full", [False, True], ids=["default", "full"])
def test_what_a_case_measures(full):
    names = sorted(cases.names())
    compare_cases(
        f"cases/{'full' if full else 'default'}", [(one, described(one, full=full)) for one in names]
    )
