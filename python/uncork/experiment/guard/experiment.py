"""Build the experiment that a guard runs: the same question for two sides, as its two variants. Pure.

One of the file's variants is used for both sides. Each side has its own set-up, SQL, services and settings,
from its commit, overridden by what the side sets. Everything else is the question, and must be the same for
both sides. If a difference prevents a comparison, it is an error that names the difference. Other differences
are resolved as in the candidate's file, and reported.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from uncork.errors import UsageError
from uncork.experiment.guard.sides import Side
from uncork.experiment.observe import toml_text
from uncork.experiment.spec.problems import hint
from uncork.experiment.spec.schema import Spec
from uncork.model.results.guard import GuardSide

BASELINE: Final = "baseline"
CANDIDATE: Final = "candidate"

_OF_VARIANT: Final = (
    *("batching", "chunk", "connections", "engine", "extensions", "connect", "service", "http"),
)
"""The keys that a side keeps from the file's variant, besides those that are built here."""
_SENT: Final = ("http", "batch", "transaction", "protocol")
"""What a workload sends and how: it must be the same for both sides."""
_OWN: Final = ("sql", "file", "undo", "check", "parameters", "variants", *_SENT)
"""Keys that are not taken from the candidate's file: they are a side's own, or compared."""
_SAME: Final = ("factors", "time_zones", "databases", "server")
"""Sections that must be the same for both sides."""
_SECRET: Final = re.compile(r"PASSWORD|PASSWD|SECRET|TOKEN|KEY|CREDENTIAL", re.IGNORECASE)
_NAME: Final = 34
"""Maximum length of an experiment's name so that it fits after ``guard-``."""


@dataclass(frozen=True, slots=True)
class SideRequest:
    """The question of one side.

    `data` is the file's content, with SQL files replaced by their text. `spec` is the same, validated.
    `files` are the files of its services. `origin` names the file in messages (``commit 1a2b3c4``, or the
    file's name). `revision` describes the commit that a side names; `commit` is its full name, and `changed`
    says whether files differ from it. `checkout` replaces ``{checkout}``. `dsn` is the address of its server,
    without secrets.
    """

    side: Side
    data: Mapping[str, Any]
    spec: Spec
    origin: str
    files: Mapping[str, str] = field(default_factory=dict)
    revision: str | None = None
    commit: str | None = None
    changed: bool = False
    checkout: str = ""
    dsn: str | None = None


@dataclass(frozen=True, slots=True)
class Guarded:
    """The derived experiment: its text, the files that it names, and a description of each side.

    `same` says that both sides are identical. `told` holds sentences about differences between the files.
    """

    text: str
    files: Mapping[str, str]
    baseline: GuardSide
    candidate: GuardSide
    same: bool
    told: tuple[str, ...]


def guarded(
    baseline: SideRequest, candidate: SideRequest, variant: str | None, changes: Mapping[str, Any]
) -> Guarded:
    """Return the experiment that compares two sides.

    `variant` is the file's variant for sides that name none; None means the file's baseline. `changes` are
    keys of ``[experiment]`` and ``[guard]`` that override those of the file, by section. Raises UsageError if
    a side names something unknown, or the sides cannot be compared.
    """
    for asked in (baseline, candidate):
        if asked.side.url is not None:
            raise UsageError(
                f"--{asked.side.role} url=…: works only for stored loads; an experiment starts its services"
            )
    chosen = [_chosen(asked, variant) for asked in (baseline, candidate)]
    names = _workloads(baseline, candidate, chosen)
    _same_question(baseline, candidate, names)
    sides = [_side(baseline, chosen[0], names), _side(candidate, chosen[1], names)]
    # Each side also gets the values that only the other side's SQL uses.
    everything = {**sides[0].values, **sides[1].values}
    for side in sides:
        side.values = {name: side.values.get(name, text) for name, text in everything.items()}
    identities = [_identity(side) for side in sides]
    data = _data(sides[1], names, changes)
    files: dict[str, str] = {}
    for side in sides:
        _put_variant(data, side, sides[1])
        role = side.request.side.role
        files |= {f"{role}/{name}": text for name, text in side.request.files.items()}
    measuring = {word for metric in candidate.spec.metrics.values() for word in metric.command or ()}
    files |= {name: text for name, text in candidate.files.items() if name in measuring}
    return Guarded(
        text=toml_text(data),
        files=files,
        baseline=_titled(baseline, chosen[0]),
        candidate=_titled(candidate, chosen[1]),
        same=identities[0] == identities[1],
        told=tuple(_told(baseline, candidate, names)),
    )


