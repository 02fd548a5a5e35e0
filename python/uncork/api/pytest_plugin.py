"""The pytest fixture `uncork`: run an experiment in a test, and assert a verdict.

pytest loads this module at every start, so it imports nothing else of uncork until a test measures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from uncork.api.runs import ExperimentRun, GuardRun, LoadRun, Run

Kept = TypeVar("Kept", bound="Run")

_RUN, _UNDECIDED = "uncork_run", "uncork_undecided"
"""Properties of a test report, also in JUnit XML; the second is also the name of a setting."""
_OUTCOMES = ("fail", "skip", "xfail", "pass")
"""Outcomes of a test whose expectation the evidence does not decide."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options: defaults for tests that do not set their own."""
    group = parser.getgroup("uncork", "experiments that tests run (uncork)")
    group.addoption("--uncork-budget", metavar="TIME", help='Maximum duration of a run, such as "2min".')
    group.addoption("--uncork-dsn", metavar="CONNINFO", help="Measure on this server. Default: start one.")
    group.addoption(
        "--uncork-runs", metavar="DIR", help="Where runs are stored. Default: UNCORK_RUNS, or .uncork/runs."
    )
    group.addoption(
        "--uncork-undecided",
        choices=_OUTCOMES,
        help="Outcome of a test if the evidence does not decide its expectation. Default: fail.",
    )
    parser.addini(_UNDECIDED, "Default of --uncork-undecided: fail, skip, xfail or pass.", default="fail")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, and check the setting of pytest's configuration file."""
    config.addinivalue_line(
        "markers",
        "uncork(budget=..., precision=..., sets=..., dsn=..., undecided=...): how the fixture uncork "
        "measures in this test; every test with the fixture has the marker",
    )
    _checked(config.getini(_UNDECIDED), f"{_UNDECIDED} in pytest's configuration")


def _checked(outcome: object, name: str) -> str:
    if outcome not in _OUTCOMES:
        raise pytest.UsageError(f'{name}: expected {", ".join(_OUTCOMES)}; found "{outcome}"')
    return str(outcome)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test that uses the fixture, so that ``-m uncork`` and ``-m "not uncork"`` select."""
    for item in items:
        if "uncork" in getattr(item, "fixturenames", ()) and item.get_closest_marker("uncork") is None:
            item.add_marker(pytest.mark.uncork)


@pytest.fixture
def uncork(request: pytest.FixtureRequest) -> Measuring:
    """Run experiments and loads, and assert their results: see docs/guides/pytest.md."""
    return Measuring(request.node, request.config)


class Measuring:
    """Runs experiments and loads for one test, stores them, and names them in the test's report.

    Keywords default to those of the marker, then to pytest's options. A file not found in the
    current folder is looked up beside the test.
    """

    def __init__(self, item: pytest.Item, config: pytest.Config) -> None:
        self._item = item
        self._config = config
        self.runs: list[Run] = []

    def run(self, source: str | Path, **words: Any) -> ExperimentRun:
        """Run an experiment, from its file or its text; the keywords are those of `uncork.run`.

        Raises:
            UncorkError: as `uncork.run`.
        """
        __tracebackhide__ = True
        from uncork.api.experiments import run  # noqa: PLC0415 -- pytest starts without it

        return self._kept(run, self._found(source), **{**self._given(), **words})

    def run_case(self, name: str, **words: Any) -> ExperimentRun:
        """Run a published case; the keywords are those of `uncork.run_case`."""
        __tracebackhide__ = True
        from uncork.api.experiments import run_case  # noqa: PLC0415 -- as above

        return self._kept(run_case, name, **{**self._given(), **words})

    def guard(self, target: str | Path, **words: Any) -> GuardRun:
        """Check whether a candidate is worse than its baseline; the keywords are those of `uncork.guard`."""
        __tracebackhide__ = True
        from uncork.api.experiments import guard  # noqa: PLC0415 -- as above

        return self._kept(guard, self._found(target), **{**self._given("budget", "dsn"), **words})

    def load_sql(self, *database: str, **words: Any) -> LoadRun:
        """Load a server; the keywords are those of `uncork.load_sql`."""
        __tracebackhide__ = True
        from uncork.api.loads import load_sql  # noqa: PLC0415 -- as above

        given = {} if database or words.get("embedded") else self._given("dsn")
        return self._kept(load_sql, *database, **{**given, **words})

    def load_http(self, *urls: str, **words: Any) -> LoadRun:
        """Load a service; the keywords are those of `uncork.load_http`."""
        __tracebackhide__ = True
        from uncork.api.loads import load_http  # noqa: PLC0415 -- as above

        return self._kept(load_http, *urls, **words)

    def expect(self, run: ExperimentRun | GuardRun, *expectations: str) -> None:
        """Assert expectations such as ``"uuid=not-slower"``, or for a guard that all its gates pass.

        Raises:
            ExpectationError: if one is contradicted; the message shows verdict, interval, reason and plans.
            UndecidedError: if the evidence does not decide, unless another outcome is chosen: by
                --uncork-undecided, by the setting uncork_undecided, or by the marker's `undecided`.
        """
        __tracebackhide__ = True
        from uncork.api.runs import GuardRun  # noqa: PLC0415 -- as above
        from uncork.errors import ExpectationError, UndecidedError  # noqa: PLC0415

        try:
            if isinstance(run, GuardRun):
                run.check()
            else:
                run.expect(*expectations)
        except UndecidedError as error:
            self._item.user_properties.append((_UNDECIDED, "; ".join(expectations) or "the guard"))
            how = self._undecided()
            if how == "skip":
                pytest.skip(str(error))
            if how == "xfail":
                pytest.xfail(str(error))
            if how == "fail":
                raise error.with_traceback(None) from None
        except ExpectationError as error:
            raise error.with_traceback(None) from None

    # ---- keywords ----

    def _given(self, *only: str) -> dict[str, Any]:
        """Return the keywords of pytest's options, overridden by the marker; with `only`, just these."""
        typed = {name: self._config.getoption(f"--uncork-{name}") for name in ("budget", "dsn")}
        marker = self._item.get_closest_marker("uncork")
        words = {name: value for name, value in typed.items() if value is not None}
        if "budget" in words:
            from uncork.requests.option import with_unit  # noqa: PLC0415 -- only if pytest runs with it

            words["budget"] = with_unit(words["budget"], "s")
        words |= {} if marker is None else marker.kwargs
        words.pop("undecided", None)
        return {name: value for name, value in words.items() if not only or name in only}

    def _undecided(self) -> str:
        """Return the outcome of an undecided test: the marker's, else the option's, else the setting's."""
        marker = self._item.get_closest_marker("uncork")
        if marker is not None and "undecided" in marker.kwargs:
            return _checked(marker.kwargs["undecided"], "undecided of the marker uncork")
        return str(self._config.getoption("--uncork-undecided") or self._config.getini(_UNDECIDED))

    def _found(self, source: str | Path) -> str | Path:
        if (isinstance(source, str) and "\n" in source) or Path(source).exists():
            return source
        beside = self._item.path.parent / source
        return beside if beside.exists() else source

    def _kept(self, measure: Callable[..., Kept], *what: Any, **words: Any) -> Kept:
        """Measure while no other test measures, and name the run in the test's report.

        Errors are raised without our own frames, at the line of the test.
        """
        __tracebackhide__ = True
        from uncork.errors import UncorkError  # noqa: PLC0415 -- pytest starts without it

        try:
            with _alone():
                run = measure(*what, **{"progress": False, "runs": _runs_folder(self._config), **words})
        except UncorkError as error:
            raise error.with_traceback(None) from None
        self.runs.append(run)
        self._item.stash.setdefault(_RUNS, []).append(run)
        self._item.user_properties += [(_RUN, run.id), ("uncork_answer", run.answer)]
        return run


@contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other test process measures: concurrent trials disturb each other (pytest-xdist)."""
    import fcntl  # noqa: PLC0415 -- pytest starts without it
    import os  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    path = Path(tempfile.gettempdir()) / f"uncork-measures-{os.getuid()}.lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _runs_folder(config: pytest.Config) -> str:
    """Return where runs are stored: a folder, or an address such as s3://BUCKET/PREFIX."""
    import os  # noqa: PLC0415 -- as above

    chosen = config.getoption("--uncork-runs") or os.environ.get("UNCORK_RUNS")
    return str(chosen or config.rootpath / ".uncork" / "runs")


_RUNS = pytest.StashKey[list[Any]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the results below a test that failed by its own assertion."""
    report = yield
    runs = item.stash.get(_RUNS, [])
    if report.when == "call" and report.failed and runs and not _told(call):
        report.sections.append(("uncork results", "\n\n".join(map(_story, runs))))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the stored runs, and the expectations that the evidence did not decide."""
    lines = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") != "call":
                continue
            for name, value in report.user_properties:
                if name == _RUN:
                    lines.append(f"{report.nodeid}: uncork report {value}")
                elif name == _UNDECIDED:
                    lines.append(f"{report.nodeid}: the evidence does not decide {value} yet")
    if lines:
        place = re.sub(r"://[^/@]*@", "://***@", _runs_folder(terminalreporter.config))
        terminalreporter.section(f"uncork: runs are kept in {place}", "-")
        for line in lines:
            terminalreporter.write_line(line)


def _told(call: pytest.CallInfo[None]) -> bool:
    from uncork.errors import ExpectationError  # noqa: PLC0415 -- as above

    return call.excinfo is not None and call.excinfo.errisinstance(ExpectationError)


def _story(run: Run) -> str:
    from uncork.api.runs import ExperimentRun  # noqa: PLC0415 -- as above
    from uncork.api.verdicts import explained  # noqa: PLC0415

    lines = [f"{run.id}: {run.answer}"]
    if isinstance(run, ExperimentRun):
        lines += explained(run.result, run.comparisons)
    return "\n".join([*lines, f"full report: uncork report {run.id}"])
