"""What the list of runs shows of each: its name, and what it found."""

import asyncio
import json
from dataclasses import replace

import pytest

pytest.importorskip("starlette")

from fakes.stored_loads import store_load
from uncork.analysis.runs.listing import read_runs
from uncork.report.runs.titles import run_title
from uncork.serve.app_context import read_headlines
from uncork.serve.report_cache import ValueCache


@pytest.fixture
def run(tmp_path):
    store_load(tmp_path, 1)
    return read_runs(tmp_path).runs[0]


def store_answer(run, text):
    (run.folder / "result.json").write_text(json.dumps({"run": {"id": "x"}, "answer": text}, indent=1))


def test_the_result_is_the_headline_and_is_read_once_per_change(run):
    store_answer(run, 'It handled "a. b" 5 times. Then more.')

    async def asked():
        cache = ValueCache(read_headlines)
        first = await cache.of([run])
        store_answer(run, "It changed.")
        kept = await cache.of([run])
        return first, kept, await cache.of([replace(run, stamp="newer")])

    first, kept, newer = asyncio.run(asked())
    assert first == kept == {run.id: 'It handled "a. b" 5 times.'}
    assert newer == {run.id: "It changed."}


@pytest.mark.parametrize(
    "text", [None, "", "{", '{\n "answer": 7\n}', '{\n "other": {\n  "answer": "no"\n }\n}']
)
def test_a_run_without_a_readable_result_has_none(run, text):
    (run.folder / "result.json").unlink(missing_ok=True)
    if text is not None:
        (run.folder / "result.json").write_text(text)
    assert read_headlines([run]) == {run.id: ""}


@pytest.mark.parametrize(("kind", "name", "question", "title"), [
    ("load", "load-orders", "load: orders.sql by 4 clients, simple", "load of orders.sql by 4 clients"),
    ("load", "load-x", "load: http://h:1 by 4 connections", "load of http://h:1 by 4 connections"),
    ("sweep", "sweep-x", "sweep of clients: tpcb-like", "sweep of tpcb-like over clients"),
    ("database", "database-shop", "database: shop, 20 samples a second", "database shop"),
    ("cpu", "cpu-shop", "stacks: ada@db:5432/shop", "CPU of ada@db:5432/shop"),
    ("log", "log-a", "log: a.log, b.log", "log a.log, b.log"),
    ("experiment", "cluster-names", "Which type?", "cluster-names"),
    ("experiment", "guard-orders", "Is it as fast?", "guard of orders"),
    ("cure", "cure-shop", "cure: ada@db:5432/shop", "cure of ada@db:5432/shop"),
    ("import", "import-wrk", "wrk: checkout", "wrk: checkout"),
    ("load", "load-old", "another form", "load-old"),
])  # fmt: skip
def test_a_run_is_called_as_a_person_would(run, kind, name, question, title):
    called = replace(run, kind=kind, name=name, question=question, names=())
    assert run_title(called) == title
    assert run_title(replace(called, names=("before",))) == "before"