@dataclass(slots=True)
class _SideVariant:
    """The variant of a side: the keys that it keeps from the file's, and its own texts."""

    request: SideRequest
    kept: dict[str, Any]
    values: dict[str, str]
    settings: dict[str, Any]
    setup: str
    workloads: dict[str, dict[str, Any]]
    services: dict[str, dict[str, Any]]


def _chosen(request: SideRequest, variant: str | None) -> str:
    name = request.side.variant or variant or request.spec.baseline
    if name not in request.spec.variants:
        option = f"--{request.side.role} variant={name}" if request.side.variant else f"--variant {name}"
        raise UsageError(
            f"{option}: {request.origin} has no such variant{hint(name, set(request.spec.variants))}"
        )
    return name


def _workloads(baseline: SideRequest, candidate: SideRequest, chosen: Sequence[str]) -> list[str]:
    found = []
    for asked, variant in zip((baseline, candidate), chosen, strict=True):
        found.append([name for name in asked.spec.workloads if variant in asked.spec.compared(name)])
        if not found[-1]:
            raise UsageError(
                f"no workload of {asked.origin} compares variant {variant}, so there is nothing to guard; "
                "choose another with --variant"
            )
    if set(found[0]) != set(found[1]):
        raise UsageError(
            f"{baseline.origin} and {candidate.origin} cannot be compared: they have different workloads, "
            f"{', '.join(found[0])} and {', '.join(found[1])}; choose common ones with --workload"
        )
    return found[1]


def _side(request: SideRequest, variant: str, names: Sequence[str]) -> _SideVariant:
    facts, spec, side = request.data["variants"][variant], request.spec, request.side
    kept = {key: copy.deepcopy(facts[key]) for key in _OF_VARIANT if key in facts}
    if not spec.services:
        kept = {key: value for key, value in kept.items() if key not in ("service", "http")}
    engine = request.data["experiment"].get("engine")
    if engine is not None:
        kept.setdefault("engine", engine)
    values = dict(facts.get("values", {}))
    for name, value in side.values:
        if name not in values:
            known = hint(name, set(values)) if values else "; it has none"
            raise UsageError(
                f"--{side.role} value={name}:{value}: variant {variant} has no such value{known}"
            )
        values[name] = value
    own = {
        name: {"sql": list(spec.statements(name, variant)), "undo": list(spec.undoing(name, variant))}
        | ({} if spec.check(name, variant) is None else {"check": spec.check(name, variant)})
        for name in names
        if spec.workloads[name].http is None
    }
    return _SideVariant(
        request=request,
        kept=kept,
        values=values,
        settings={**facts.get("settings", {}), **dict(side.settings)},
        setup=spec.setup_sql(variant),
        workloads=own,
        services=_services(request, variant),
    )


def _services(request: SideRequest, variant: str) -> dict[str, dict[str, Any]]:
    spec, side = request.spec, request.side
    found: dict[str, dict[str, Any]] = {}
    for name, service in spec.services.items():
        own = spec.variants[variant].services.get(name)
        command = service.command if own is None or own.command is None else own.command
        environment = {**service.environment, **({} if own is None else own.environment)}
        taken = {} if own is None else own.files
        named = {file: taken.get(file, file) for file in (*command, *service.files, *taken)}
        found[name] = {
            "command": list(command),
            "environment": environment,
            "files": {file: source for file, source in named.items() if source in request.files},
        }
    for name, variable, value in side.environment:
        if name not in found:
            known = hint(name, set(found)) if found else "; the file has none"
            raise UsageError(f'--{side.role} env={name}.{variable}:…: there is no service "{name}"{known}')
        found[name]["environment"][variable] = value
    _put_image(request, found)
    return found


