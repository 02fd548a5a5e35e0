"""Pages that take long go on being drawn; who asks again gets them."""

import asyncio
import time

import pytest

pytest.importorskip("starlette")

from fakes.stored_loads import store_load
from uncork.analysis.runs.listing import read_runs
from uncork.errors import StoreError
from uncork.serve import report_cache as drawing
from uncork.serve.report_cache import HistoryWanted, ReportCache, StillDrawingError


@pytest.fixture
def run(tmp_path):
    store_load(tmp_path, 1)
    return read_runs(tmp_path).runs[0]


def test_who_waits_long_is_told_so_and_gets_the_page_later(run, monkeypatch):
    real, began = drawing.run_document, []

    def slow(folder):
        began.append(folder)
        time.sleep(0.3)
        return real(folder)

    monkeypatch.setattr(drawing, "run_document", slow)
    monkeypatch.setattr(drawing, "_PATIENCE_S", 0.05)

    async def asked():
        studio = ReportCache()
        for _ in range(2):
            with pytest.raises(StillDrawingError):
                await studio.report(run)
        monkeypatch.setattr(drawing, "_PATIENCE_S", 30.0)
        return (await studio.report(run)).html

    assert "<h1" in asyncio.run(asked())
    assert len(began) == 1


def test_what_goes_wrong_after_all_have_left_is_told_to_who_asks_again(run, monkeypatch):
    def broken(folder):
        time.sleep(0.1)
        raise StoreError("damaged")

    monkeypatch.setattr(drawing, "run_document", broken)
    monkeypatch.setattr(drawing, "_PATIENCE_S", 0.02)

    async def asked():
        studio = ReportCache()
        with pytest.raises(StillDrawingError):
            await studio.report(run)
        await asyncio.sleep(0.2)
        monkeypatch.setattr(drawing, "_PATIENCE_S", 30.0)
        with pytest.raises(StoreError, match="damaged"):
            await studio.report(run)

    asyncio.run(asked())


def test_a_history_is_drawn_anew_when_runs_have_changed(run, tmp_path):
    async def asked():
        studio, wanted = ReportCache(), HistoryWanted("throughput", "", run.id)
        first = await studio.history(tmp_path, wanted, _manifests(tmp_path), "1")
        store_load(tmp_path, 2)
        again = await studio.history(tmp_path, wanted, _manifests(tmp_path), "1")
        after = await studio.history(tmp_path, wanted, _manifests(tmp_path), "2")
        return first, again, after

    first, again, after = asyncio.run(asked())
    assert again is first and "There is 1 run" in first.html and "There are 2 runs" in after.html
    assert f"/history/exports/1.csv?like={run.id}&amp;metric=throughput" in after.html


def _manifests(root):
    return tuple(one.manifest for one in read_runs(root).catalogue.runs)
