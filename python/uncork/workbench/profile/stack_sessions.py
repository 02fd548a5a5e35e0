"""Label stacks with the session that a process served at a moment, from samples of the server."""

from __future__ import annotations

import bisect
import contextlib
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import Final

from uncork.engines.watch.connection import ServerWatch
from uncork.errors import UncorkError
from uncork.profile.activity import wait_class
from uncork.profile.server_templates import TemplateBook
from uncork.profile.statement_origin import origin

_NEAR_NS: Final = 250_000_000
"""A sample further away than this does not describe a moment."""
_MOSTLY: Final = 0.9
"""The fraction of a process's samples above which a template labels all of its time."""


@dataclass(frozen=True, slots=True)
class Label:
    """What a process was at a moment: kind of backend, application, template, wait; empty if unknown.

    `route` is the one that a comment in the statement names.
    """

    backend: str = ""
    application: str = ""
    template: str = ""
    wait: str = ""
    route: str = ""


class SessionWatch:
    """Samples which session works on what in a server, while its processes are profiled.

    An error ends sampling and is stored in `trouble`; later stacks have no labels.
    """

    def __init__(self, conninfo: str, rate_hz: float = 20.0) -> None:
        self._server = ServerWatch(conninfo)
        self._period = 1.0 / rate_hz
        self._book = TemplateBook()
        self._texts: dict[int, str] = {}
        self._found: dict[int, list[tuple[int, Label, int | None, int | None]]] = defaultdict(list)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.looks = 0
        self.trouble = ""

    @property
    def pid(self) -> int:
        """The server process of this watch's own session."""
        return self._server.pid

    def start(self) -> None:
        """Start sampling."""
        if self._thread is not None:
            return
        self._server.facts()
        self._server.begin_sampling()
        self._thread = threading.Thread(target=self._run, name="uncork-sessions", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop sampling, and look up the texts of statements known only by id."""
        self._stop.set()
        if self._thread is None:
            return
        self._thread.join()
        with contextlib.suppress(UncorkError):
            for query_id, text in {**self._texts, **self._server.texts(self._texts)}.items():
                self._book.number(query_id, text)

    def close(self) -> None:
        """Stop sampling, and close the connection."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._server.close()

    def label(self, pid: int | None, time_ns: int | None) -> Label:
        """Return the label of a process at a moment of the monotonic clock."""
        samples = self._found.get(-1 if pid is None else pid)
        if not samples:
            return Label()
        if time_ns is None:
            return self.mostly(pid)
        place = bisect.bisect_left(samples, time_ns, key=lambda one: one[0])
        near = [
            sample
            for sample in samples[max(0, place - 1) : place + 1]
            if abs(sample[0] - time_ns) <= _NEAR_NS
        ]
        if not near:
            # A session that was idle at the next samples still has its kind and application.
            kind = samples[min(place, len(samples) - 1)][1]
            return Label(kind.backend, kind.application)
        return self._labelled(min(near, key=lambda one: abs(one[0] - time_ns)))

    def mostly(self, pid: int | None) -> Label:
        """Return the label of a process for all its time; the template only if nearly always the same."""
        samples = self._found.get(-1 if pid is None else pid)
        if not samples:
            return Label()
        labels = [self._labelled(sample) for sample in samples]
        last = labels[-1]
        (first, most), *_ = Counter((label.template, label.route) for label in labels).most_common(1)
        template, route = first if most >= _MOSTLY * len(labels) else ("", "")
        return Label(last.backend, last.application, template, route=route)

    def waits(self) -> list[tuple[int, Label]]:
        """Return every sample of every session: its process, and what it did."""
        return [(pid, self._labelled(one)) for pid, found in self._found.items() for one in found]

    def _labelled(self, sample: tuple[int, Label, int | None, int | None]) -> Label:
        _, label, query_id, template = sample
        number = template if query_id is None else self._book.number(query_id, None)
        text = "" if number is None else self._book.texts[number]
        return replace(label, template=text)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            try:
                look = self._server.look(self._texts.keys(), blockers=False)
            except UncorkError as error:
                self.trouble = str(error)
                return
            due = max(due + self._period, time.monotonic())
            if look is None:
                continue
            self.looks += 1
            middle = (look.begun_ns + look.ended_ns) // 2
            for row in look.rows:
                query_id, text = row["query_id"], row["text"]
                if query_id is not None and text:
                    self._texts[query_id] = text
                number = self._book.number(None, text) if query_id is None else None
                route = origin(row["comment"], paths=False) or ""
                label = Label(row["backend"] or "", row["application"] or "", "", _wait(row), route)
                self._found[row["pid"]].append((middle, label, query_id, number))


def _wait(row: dict[str, object]) -> str:
    found = wait_class(row)
    return f"{found}: {row['wait_event']}" if row["wait_event"] else str(found)