def _put_image(request: SideRequest, services: dict[str, dict[str, Any]]) -> None:
    side = request.side
    users = [
        name
        for name, service in services.items()
        if "{image}" in repr((service["command"], service["environment"]))
    ]
    if side.image is not None and not users:
        raise UsageError(
            f"--{side.role} image={side.image}: no service uses {{image}} in its command or environment"
        )
    if users and side.image is None:
        raise UsageError(
            f"--{side.role} image=REF is missing: service {users[0]} uses {{image}} in its command or "
            "environment"
        )
    for service in services.values():
        _replace(service, "{image}", side.image or "")


def _replace(service: dict[str, Any], mark: str, text: str) -> None:
    service["command"] = [word.replace(mark, text) for word in service["command"]]
    service["environment"] = {name: one.replace(mark, text) for name, one in service["environment"].items()}


def _identity(side: _SideVariant) -> object:
    request = side.request
    texts = repr((side.kept, side.values, side.settings, side.setup, side.workloads, side.services))
    files = {name: text for name, text in request.files.items() if name in repr(side.services)}
    commit = (request.commit, request.changed) if "{checkout}" in texts else None
    return (texts, files, commit, request.dsn)


def _titled(request: SideRequest, variant: str) -> GuardSide:
    side = request.side
    what = [f"variant {variant}"] if side.variant is not None else []
    what += [request.revision] if request.revision is not None else []
    what += [f"server {request.dsn}"] if request.dsn is not None else []
    what += [f"{name} = {value}" for name, value in (*side.settings, *side.values)]
    what += [
        f"{service}.{name} = {'***' if _SECRET.search(name) else value}"
        for service, name, value in side.environment
    ]
    what += [f"image {side.image}"] if side.image is not None else []
    title = request.spec.variants[variant].title or f"variant {variant}"
    return GuardSide(side.role, ", ".join(what) or title, tuple(what), request.commit)


# ---- the question of both sides ----


def _same_question(baseline: SideRequest, candidate: SideRequest, names: Sequence[str]) -> None:
    old, new = baseline.data, candidate.data
    pairs: list[tuple[str, object, object]] = [(name, old.get(name, {}), new.get(name, {})) for name in _SAME]
    services = [list(asked.spec.services) for asked in (baseline, candidate)]
    pairs.append(("services", ", ".join(services[0]), ", ".join(services[1])))
    for name in names:
        key, one, other = f"workloads.{name}", old["workloads"][name], new["workloads"][name]
        pairs += [(f"{key}.{part}", one.get(part), other.get(part)) for part in _SENT]
        counts = [len(asked.spec.workloads[name].statements) for asked in (baseline, candidate)]
        pairs.append((f"{key}: statements of an operation", counts[0], counts[1]))
        pairs.append((f"{key}.undo is there", "undo" in one, "undo" in other))
        drawn, drawn_too = one.get("parameters", {}), other.get("parameters", {})
        pairs += [
            (f"{key}.parameters.{parameter}", drawn[parameter], drawn_too[parameter])
            for parameter in drawn
            if parameter in drawn_too
        ]
    for name in services[0] if services[0] == services[1] else ():
        before, after = old["services"][name], new["services"][name]
        pairs += [
            (f"services.{name}.{part}", before.get(part), after.get(part)) for part in ("ready", "after")
        ]
    different = [(key, *_shown(one, other)) for key, one, other in pairs if one != other]
    if not different:
        return
    key, one, other = different[0]
    more = f" (and {', '.join(found[0] for found in different[1:])})" if len(different) > 1 else ""
    raise UsageError(
        f"{baseline.origin} and {candidate.origin} cannot be compared: {key} differs: {one} and "
        f"{other}{more}; make it the same in both files"
    )


