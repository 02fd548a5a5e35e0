"""What callers write, and what they are told when it is wrong."""

from datetime import timedelta
from pathlib import Path

import pytest

import uncork
from fakes.stored_loads import store_load
from uncork.api import words
from uncork.errors import SpecError, UsageError
from uncork.requests.experiment_options import RunOptions
from uncork.requests.option import from_values, quantity_ns
from uncork.requests.sql_options import SqlOptions
from uncork.workbench.publishing import unsent


def test_times_are_texts_with_units_or_timedeltas():
    assert quantity_ns("1.5s", "time") == 1_500_000_000
    assert quantity_ns(timedelta(minutes=2, microseconds=1), "time") == 120_000_001_000
    assert from_values(SqlOptions, {"latency_limit": "20ms"}).latency_limit == 20_000_000
    assert from_values(SqlOptions, {"time": None}).time is None


@pytest.mark.parametrize("wrong", [5, 5.0, "5", "soon"])
def test_a_time_without_a_unit_is_refused_by_the_name_of_its_word(wrong):
    with pytest.raises(UsageError, match=r"^time(=5|:).* with (its|a) unit"):
        from_values(SqlOptions, {"time": wrong})


def test_levels_are_one_or_many_of_any_type():
    sets = {"rows": [1000, 10_000], "index": "none", "clients": 4, "sizes": range(2)}
    assert dict(from_values(RunOptions, {"sets": sets}).sets) == {
        "rows": ("1000", "10000"),
        "index": ("none",),
        "clients": ("4",),
        "sizes": ("0", "1"),
    }
    with pytest.raises(UsageError, match='no level is left of "rows"'):
        from_values(RunOptions, {"sets": {"rows": []}})


@pytest.mark.parametrize(("message", "told"), [
    ("--budget: expected a time", "budget: expected a time"),
    ("-c/--client must be in range", "clients must be in range"),
    ("-m/--max-concurrent-streams must be", "streams must be"),
    ("--dsn names a server: leave out --pg-bin and --port",
     "dsn names a server: leave out pg_bin and port"),
    ("a -- b, well--known, x---y", "a -- b, well--known, x---y"),
])  # fmt: skip
def test_messages_name_keywords_instead_of_options(message, told):
    with pytest.raises(UsageError) as caught, words.calling():
        raise UsageError(message)
    assert str(caught.value) == told


def test_messages_about_files_stay_as_they_are():
    with pytest.raises(SpecError, match="-- a comment --set"), words.calling():
        raise SpecError("x.toml:3: -- a comment --set")


@pytest.mark.parametrize("secret", [
    {"dsn": "postgresql://me:hush@db/x"},
    {"dsn": "host=db password=hush"},
    {"header": {"Authorization": "Bearer hush"}},
    {"define": ["password=hush"]},
])  # fmt: skip
def test_the_call_that_repeats_a_request_holds_no_secret(secret):
    assert "hush" not in words.call_text("load_sql", secret)


def test_the_call_that_repeats_a_request_is_python():
    told = words.call_text(
        "load_sql",
        {"clients": 4, "script": Path("a.sql"), "rate": None, "h2": False},
        ("postgres://me:x@h/d",),
    )
    assert told == "uncork.load_sql('postgres://me:***@h/d', clients=4, script='a.sql')"


def test_progress_is_heard_by_a_function_or_told_on_standard_error_or_by_nobody(capsys):
    heard = []
    words.teller(heard.append)("a")
    words.teller(True)("b")
    words.teller(False)("c")
    words.teller(None)("d")  # standard error is no terminal here
    assert heard == ["a"]
    assert capsys.readouterr() == ("", "uncork: b\n")


def test_runs_are_stored_as_told_else_where_the_command_line_stores_them(monkeypatch):
    monkeypatch.setenv("UNCORK_RUNS", "/some/where")
    assert words.runs_folder("here") == Path("here")
    assert words.runs_folder(None) == Path("/some/where")
    monkeypatch.delenv("UNCORK_RUNS")
    assert words.runs_folder(None) == Path(".uncork/runs")


@pytest.mark.usefixtures("nothing_in_memory")
def test_runs_may_be_kept_at_an_address_and_are_sent_when_a_verb_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("UNCORK_CACHE", str(tmp_path / "cache"))
    address = "memory://bench/team"
    with words.calling():
        root = words.runs_folder(address)
        assert root.is_relative_to(tmp_path / "cache")
        store_load(root, 1)
    other = words.runs_folder(address)
    assert [run.kind for run in uncork.runs(runs=address)] == ["load"]
    assert unsent(other) == 0


def test_a_kind_or_status_that_no_run_can_have_is_refused(tmp_path):
    with pytest.raises(UsageError, match='kind "laod": there is no such kind; did you mean "load"'):
        uncork.runs(kind="laod", runs=tmp_path)
    with pytest.raises(UsageError, match='status "gone": there is no such status; expected one of complete'):
        uncork.runs(status="gone", runs=tmp_path)
