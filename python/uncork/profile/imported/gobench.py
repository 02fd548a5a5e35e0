"""Go's benchmarks, in the text format of `go test -bench`, which other tools and uncork itself also write."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from uncork.model.results.figure import Direction, Figure, FigureUnit
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.parts import mean_figure

__all__ = ["read"]

_LINE: Final = re.compile(r"^Benchmark(\S+)\s+(\d+)\s+(\S.*)$", re.MULTILINE)
_FACT: Final = re.compile(r"^(goos|goarch|pkg|cpu): (.*)$", re.MULTILINE)
_BETTER: Final = re.compile(r"^Unit (\S+) (?:.* )?better=(lower|higher)", re.MULTILINE)
_ARCHITECTURES: Final = {"amd64": "x86_64", "arm64": "aarch64", "386": "i686"}
_UNITS: Final[dict[str, tuple[str, FigureUnit, float, Direction]]] = {
    "ns/op": ("mean", "ns", 1.0, "lower"),
    "sec/op": ("mean", "ns", 1e9, "lower"),
    "B/op": ("bytes each", "B", 1.0, "lower"),
    "allocs/op": ("allocations each", "", 1.0, "lower"),
    "MB/s": ("bytes a second", "B", 1e6, "higher"),
    "tps": ("throughput", "/s", 1.0, "higher"),
    "req/s": ("throughput", "/s", 1.0, "higher"),
}


def read(text: str) -> ImportedRun | None:
    """Return the results of benchmarks, with all samples of each benchmark together; None if there are none.

    Raises:
        ValueError: if a value is not a number.
    """
    lines = _LINE.findall(text)
    if not lines:
        return None
    facts = dict(_FACT.findall(text))
    better = dict(_BETTER.findall(text))
    samples: dict[tuple[str, str], list[float]] = defaultdict(list)
    for name, _, rest in lines:
        words = rest.split()
        if len(words) % 2:
            raise ValueError(f'Benchmark{name}: expected values with units, but found "{rest[:60]}"')
        for value, unit in zip(words[::2], words[1::2], strict=True):
            samples[name, unit].append(_number(value, name, unit))
    machine = {"processor": facts.get("cpu", "")}
    machine["architecture"] = _ARCHITECTURES.get(facts.get("goarch", ""), facts.get("goarch", ""))
    return ImportedRun(
        tool="Go benchmarks",
        question=f"Go benchmarks: {facts.get('pkg', '') or lines[0][0]}",
        figures=tuple(_figures(samples, better)),
        asked={"package": facts["pkg"]} if "pkg" in facts else {},
        environment={"machine": {name: value for name, value in machine.items() if value}},
    )


def _number(text: str, name: str, unit: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(f'Benchmark{name}: "{text}" before {unit} is not a number') from error


def _figures(samples: dict[tuple[str, str], list[float]], better: dict[str, Direction]) -> Iterator[Figure]:
    for (name, unit), values in samples.items():
        found = _UNITS.get(unit)
        if found is None and re.fullmatch(r"(?:p[\d.]+|max)-ns", unit):
            found = (unit.removesuffix("-ns"), "ns", 1.0, "lower")
        title, base, factor, direction = found or (unit, "", 1.0, better.get(unit, ""))
        yield mean_figure(name, title, [value * factor for value in values], base, direction)
