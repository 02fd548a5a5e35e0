"""Read the two sides of a guard from their files, at their commits, and build their checkouts."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from uncork.engines.checkouts import (
    checkout,
    find_repository,
    resolve_revision,
    run_build,
    working_state,
)
from uncork.errors import SpecError, UsageError
from uncork.experiment.guard.experiment import BASELINE, CANDIDATE, SideRequest
from uncork.experiment.guard.sides import Side
from uncork.experiment.plan.server_settings import OF_A_SERVER
from uncork.experiment.spec.raw_file import inline_files, with_variant
from uncork.model.records import build_from
from uncork.model.redaction import redact
from uncork.requests.guard import GuardRequest, Tell
from uncork.requests.server import ServerChoice
from uncork.requests.source import Source, file_source


@dataclass(frozen=True, slots=True)
class Sides:
    """What both sides ask, and what to build: command, folder, and a name for messages.

    `folder` holds the candidate's file; paths in that file are relative to it.
    """

    baseline: SideRequest
    candidate: SideRequest
    builds: tuple[tuple[tuple[str, ...], Path, str], ...]
    folder: Path

    def build(self, notify: Tell) -> None:
        """Build each checkout once. Raises SetupError if a build fails."""
        for command, folder, whose in self.builds:
            notify(f"building {whose}: {' '.join(command)}")
            run_build(command, folder, whose)


@dataclass(frozen=True, slots=True)
class _Stand:
    root: Path
    file: Path
    origin: str
    revision: str | None = None
    commit: str | None = None
    changed: bool = False


@contextmanager
def opened_sides(wanted: GuardRequest) -> Iterator[Sides]:
    """Read both sides. Checkouts made for this are deleted when the context ends.

    Raises:
        UsageError: if servers contradict each other, the file cannot be read, a commit does not exist, or
            the file is not in it.
        SpecError: if a side's file is wrong.
        SetupError: if a commit cannot be checked out.
    """
    path = Path(wanted.target)
    if not path.is_file():
        raise UsageError(f"cannot read {path}: no such file")
    choice = server_choice(wanted)
    with ExitStack() as stack:
        stands = _stands(path.resolve(), (wanted.baseline, wanted.candidate), stack)
        sides = []
        builds: dict[Path, tuple[tuple[str, ...], Path, str]] = {}
        for side, stand in zip((wanted.baseline, wanted.candidate), stands, strict=True):
            shown = replace(stand, origin=stand.origin or str(path))
            source = _source(shown, wanted, path)
            sides.append(_asked(side, shown, source, choice))
            command = tuple(source.spec.guard.build)
            if command:
                builds.setdefault(stand.root, (command, stand.root, shown.origin))
        folder = path.parent if stands[1].file == path.resolve() else stands[1].file.parent
        yield Sides(sides[0], sides[1], tuple(builds.values()), folder)


def server_choice(wanted: GuardRequest) -> ServerChoice:
    """Return where both sides are measured.

    Raises UsageError if only one side names a server, or the options contradict each other.
    """
    sides = (wanted.baseline, wanted.candidate)
    named = {side.role: side.dsn for side in sides}
    whole = next(
        ((side.role, name) for side in sides for name, _ in side.settings if name in OF_A_SERVER), None
    )
    if wanted.on_hosts and any(named.values()):
        raise UsageError(
            "--hosts measures both sides on the same servers, one on each host: leave out dsn=… (--host-dsn "
            "names running servers)"
        )
    if whole is not None:
        _refuse_named(wanted, *whole)
    if not any(named.values()):
        return wanted.choice
    if wanted.choice.binaries is not None or wanted.choice.port is not None:
        raise UsageError("dsn=… names running servers: leave out --pg-bin and --port")
    found = {role: dsn or wanted.choice.dsn for role, dsn in named.items()}
    lacking = [role for role, dsn in found.items() if dsn is None]
    if lacking:
        other = CANDIDATE if lacking[0] == BASELINE else BASELINE
        raise UsageError(
            f"--{other} dsn=… names a server: name the {lacking[0]}'s server, too (--{lacking[0]} dsn=…, or "
            "--dsn)"
        )
    return ServerChoice(apart={role: dsn for role, dsn in found.items() if dsn is not None})


def _refuse_named(wanted: GuardRequest, role: str, name: str) -> None:
    """Refuse servers that the request names if a setting of a side applies to a whole server."""
    lacking = (wanted.baseline.dsn, wanted.candidate.dsn, wanted.choice.dsn)
    if any(dsn is not None for dsn in lacking):
        raise UsageError(
            f"--{role} setting={name}:…: it applies to a whole server, and uncork does not configure "
            "existing servers (dsn); set it there, or leave out the server"
        )
    if wanted.choice.port is not None:
        raise UsageError(
            f"--{role} setting={name}:…: it applies to a whole server, so each side has its own server: "
            "leave out --port"
        )


def _stands(path: Path, sides: tuple[Side, Side], stack: ExitStack) -> list[_Stand]:
    if not any(side.commit for side in sides):
        return [_Stand(_top(path), path, "")] * 2
    repository = find_repository(path.parent)
    revisions = {
        side.role: resolve_revision(repository, side.commit) for side in sides if side.commit is not None
    }
    trees = {
        revision.commit: stack.enter_context(checkout(repository, revision.commit))
        for revision in {revision.commit: revision for revision in revisions.values()}.values()
    }
    inside = path.relative_to(repository)
    found = []
    for side in sides:
        revision = revisions.get(side.role)
        if revision is None:
            found.append(_working(repository, path))
            continue
        file = trees[revision.commit] / inside
        if not file.is_file():
            raise UsageError(
                f"--{side.role} commit={side.commit}: commit {revision.short} has no {inside}, but both "
                "sides need it; guard a commit that has the file"
            )
        name = f"commit {revision.short}"
        found.append(_Stand(trees[revision.commit], file, name, name, revision.commit))
    return found


def _working(repository: Path, path: Path) -> _Stand:
    """Return the working tree, and whether it has changed since its commit."""
    revision, changed = working_state(repository)
    if revision is None:
        return _Stand(repository, path, "the working tree", "working tree, nothing committed", None, True)
    name = revision.short
    title = f"working tree: uncommitted changes on {name}" if changed else f"working tree, as commit {name}"
    return _Stand(repository, path, "the working tree", title, revision.commit, changed)


def _top(path: Path) -> Path:
    try:
        return find_repository(path.parent)
    except UsageError:
        return path.parent


def _source(stand: _Stand, wanted: GuardRequest, path: Path) -> Source:
    """Read a side's file; messages show the path in the request, not the path in the checkout."""
    if stand.file == path.resolve():
        return file_source(path, wanted.options, alone=True)
    try:
        return file_source(stand.file, wanted.options, alone=True)
    except (SpecError, UsageError) as error:
        message = str(error).replace(str(stand.file), f"{path} of {stand.origin}")
        raise type(error)(message.replace(f"{stand.root}/", "")) from error


def _asked(side: Side, stand: _Stand, source: Source, choice: ServerChoice) -> SideRequest:
    data = with_variant(tomllib.loads(source.text))
    inline_files(data, source.files.__getitem__)
    return build_from(
        SideRequest,
        stand,
        side=side,
        data=data,
        spec=source.spec,
        files=source.spec.files,
        checkout=str(stand.root),
        dsn=redact(choice.apart[side.role]) if side.role in choice.apart else None,
    )
