"""Follow logs and show their metrics: `uncork profile logs --follow`."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from uncork.cli import console
from uncork.errors import UsageError
from uncork.model.units import format_bytes, format_count, format_duration
from uncork.profile.logs import LogReading, LogRequest
from uncork.report.log.document import render_log_live
from uncork.workbench.profile.following import ProgressSnapshot, follow_logs
from uncork.workbench.profile.log_files import LogServers, is_log


@dataclass(frozen=True, slots=True)
class Following:
    """Logs to follow, with the refresh interval, the end, the number of templates to show, and their servers.

    `_found` are the files so far, with their servers.
    """

    files: list[Path]
    every_s: float
    end_s: float | None
    top: int
    servers: LogServers = field(default_factory=LogServers)
    _found: dict[Path, str] = field(default_factory=dict, init=False)

    def read(self, request: LogRequest, *, quiet: bool) -> LogReading:
        """Follow logs until Ctrl-C or until the time is over; return the entries read.

        Raises:
            UsageError: if one of the files cannot be followed, or its server is unknown.
            SetupError: if events cannot be written.
        """
        if Path("-") in self.files:
            raise UsageError("--follow reads files and folders, not standard input")
        for path in self.files:
            if not path.parent.is_dir():
                raise UsageError(f"{path}: there is no folder {path.parent}")
        last: ProgressSnapshot | None = None

        def show(snapshot: ProgressSnapshot) -> None:
            nonlocal last
            if not quiet:
                self._show(snapshot, last)
            last = snapshot

        if not quiet:
            until = "" if self.end_s is None else f" for {format_duration(self.end_s * 1e9)}"
            console.note(f"following{until}; Ctrl-C stops and writes the report")
        try:
            request = replace(request, paths=())
            return follow_logs(request, find=self._find, every_s=self.every_s, end_s=self.end_s, show=show)
        finally:
            if last is not None and not quiet and console.output.is_terminal:
                console.output.clear()

    def _find(self) -> Iterator[tuple[Path, str]]:
        """Yield the current files with their servers; a new file without one has the server "".

        Raises UsageError if the server of a file that exists at the beginning is unknown.
        """
        paths = [path for path in self._paths() if path not in self._found]
        known = [*self._found, *paths]
        try:
            names = self.servers.of(list(map(str, known)), lenient=True) or [""] * len(known)
        except UsageError:
            if not self._found:
                raise
            names = [self._found.get(path, "") for path in known]
        new = dict(zip(known, names, strict=True))
        self._found.update({path: new[path] for path in paths})
        yield from ((path, name) for path, name in self._found.items() if self.servers.selects(name))

    def _paths(self) -> Iterator[Path]:
        """Yield the current files: folders and globs may have new ones."""
        for path in self.files:
            if path.is_dir():
                yield from sorted(entry for entry in path.iterdir() if is_log(entry))
            elif not path.exists() and glob.has_magic(str(path)):
                yield from sorted(Path(name) for name in glob.iglob(str(path), recursive=True))  # noqa: PTH207 -- absolute ones too
            else:
                yield path

    def _show(self, snapshot: ProgressSnapshot, last: ProgressSnapshot | None) -> None:
        result, total = snapshot.result, snapshot.result.executions
        before = None if last is None else last.result.executions
        count = total.count - (before.count if before else 0)
        took = total.sum_ns - (before.sum_ns if before else 0)
        passed = snapshot.seconds - (last.seconds if last else 0)
        line = (
            f"{format_duration(snapshot.seconds * 1e9)}, {format_bytes(snapshot.bytes)}, "
            f"{format_count(result.entries)} entries; in the last {format_duration(passed * 1e9)} "
            f"{format_count(count)} executions that took {format_duration(took)}"
            f"{'; still catching up' if snapshot.behind else ''}"
        )
        if not console.output.is_terminal:
            console.note(line)
            return
        render_log_live(result, console.output, line, top=self.top)
