"""The options of `uncork guard`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

from uncork.errors import UsageError
from uncork.model.stored_run import DEFAULT_RUNS
from uncork.model.variant_evidence import EvidenceKind
from uncork.requests.experiment_options import (
    Seed,
    Sets,
    Workloads,
    share,
)
from uncork.requests.hosts import HostOptions
from uncork.requests.option import Kind, duration, opt, pair, whole
from uncork.requests.shared_options import (
    AsJson,
    Html,
    Markdown,
    Runs,
)

_SIDE: Final = (
    "variant=, commit=, dsn=, setting=NAME:VALUE, value=NAME:VALUE, env=SERVICE.NAME:VALUE, image=, url="
)
_HEADER: Final = pair(":", "--header: write it as NAME: VALUE, such as Authorization: Bearer ...")


def _evidence(value: object, option: str) -> tuple[EvidenceKind, ...]:
    known: dict[str, EvidenceKind] = {kind: kind for kind in get_args(EvidenceKind)}
    many = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else []
    words = [str(text).strip() for text in many if str(text).strip()]
    for word in words:
        if word not in known:
            raise UsageError(f"{option} {word}: there is no such kind; expecting {', '.join(known)}")
    return tuple(known[fromkey] for fromkey in dict.fromkeys(words))


@dataclass(frozen=True, slots=True)
class GuardOptions(HostOptions):
    """Check whether a candidate is worse than its baseline, measured side by side.

    The two sides are commits, settings, values, variants, servers or images of one experiment file. A stored
    load is measured again and compared with earlier runs. A broken gate is confirmed by a second measurement
    before it alarms. Exits with 0 if all gates pass, 3 if one is broken, 4 if one is undecided.
    """

    target: str | None = opt("FILE|RUN", "Experiment file (TOML), or a stored load.")
    candidate: list[str] | None = opt(
        "--candidate KIND=...",
        f"The candidate; repeatable: {_SIDE}",
        python='The candidate: ``"setting=work_mem:4MB"``, ``"commit=HEAD"``.',
    )
    baseline: list[str] | None = opt("--baseline KIND=...", "The baseline, in the same form.")
    gates: list[str] | None = opt(
        "--gate GATE",
        'Require this of the candidate, in addition to the gates of the file: "p99 < +5%", "queries a '
        'request <= baseline", "plan unchanged"; repeatable.',
        python='Requirements, in addition to the gates of the file, such as ``"p99 < +5%"``.',
    )
    variant: str | None = opt(
        "--variant NAME", "Variant of the file that both sides run. Default: its baseline."
    )
    workloads: Workloads = None
    sets: Sets = None
    budget: int | None = opt(
        "--budget TIME",
        "Maximum duration of each of the two measurements. Default: the file's, or 5min.",
        duration(),
    )
    precision: float | None = opt(
        "--precision PERCENT",
        "Stop measuring for an undecided gate when its interval is this narrow.",
        share(),
    )
    seed: Seed = None
    acknowledged: Path | None = opt(
        "--acknowledged FILE", "File of acknowledged changes.", python="File of acknowledged changes."
    )
    confirm: bool = opt(
        "--confirm/--no-confirm",
        "Confirm a broken gate by a second measurement.",
        show_default=True,
        default=True,
    )
    evidence: tuple[EvidenceKind, ...] | None = opt(
        "--evidence KIND[,KIND...]",
        f"Evidence to collect on both sides afterwards: {', '.join(get_args(EvidenceKind))}.",
        Kind(_evidence, _evidence),
    )
    same: bool = opt("--same", "Allow two identical sides, to test the guard itself.", default=False)
    resume: str | None = opt(
        "--resume RUN",
        "Continue an interrupted guard: its run's id, or last.",
        python="Run of an interrupted guard to continue, instead of a target.",
    )
    stored: bool = opt("--stored", "Stored load: judge it as stored, without measuring again.", default=False)
    times: int = opt(
        "--times NUM",
        "Stored load: measure it NUM times. Default: 1.",
        whole(1, 100),
        python="Stored load: number of measurements. Default: 1.",
        default=1,
    )
    url: str | None = opt("--url URL", "Stored HTTP load: send it to this address.")
    header: list[tuple[str, str]] | None = opt(
        "--header NAME:VALUE",
        "Stored HTTP load: set a header, such as a secret one; repeatable.",
        _HEADER,
        python="Stored HTTP load: headers to set, such as a secret one.",
    )
    everything: bool = opt(
        "--all", "Stored run: include runs with broken gates in its history.", default=False
    )
    as_json: AsJson = False
    markdown: Markdown = False
    junit: Path | None = opt("--junit FILE", "Write JUnit XML to FILE, with one test case per gate.")
    gobench: Path | None = opt(
        "--gobench FILE", "Write the results to FILE in the format that benchstat reads."
    )
    summary: Path | None = opt("--summary FILE", "Append Markdown to FILE, such as $GITHUB_STEP_SUMMARY.")
    html: Html = None
    runs: Runs = DEFAULT_RUNS
