"""pytest's fixture `uncork`, in test sessions of its own, found through an entry point as if installed."""

from __future__ import annotations

import json
import os
import textwrap
import xml.etree.ElementTree as ET
from datetime import datetime, timedelta
from pathlib import Path

import pytest

import uncork
from uncork.engines.places import cache_folder

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.xdist_group("pytest plugin")

PACKAGE = Path(__file__).parents[2] / "python"
CACHE = cache_folder()

EXPERIMENT = '''
[experiment]
name = "planted"
question = "Does a look-up stay fast?"

[variants.key]
baseline = true
values = { condition = "id = :id", pause = "0.001" }

[variants.same]
values = { condition = ":id = id", pause = "0.001" }

[variants.scan]
values = { condition = "id + 0 = :id", pause = "0.006" }

[setup]
sql = """
CREATE TABLE t (id int PRIMARY KEY, f text);
INSERT INTO t SELECT n, 'x' FROM generate_series(1, 30000) AS n
"""

[workloads.get]
sql = "SELECT f, pg_sleep(:pause) FROM t WHERE :condition"
operations = 15
state = "keep"
parameters.id = { generator = { kind = "uniform", min = 1, max = 30000 } }

[server.settings]
shared_buffers = "32MB"

[stop]
blocks = 2
practical = "90%"
precision = "40%"
budget = "100s"
'''


@pytest.fixture(scope="module")
def entry_point(tmp_path_factory):
    """Return a folder in which the plugin is installed as pip would tell it."""
    folder = tmp_path_factory.mktemp("site")
    told = folder / "uncork_of_the_tests-0.dist-info"
    told.mkdir()
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: uncork-of-the-tests\nVersion: 0\n")
    (told / "entry_points.txt").write_text("[pytest11]\nuncork = uncork.api.pytest_plugin\n")
    return folder


