"""The guard section of an experiment file: gates, known changes, and how a commit is built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from uncork.errors import UsageError
from uncork.experiment.spec import problems
from uncork.experiment.spec.fields import Section
from uncork.experiment.spec.gates import parse_gate, unfit
from uncork.model.results.guard import Gate

if TYPE_CHECKING:
    from uncork.experiment.spec.schema import Spec


class Guard(Section):
    """What `uncork guard` requires of a candidate."""

    gates: list[str] = Field(
        default_factory=list,
        description='Conditions for the candidate, such as "p99 < +5%", "queries a request <= baseline", '
        '"plan unchanged on NAME". Default: each workload\'s own metric may be worse by less than practical, '
        "and the success rate of HTTP workloads must be no worse.",
    )
    acknowledged: str | None = Field(
        default=None,
        min_length=1,
        description="The file of known changes, beside this one. Default: uncork-acknowledged.toml.",
    )
    build: list[str] = Field(
        default_factory=list,
        description="A command, as a list, that runs once in each commit's checkout, without a shell.",
    )

    @field_validator("gates")
    @classmethod
    def _readable(cls, gates: list[str]) -> list[str]:
        wrong = [message for gate in gates if (message := _trouble(gate)) is not None]
        if wrong:
            raise ValueError("; and ".join(wrong))
        return gates

    @property
    def parsed(self) -> tuple[Gate, ...]:
        """Return the gates without duplicates."""
        return tuple(dict.fromkeys(map(parse_gate, self.gates)))


def check_guard(spec: Spec) -> list[problems.Problem]:
    """Return the problems of the file's gates."""
    return [problems.Problem(("guard", "gates"), message) for message in check_gates(spec, spec.guard.parsed)]


def check_gates(spec: Spec, gates: tuple[Gate, ...]) -> Iterator[str]:
    """Yield the problems of gates on an experiment: an unknown workload, or a metric that fits none."""
    for gate in gates:
        if gate.workload and gate.workload not in spec.workloads:
            hint = problems.hint(gate.workload, set(spec.workloads))
            yield f'gate "{gate.text}": there is no workload "{gate.workload}"{hint}'
            continue
        names = (gate.workload,) if gate.workload else tuple(spec.workloads)
        reasons = [unfit(gate, spec, name) for name in names]
        if all(reasons):
            yield f'gate "{gate.text}": does not fit workload {names[0]}: {reasons[0]}'


def _trouble(gate: str) -> str | None:
    try:
        parse_gate(gate)
    except UsageError as error:
        return str(error)
    return None
