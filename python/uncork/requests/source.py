"""Read an experiment from a file, a case or a stored run, and apply the changes of the command line."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from uncork import cases, experiment
from uncork.errors import SpecError, UsageError
from uncork.experiment.plan.order import least_ns
from uncork.experiment.spec.checks import too_many_comparisons
from uncork.experiment.spec.problems import hint, refuse
from uncork.experiment.spec.schema import Server, Spec, parse_spec
from uncork.experiment.spec.time_zones import TimeZones, offset_values
from uncork.model.records import build_from
from uncork.model.units import format_duration, parse_duration, parse_share
from uncork.store.query import RunReader


@dataclass(frozen=True, slots=True)
class Options:
    """Changes to an experiment by the command line or a part of a case; None or empty changes nothing.

    `variants` are kept in addition to the baseline. `operations` replaces the operations of a
    trial, where trials count them.
    """

    levels: Mapping[str, list[str]] = field(default_factory=dict)
    workloads: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    operations: int | None = None
    budget_ns: int | None = None
    precision: float | None = None
    seed: int | None = None

    def stored(self) -> dict[str, Any]:
        """Return the changes as plain data for the manifest."""
        return {
            "levels": {factor: list(levels) for factor, levels in self.levels.items()},
            "workloads": list(self.workloads),
            "variants": list(self.variants),
            "operations": self.operations,
            "budget_ns": self.budget_ns,
            "precision": self.precision,
            "seed": self.seed,
        }

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Options:
        """Read the changes back from a manifest."""
        return cls(
            levels=stored.get("levels", {}),
            workloads=tuple(stored.get("workloads", ())),
            variants=tuple(stored.get("variants", ())),
            operations=stored.get("operations"),
            budget_ns=stored.get("budget_ns"),
            precision=stored.get("precision"),
            seed=stored.get("seed"),
        )


def changes_of(
    sets: Sequence[tuple[str, Sequence[str]]] | None,
    workloads: Sequence[str] | None,
    budget_ns: int | None,
    precision: float | None,
    seed: int | None,
) -> Options:
    """Return the changes to an experiment; levels of a factor given more than once are joined."""
    levels: dict[str, list[str]] = {}
    for factor, chosen in sets or ():
        levels.setdefault(factor, []).extend(chosen)
    return Options(
        levels=levels, workloads=tuple(workloads or ()), budget_ns=budget_ns, precision=precision, seed=seed
    )


@dataclass(frozen=True, slots=True)
class Source:
    """An experiment ready to run: its text and files, and the parsed specification."""

    spec: Spec
    text: str
    files: Mapping[str, str]
    options: Options
    case: str | None = None

    def without_server_settings(self) -> Source:
        """Return the source without server settings, for a server that uncork does not configure."""
        return replace(self, spec=self.spec.model_copy(update={"server": Server()}))


def file_source(path: Path, options: Options, *, case: str | None = None, alone: bool = False) -> Source:
    """Read an experiment file and its SQL files; `alone` allows a single variant.

    Raises:
        UsageError: if the file cannot be read.
        SpecError: if it is invalid.
    """
    return text_source(file_text(path), options, file=str(path), folder=path.parent, case=case, alone=alone)


def file_text(path: Path) -> str:
    """Return the text of a file. Raises UsageError if it cannot be read, or is not text."""
    try:
        return path.read_text()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from error


def text_source(
    text: str,
    options: Options,
    *,
    file: str,
    folder: Path,
    case: str | None = None,
    alone: bool = False,
) -> Source:
    """Read an experiment from text, and its SQL files from `folder`.

    `file` is the name used in messages. Raises SpecError if it is invalid.
    """
    files: dict[str, str] = {}

    def read(name: str) -> str:
        files[name] = (folder / name).read_text()
        return files[name]

    spec = _parse(
        text, file, read, options, lambda name, wanted: _make_zones(files, name, wanted), alone=alone
    )
    return Source(spec, text, files, options, case)


def made_source(text: str, files: Mapping[str, str], options: Options, file: str) -> Source:
    """Return the experiment in a text; `files` are its SQL files, `file` the name used in messages.

    Raises SpecError if it is invalid.
    """
    known = dict(files)

    def read(name: str) -> str:
        if name not in known:
            raise FileNotFoundError(2, "No such file or directory")
        return known[name]

    spec = _parse(text, file, read, options, lambda name, wanted: _make_zones(known, name, wanted))
    return Source(spec, text, known, options)


def case_source(name: str, options: Options, *, full: bool) -> Source:
    """Return a case's experiment: its default part, or with `full` all of it.

    Options of the command line override the settings of the part. Raises UsageError if there is no
    such case.
    """
    folder = case_folder(name)
    part = tomllib.loads((folder / "expected.toml").read_text())["run"]["full" if full else "default"]
    budget = options.budget_ns or parse_duration(part["budget"])
    merged = Options(
        levels={**part.get("set", {}), **options.levels},
        workloads=options.workloads or tuple(part.get("workloads", ())),
        variants=options.variants or tuple(part.get("variants", ())),
        operations=options.operations or part.get("operations"),
        budget_ns=budget,
        precision=options.precision or (parse_share(part["precision"]) if "precision" in part else None),
        seed=options.seed,
    )
    return file_source(folder / "case.toml", merged, case=name)


def case_folder(name: str) -> Path:
    """Return the folder of a case. Raises UsageError if there is no such case."""
    try:
        return cases.path(name)
    except KeyError:
        known = cases.names()
        raise UsageError(f'there is no case "{name}"{hint(name, known)}') from None


def run_source(reader: RunReader, changes: Options | None = None) -> Source:
    """Return the experiment of a stored run, as it ran."""
    stored = Options.of(reader.manifest.options)
    if changes is not None:
        stored = build_from(
            Options,
            stored,
            budget_ns=changes.budget_ns or stored.budget_ns,
            precision=changes.precision or stored.precision,
            seed=stored.seed if changes.seed is None else changes.seed,
        )
    text = reader.specification()
    files: dict[str, str] = {}

    def read(name: str) -> str:
        files[name] = reader.read_file(name)
        return files[name]

    # The time zone database may have changed since: use the rows stored with the run.
    spec = _parse(
        text, str(reader.folder / "experiment.toml"), read, stored, lambda name, _: read(_MADE.format(name))
    )
    return Source(spec, text, files, stored, reader.manifest.case)


_MADE = "time_zones.{}.sql"
"""File name of the rows of a ``[time_zones]`` entry in a stored run."""

Published = Mapping[tuple[str, str, str], float]
"""Published values of a case's metric in nanoseconds, by cell name, workload and variant."""


