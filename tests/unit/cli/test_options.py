"""The options that several verbs share: how they are read, and what they refuse."""

from datetime import timedelta

import pytest

from uncork.errors import UsageError
from uncork.requests.experiment_options import CostOptions, DoctorOptions, RunOptions
from uncork.requests.guard_options import GuardOptions
from uncork.requests.http_options import HttpOptions
from uncork.requests.option import from_values, from_words
from uncork.requests.profile_options import CpuOptions, DatabaseOptions, LogOptions
from uncork.requests.service_options import ServiceOptions
from uncork.requests.source import changes_of
from uncork.requests.sql_options import SqlOptions
from uncork.workbench.experiment.session import choose_server


def changes(options: RunOptions):
    return changes_of(options.sets, options.workloads, options.budget, options.precision, options.seed)


def test_levels_are_collected_by_factor():
    words = {
        "sets": ["rows=10,20", "index=none", "rows=30"],
        "budget": "2min",
        "precision": "5%",
        "seed": "7",
    }
    read = changes(from_words(RunOptions, words))
    assert read.levels == {"rows": ["10", "20", "30"], "index": ["none"]}
    assert (read.budget_ns, read.precision, read.seed) == (120 * 10**9, 0.05, 7)


def test_python_values_become_the_same_options_as_words():
    values = {"sets": {"rows": [10, 20], "index": "none"}, "budget": timedelta(minutes=2), "precision": "5%"}
    words = {"sets": ["rows=10,20", "index=none"], "budget": "2min", "precision": "5%"}
    assert from_values(RunOptions, values) == from_words(RunOptions, words)


@pytest.mark.parametrize(("words", "message"), [
    ({"sets": ["rows"]}, "--set rows: write FACTOR=LEVEL"),
    ({"sets": ["rows="]}, "--set rows=: write FACTOR=LEVEL"),
    ({"budget": "soon"}, "--budget: expected a time with a unit"),
    ({"budget": "5 parsecs"}, "--budget: expected a time with a unit"),
    ({"budget": "0s"}, "--budget must be above 0; found 0s"),
    ({"precision": "3"}, "--precision: expected a percentage"),
    ({"precision": "0%"}, "--precision must be above 0% and below 100%; found 0%"),
    ({"precision": "300%"}, "--precision must be above 0% and below 100%; found 300%"),
    ({"seed": "-1"}, "--seed must be in range 0"),
    ({"port": "80"}, "--port must be in range 1024..65535; found 80"),
])  # fmt: skip
def test_options_that_make_no_sense_are_refused(words, message):
    with pytest.raises(UsageError, match=message):
        from_words(RunOptions, words)


def test_an_existing_server_and_one_of_our_own_exclude_each_other(tmp_path):
    with pytest.raises(UsageError, match="leave out --pg-bin and --port"):
        choose_server("service=x", tmp_path, None)
    with pytest.raises(UsageError, match="leave out --pg-bin and --port"):
        choose_server("service=x", None, 5555)
    assert choose_server("", None, None).dsn == "", (
        "an empty string means the environment: PGHOST and the like"
    )


@pytest.mark.parametrize(("options", "field", "scale"), [
    (RunOptions, "budget", 10**9),
    (GuardOptions, "budget", 10**9),
    (DoctorOptions, "budget", 10**9),
    (DatabaseOptions, "lasting", 10**9),
    (CpuOptions, "lasting", 10**9),
    (ServiceOptions, "lasting", 10**9),
    (HttpOptions, "duration", 10**9),
    (HttpOptions, "budget", 10**9),
    (HttpOptions, "latency_limit", 10**6),
    (SqlOptions, "time", 10**9),
    (SqlOptions, "latency_limit", 10**6),
])  # fmt: skip
def test_every_verb_takes_a_time_with_and_without_a_unit(options, field, scale):
    for text, expected_ns in (
        ("10", 10 * scale),
        ("1.5", 1.5 * scale),
        ("10s", 10**10),
        ("2min", 120 * 10**9),
    ):
        assert getattr(from_words(options, {field: text, "file": "x"}), field) == expected_ns
    with pytest.raises(UsageError):
        from_words(options, {field: "soon", "file": "x"})


def test_the_overhead_of_observers_takes_a_time_without_a_unit_too():
    assert from_words(CostOptions, {"budget": "90"}).budget == "90s"


def test_a_time_to_last_is_above_zero(tmp_path):
    assert from_words(LogOptions, {"files": [tmp_path], "lasting": "1.5min"}).lasting == 90 * 10**9
    with pytest.raises(UsageError, match="--for must be above 0"):
        from_words(LogOptions, {"files": [tmp_path], "lasting": "0s"})
