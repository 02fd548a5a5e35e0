"""Shared by all tests: places of their own for runs and servers, and hypothesis without a stopwatch."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from _pytest.nodeid import NodeId
from hypothesis import settings

from fakes.forked_commands import ForkedCommands

settings.register_profile("uncork", deadline=None)
settings.load_profile("uncork")

_TEMPORARY = Path("/var/tmp") if Path("/var/tmp").is_dir() else Path(tempfile.gettempdir())
_SERVERS = _TEMPORARY / f"uct-{os.getpid()}"  # short: a socket's path is limited to 107 bytes
_MEMORY = Path("/dev/shm") / _SERVERS.name
_ROOM = 8 << 30
"""How much memory must be free, in bytes. The servers of two workers took 0.6 GB."""
_WAIT_FOR_A_DISK = {"test_demo", "test_profile_db"}
"""Files of tests as a user starts them, or about commits that wait for a disk."""


def pytest_configure():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a worker ignores it, as would what it starts
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # it would compile uncork anew in each subprocess
    os.environ["UNCORK_SERVERS"] = str(_SERVERS)
    os.environ["UNCORK_PROGRESS_S"] = "0"  # tests wait for lines of progress


def pytest_unconfigure():
    for folder in (_SERVERS, _MEMORY):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items):
    """Prepare the tests for several workers (--dist loadgroup).

    Start what takes longest first, so that no worker is left with a long test at the end; `make test` keeps
    this order by --no-loadscope-reorder.
    """
    result = yield
    items.sort(key=_start)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_finish(session):
    """Tell xdist the group of each test, at the end of its name: a group runs in one worker.

    xdist 3.8 does this itself, but with pytest 9.2 to no effect (its issue 1386).
    """
    names = [item._id for item in session.items]
    if hasattr(session.config, "workerinput"):
        for item, name in zip(session.items, names, strict=True):
            if group := _group(item):
                item._id = NodeId.parse(f"{name}@{group}")
    result = yield
    for item, name in zip(session.items, names, strict=True):
        item._id = name
    return result


def _group(item):
    """Return a test's group. A file is one, unless its tests are long and share nothing."""
    if marker := item.get_closest_marker("xdist_group"):
        return marker.args[0]
    return None if item.path.parent.name in {"calibration", "docs", "e2e"} else item.path.stem


def _start(item):
    """Return the place of a test in the order: groups of long tests, long tests, other servers, the rest."""
    folder = item.path.parent.name
    if folder == "e2e" and item.get_closest_marker("xdist_group"):
        return 0
    if item.get_closest_marker("slow"):
        return 1
    return {"integration": 2, "e2e": 3, "docs": 4, "calibration": 5}.get(folder, 6)


def pytest_runtest_logreport(report):
    """Tell a failure at once in CI: a run that is cut short must not hide what it found."""
    if report.failed and os.environ.get("CI"):
        print(f"\n{report.nodeid} ({report.when})\n{report.longreprtext}", flush=True)  # noqa: T201


_DO_NOT_APPLY = (
    "a pipeline needs the extended protocol",
    "it has no transactions of that kind",
    "this version of the server cannot have the fault",
)
"""Why a test may be skipped in CI. Whatever a test lacks on a machine, CI has."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    report = yield
    return _unless_lacking(report)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    report = yield
    return _unless_lacking(report)


def _unless_lacking(report):
    """Let a test fail in CI that is skipped for want of something: nobody would see that it does not run."""
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not reason.endswith(_DO_NOT_APPLY):
            report.outcome, report.longrepr = "failed", f"CI does not skip this test: {reason}"
    return report


@pytest.fixture(autouse=True)
def runs_away_from_the_checkout(tmp_path, monkeypatch):
    monkeypatch.setenv("UNCORK_RUNS", str(tmp_path / "runs"))
    for name in ("PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module", autouse=True)
def servers_in_memory(request):
    """Let experiments that are run as commands keep their data in memory: they copy it all the time."""
    file = request.path
    with pytest.MonkeyPatch.context() as patch:
        if file.parent.name in {"docs", "e2e"} and file.stem not in _WAIT_FOR_A_DISK and _is_there_room():
            patch.setenv("UNCORK_SERVERS", str(_MEMORY))
        yield


def _is_there_room():
    try:
        room = shutil.disk_usage(_MEMORY.parent).free
        available = re.search(r"MemAvailable: +(\d+)", Path("/proc/meminfo").read_text())
    except OSError:
        return False
    return available is not None and min(room, 1024 * int(available[1])) >= _ROOM


@pytest.fixture(scope="session")
def commands():
    """Run the command line in processes that need not import it again."""
    started = ForkedCommands()
    yield started
    started.end()


@pytest.fixture
def nothing_in_memory():
    """The addresses memory://..., which all tests of a process share, with nothing at them."""
    from fsspec.implementations.memory import MemoryFileSystem

    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