def published_figures(case: str | None) -> tuple[Published, str | None]:
    """Return a case's published figures and their source; empty for other experiments."""
    if case is None or case not in cases.names():
        return {}, None
    data = tomllib.loads((cases.path(case) / "expected.toml").read_text())
    figures = {}
    for entry in data["published"]:
        cell = ",".join(f"{factor}={level}" for factor, level in entry["cell"].items())
        for variant, value in entry["values"].items():
            figures[(cell, entry["workload"], variant)] = float(value)
    return figures, str(data["source"])


def _make_zones(files: dict[str, str], name: str, wanted: TimeZones) -> str:
    zones = {zone: _zone(zone) for zone in wanted.zones}
    files[_MADE.format(name)] = offset_values(zones, wanted.first_year, wanted.last_year)
    return files[_MADE.format(name)]


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise KeyError(name) from None


def _parse(
    text: str,
    file: str,
    read: Callable[[str], str],
    options: Options,
    time_zones: Callable[[str, TimeZones], str],
    *,
    alone: bool = False,
) -> Spec:
    levels = {factor: list(chosen) for factor, chosen in options.levels.items()}
    spec = parse_spec(text, file=file, read=read, overrides=levels, time_zones=time_zones, alone=alone)
    unknown = [name for name in options.workloads if name not in spec.workloads]
    if unknown:
        raise SpecError(f'{file}: there is no workload "{unknown[0]}"{hint(unknown[0], set(spec.workloads))}')
    absent = [name for name in options.variants if name not in spec.variants]
    if absent:
        raise SpecError(f'{file}: there is no variant "{absent[0]}"{hint(absent[0], set(spec.variants))}')
    stop: dict[str, Any] = {}
    if options.budget_ns is not None:
        stop["budget"] = options.budget_ns
    if options.precision is not None:
        stop["precision"] = options.precision
    changes: dict[str, Any] = {"stop": spec.stop.model_copy(update=stop)}
    changes |= _kept(spec, options)
    if options.seed is not None:
        changes["experiment"] = spec.experiment.model_copy(update={"seed": options.seed})
    spec = spec.model_copy(update=changes)
    refuse(too_many_comparisons(spec), file, text)
    if least_ns(spec) >= spec.stop.budget:
        raise SpecError(
            f"{file}: stop.budget: {format_duration(spec.stop.budget)} is too short for one block: a block "
            f"of each workload in a single cell takes {format_duration(least_ns(spec))}; raise the budget or "
            "shorten the trials"
        )
    return spec


def _kept(spec: Spec, options: Options) -> dict[str, Any]:
    """Return the remaining workloads and variants, with the changed operations.

    Services run for HTTP requests: if no HTTP workload remains, no service does.
    """
    workloads = {}
    for name, workload in spec.workloads.items():
        if options.workloads and name not in options.workloads:
            continue
        changes: dict[str, Any] = {}
        if options.operations is not None and workload.operations is not None:
            changes["operations"] = options.operations
        if options.variants and workload.variants:
            left = [variant for variant in workload.variants if variant in options.variants]
            changes["variants"] = left or [spec.baseline]
        workloads[name] = workload.model_copy(update=changes)
    compared = {variant for name in workloads for variant in spec.compared(name)}
    chosen = {spec.baseline, *options.variants} if options.variants else compared
    variants = {name: variant for name, variant in spec.variants.items() if name in compared & chosen}
    services = spec.services if any(workload.http for workload in workloads.values()) else {}
    return {"workloads": workloads, "variants": variants, "services": services}


def starter(name: str) -> str:
    """Return a bundled experiment file: `experiment`, `doctor` or `resolution`."""
    return (Path(experiment.__file__).parent / "starters" / f"{name}.toml").read_text()