@pytest.fixture
def session(pytester, entry_point, monkeypatch):
    """Return what runs pytest on a file of tests, in a process of its own."""
    path = os.pathsep.join([str(entry_point), str(PACKAGE), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("UNCORK_CACHE", str(CACHE))
    monkeypatch.delenv("UNCORK_RUNS")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.delenv("CI", raising=False)

    def run(tests, *options):
        pytester.makepyfile(test_it=textwrap.dedent(tests))
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:randomly", *options)

    return run


TOO_FEW = EXPERIMENT + "minimum_rounds = 3\nmaximum_rounds = 3\n"


@pytest.fixture(scope="module")
def undecided(tmp_path_factory):
    """Return the folder of a run that is too short for any verdict."""
    folder = tmp_path_factory.mktemp("runs")
    uncork.run(TOO_FEW, runs=folder)
    return folder


@pytest.mark.postgres
def test_a_planted_slow_variant_is_caught_an_equal_one_passes_and_too_little_is_no_verdict(session, pytester):
    stored = pytester.path / "stored"
    pytester.path.joinpath("planted.toml").write_text(EXPERIMENT)
    done = session(
        """
        import pytest

        def test_planted(uncork):
            found = uncork.run("planted.toml")
            uncork.expect(found, "same=not-slower")
            assert found["same"].not_slower and found["scan"].slower
            uncork.expect(found, "same=not-slower", "scan=not-slower")

        @pytest.mark.uncork(workloads=["get"], budget="90s")
        def test_too_little(uncork):
            found = uncork.run(open("planted.toml").read() + "minimum_rounds = 3\\nmaximum_rounds = 3")
            assert found["scan"].undecided
            assert found["scan"].not_slower
        """,
        f"--uncork-runs={stored}",
        "--junit-xml=tests.xml",
        "-m",
        "uncork",
        "--strict-markers",
    )
    done.assert_outcomes(failed=2)
    text = done.stdout.str()
    assert "expected scan=not-slower: it is not" in text
    assert "scan on get: slower, " in text
    assert "    +Seq Scan on t" in text
    assert "expected same" not in text
    assert "runs.py" not in text  # the failure is told where the test stands, not within uncork
    assert "uncork results" in text
    assert "scan on get: not enough evidence" in text
    runs = sorted(path.name for path in stored.glob("planted-*"))
    assert len(runs) == 2
    done.stdout.fnmatch_lines([f"*uncork: runs are kept in {stored}*"])
    for id in runs:
        assert f"uncork report {id}" in text
    told = [
        {one.get("name"): one.get("value") for one in case.iter("property")}
        for case in ET.parse(pytester.path / "tests.xml").iter("testcase")
    ]
    assert sorted(one["uncork_run"] for one in told) == runs
    assert all(one["uncork_answer"] for one in told)
    options = [json.loads((stored / id / "manifest.json").read_text())["options"] for id in runs]
    assert {one["budget_ns"] for one in options} == {None, 90 * 10**9}


EACH_OUTCOME = """
    import pytest
    from uncork import runs

    HOWS = ("fail", "skip", "xfail", "pass")
    BY_MARKER = [pytest.param(how, marks=pytest.mark.uncork(undecided=how)) for how in HOWS]

    @pytest.mark.parametrize("how", ["default", *BY_MARKER])
    def test_it(uncork, how):
        (found,) = runs(runs={runs!r})
        uncork.expect(found, "scan=not-slower")
    """


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("option", "setting", "default"),
    [
        (None, None, "failed"),
        (None, "skip", "skipped"),
        ("xfail", "skip", "xfailed"),
        ("pass", None, "passed"),
    ],
)
def test_the_outcome_of_an_undecided_test_is_the_markers_else_the_options_else_the_settings(
    session, pytester, undecided, option, setting, default
):
    if setting is not None:
        pytester.makeini(f"[pytest]\nuncork_undecided = {setting}\n")
    options = () if option is None else (f"--uncork-undecided={option}",)
    done = session(EACH_OUTCOME.format(runs=str(undecided)), *options, "-rsx")
    by_marker = dict.fromkeys(("failed", "skipped", "xfailed", "passed"), 1)
    done.assert_outcomes(**by_marker | {default: 2})
    text = done.stdout.str()
    assert text.count("expected scan=not-slower: the evidence does not decide") >= 3
    assert text.count(": the evidence does not decide scan=not-slower yet") == 5


def test_an_unknown_outcome_of_undecided_tests_is_refused_before_anything_runs(session, pytester):
    pytester.makeini("[pytest]\nuncork_undecided = ignore\n")
    done = session("def test_it(): pass")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(['*uncork_undecided*expected fail, skip, xfail, pass; found "ignore"*'])


@pytest.mark.thorough
@pytest.mark.postgres
def test_under_xdist_only_one_test_measures_at_a_time(session, pytester):
    done = session(
        """
        import pytest

        @pytest.mark.parametrize("number", [1, 2])
        def test_it(uncork, number):
            assert uncork.load_sql(embedded=True, script="SELECT 1;", time="1s", no_vacuum=True).ok
        """,
        "-n2",
    )
    done.assert_outcomes(passed=2)
    spans = []
    for path in pytester.path.glob(".uncork/runs/*/manifest.json"):
        told = json.loads(path.read_text())
        begun = datetime.fromisoformat(told["started_at"])
        spans.append((begun, begun + timedelta(seconds=1)))
    assert len(spans) == 2
    (_, first), (second, _) = sorted(spans)
    assert second >= first


def test_a_wrong_word_is_told_at_the_call(session):
    done = session(
        """
        def test_budget(uncork):
            uncork.run("[experiment]\\n", budget="5")

        def test_file(uncork):
            uncork.run("nope.toml")
        """
    )
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(["*UsageError: budget: expected a time with a unit*"])
    done.stdout.fnmatch_lines(["*UsageError: cannot read nope.toml*"])
    done.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_without_the_plugin_there_is_no_fixture_and_other_tests_go_on(session):
    tests = """
        def test_other():
            pass

        def test_ours(uncork):
            pass
        """
    session(tests, "-p", "no:uncork").assert_outcomes(passed=1, errors=1)
    session(tests, "-m", "not uncork").assert_outcomes(passed=1, deselected=1)


def test_it_costs_a_session_that_does_not_measure_nothing_of_uncork(session):
    done = session(
        """
        import sys

        def test_it():
            ours = {name for name in sys.modules if name.startswith("uncork")}
            assert ours == {"uncork", "uncork.api", "uncork.api.pytest_plugin"}
            assert not {"duckdb", "pyarrow", "numpy", "psycopg"} & set(sys.modules)
        """
    )
    done.assert_outcomes(passed=1)


def test_the_options_and_the_marker_are_in_the_help(session):
    done = session("", "--help")
    done.stdout.fnmatch_lines(
        ["*--uncork-budget*", "*--uncork-dsn*", "*--uncork-runs*", "*--uncork-undecided*"]
    )
    session("", "--markers").stdout.fnmatch_lines(["@pytest.mark.uncork(*"])