def _shown(one: object, other: object) -> tuple[str, str]:
    """Return two values as text; of long values, the first place where they differ."""
    texts = ["nothing" if value in (None, {}, []) else str(value) for value in (one, other)]
    if max(map(len, texts)) <= 80:
        return texts[0], texts[1]
    place = next((at for at, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
    begin = max(0, place - 20)
    shown = [f"{'…' * (begin > 0)}{text[begin : begin + 60]}…" for text in texts]
    return shown[0], shown[1]


def _told(baseline: SideRequest, candidate: SideRequest, names: Sequence[str]) -> Iterator[str]:
    """Yield a sentence about differences between the files that are resolved as in the candidate's file."""
    old, new = baseline.data, candidate.data
    found = []
    for section in ("stop", "checks", "metrics"):
        found += [section] if old.get(section, {}) != new.get(section, {}) else []
    for name in names:
        one, other = old["workloads"][name], new["workloads"][name]
        keys = [key for key in dict.fromkeys((*one, *other)) if key not in _OWN]
        found += [f"workloads.{name}.{key}" for key in keys if one.get(key) != other.get(key)]
    shared = [asked.spec.setup.shared for asked in (baseline, candidate)]
    found += ["setup.shared"] if shared[0] != shared[1] else []
    if found:
        yield (
            f"the files of {baseline.origin} and {candidate.origin} differ ({', '.join(found)}): both sides "
            f"use the values of {candidate.origin}"
        )


def _data(candidate: _SideVariant, names: Sequence[str], changes: Mapping[str, Any]) -> dict[str, Any]:
    base = copy.deepcopy(dict(candidate.request.data))
    experiment = base["experiment"]
    name = str(experiment["name"])
    base["experiment"] = {
        **{key: experiment[key] for key in ("question", "seed", "evidence") if key in experiment},
        "name": f"guard-{name[:_NAME]}".rstrip("-_"),
        **changes.get("experiment", {}),
    }
    base.pop("growth", None)
    if not candidate.request.spec.services:
        base.pop("services", None)
        base.pop("databases", None)
    base["guard"] = {
        **{k: v for k, v in base.get("guard", {}).items() if k == "gates"},
        **changes.get("guard", {}),
    }
    base["variants"] = {}
    base["setup"] = {**{k: v for k, v in base["setup"].items() if k != "file"}, "sql": candidate.setup}
    workloads = base["workloads"]
    base["workloads"] = {
        name: {key: value for key, value in workloads[name].items() if key not in ("file", "variants")}
        | _texts(candidate.workloads.get(name, {}))
        for name in names
    }
    for part in ("databases", "checks", "metrics"):
        for section in base.get(part, {}).values():
            section.pop("file", None)
    return base


def _texts(own: Mapping[str, Any]) -> dict[str, Any]:
    """Return a workload's own texts; a list of one statement is written as that statement."""
    return {
        key: value[0] if isinstance(value, list) and len(value) == 1 else value
        for key, value in own.items()
        if value
    }


def _put_variant(data: dict[str, Any], side: _SideVariant, candidate: _SideVariant) -> None:
    request, role = side.request, side.request.side.role
    variant: dict[str, Any] = {"title": role, **side.kept}
    if role == BASELINE:
        variant["baseline"] = True
    if request.dsn is not None:
        variant["server"] = role
    variant |= {"values": side.values} if side.values else {}
    variant |= {"settings": side.settings} if side.settings else {}
    if side.setup != candidate.setup:
        variant["setup"] = {"sql": side.setup}
    own = {
        name: _texts(texts) for name, texts in side.workloads.items() if texts != candidate.workloads[name]
    }
    variant |= {"workloads": own} if own else {}
    for name in side.workloads:
        parameters = request.data["workloads"][name].get("parameters", {})
        if parameters:
            known = data["workloads"][name].setdefault("parameters", {})
            data["workloads"][name]["parameters"] = {**parameters, **known}
    for name, service in side.services.items():
        _replace(service, "{checkout}", request.checkout)
        service["files"] = {file: f"{role}/{source}" for file, source in service["files"].items()}
        section = data["services"][name]
        section.update(command=candidate.services[name]["command"], environment={}, files=[])
    if side.services:
        variant["services"] = side.services
    data["variants"][role] = variant
