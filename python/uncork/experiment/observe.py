"""Build the experiment that measures what observers cost: one variant per observer. Pure.

All else is as in the baseline.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from uncork.errors import UsageError
from uncork.experiment.draft_text import toml

NOTHING: Final = "nothing"
"""The name of the baseline, which has no observer."""

_SET: Final = re.compile(r"\\set\s+(\w+)\s+random\(([^,()]+),([^,()]+)\)\s*$")
_END: Final = re.compile(r";\s*(?:\n|$)")
_BOUND: Final = re.compile(r"-?\d+(\s*\*\s*-?\d+)*")


@dataclass(frozen=True, slots=True)
class Observed:
    """One observer: its name, and the settings or the program (`observe`) that turn it on."""

    name: str
    title: str
    settings: Mapping[str, Any]
    observe: str | None = None


def experiment_data(
    base: Mapping[str, Any],
    observers: Sequence[Observed],
    quiet: Mapping[str, Any],
    *,
    server: Mapping[str, Any],
    stop: Mapping[str, Any],
    seed: int,
) -> dict[str, Any]:
    """Return an experiment that compares `observers` with nothing, as the data of an experiment file.

    `base` is an experiment's data. The result uses its set-up, factors and workloads, and the values of its
    baseline variant. All variants work on the same data, so its layout makes no difference. `quiet` holds
    settings that turn everything off.
    """
    variants = base.get("variants", {})
    kept: Mapping[str, Any] = next((variant for variant in variants.values() if variant.get("baseline")), {})
    plain = {name: kept[name] for name in ("values", "batching", "chunk") if name in kept}
    own = {**kept.get("settings", {}), **quiet}
    workloads = {
        name: {**workload, "metric": "throughput"} for name, workload in base.get("workloads", {}).items()
    }
    return {
        "experiment": {
            "name": "observe-cost",
            "question": "What does observing this server cost?",
            "seed": seed,
        },
        "variants": {
            NOTHING: {**plain, "title": "nothing observes", "baseline": True, "settings": own},
            **{
                observer.name: {
                    **plain,
                    "title": observer.title,
                    "settings": {**own, **observer.settings},
                    **({} if observer.observe is None else {"observe": observer.observe}),
                }
                for observer in observers
            },
        },
        **({"factors": base["factors"]} if base.get("factors") else {}),
        "setup": {**base.get("setup", {}), "shared": True},
        "workloads": workloads,
        "server": {"settings": {**base.get("server", {}).get("settings", {}), **server}},
        "stop": {**base.get("stop", {}), **stop},
    }


def pgbench_setup(scale: int) -> str:
    """Return SQL that creates pgbench's tables at a scale."""
    return f"""
CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88)) WITH (fillfactor = 50);
CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84))
  WITH (fillfactor = 50);
CREATE TABLE pgbench_accounts (aid int, bid int, abalance int, filler char(84)) WITH (fillfactor = 90);
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));
INSERT INTO pgbench_branches SELECT n, 0 FROM generate_series(1, {scale}) AS n;
INSERT INTO pgbench_tellers SELECT n, (n - 1) / 10 + 1, 0 FROM generate_series(1, {10 * scale}) AS n;
INSERT INTO pgbench_accounts
  SELECT n, (n - 1) / 100000 + 1, 0, '' FROM generate_series(1, {100_000 * scale}) AS n;
ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid);
"""  # noqa: S608 -- only a number is inserted


def script_workload(text: str, *, name: str, scale: int, clients: int, duration: str) -> dict[str, Any]:
    r"""Convert a pgbench script to a workload; statements end in `;` at the end of a line.

    The only supported command is ``\set NAME random(LOW, HIGH)``, whose bounds are numbers, ``:scale`` and
    products of them. BEGIN and END around the statements make them one transaction.

    Raises:
        UsageError: for any other command of the script language, or a script without a statement.
    """
    parameters: dict[str, Any] = {}
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("\\"):
            lines += [] if line.lstrip().startswith("--") else [line]
            continue
        found = _SET.match(line.strip())
        bounds = [] if found is None else [_bound(found[place], scale) for place in (2, 3)]
        if found is None or None in bounds:
            raise UsageError(
                f"{name}:{number}: {line.strip()}: only \\set NAME random(LOW, HIGH) is supported here; "
                "for anything else, write an experiment file (-f FILE.toml)"
            )
        parameters[found[1]] = {"generator": {"kind": "uniform", "min": bounds[0], "max": bounds[1]}}
    statements = [word.strip() for word in _END.split("\n".join(lines)) if word.strip()]
    transaction = len(statements) > 1 and statements[0].upper() in ("BEGIN", "START TRANSACTION")
    if transaction:
        statements = [statement for statement in statements[1:] if statement.upper() not in ("END", "COMMIT")]
    if not statements:
        raise UsageError(f"{name}: the script contains no SQL statement; add one")
    used = {word for statement in statements for word in re.findall(r"(?<!:):(\w+)", statement)}
    return {
        "sql": statements,
        "transaction": transaction,
        "clients": clients,
        "duration": duration,
        "placement": "free",
        "state": "keep",
        "answer": "may differ",
        "parameters": {name: facts for name, facts in parameters.items() if name in used},
    }


def _bound(text: str, scale: int) -> int | None:
    plain = text.replace(":scale", str(scale)).strip()
    if not _BOUND.fullmatch(plain):
        return None
    product = 1
    for factor in plain.split("*"):
        product *= int(factor)
    return product


def toml_text(data: Mapping[str, Any], prefix: str = "") -> str:
    """Return nested tables of plain values as TOML; strings are written as in JSON, which TOML can read."""
    plain = {name: value for name, value in data.items() if not isinstance(value, Mapping)}
    lines = [f"{_key(name)} = {_value(value)}" for name, value in plain.items()]
    text = "\n".join(lines) + "\n" * bool(lines)
    for name, value in data.items():
        if isinstance(value, Mapping):
            path = f"{prefix}{_key(name)}"
            text += f"\n[{path}]\n{toml_text(value, f'{path}.')}"
    return text


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{_key(name)} = {_value(inner)}" for name, inner in value.items())
        return "{ " + ", ".join(pairs) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return toml(value)
