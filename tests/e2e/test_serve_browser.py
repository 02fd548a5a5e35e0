"""The dashboard in a browser: every page, by mouse and by keyboard, wide and narrow, in light and dark."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from bench.servers.hello_server import hello_server

from fakes.dashboards import (
    EXPERIMENT,
    copy_run,
    dashboard,
    make_experiment,
    make_load,
)
from uncork.engines import process
from uncork.store.catalogue import set_tag
from uncork.store.layout import name_run

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    runs = folder / "runs"
    load = make_load(runs)
    experiment = make_experiment(runs, folder)
    for number in range(130):
        copy_run(load, number, question=f"load of shop-{number:03}")
    copy_run(experiment, 500, status="failed", id="older-20200101-100000", case="cluster-names")
    gone = {"status": "running", "owner": {**process.identity(os.getpid()), "pid": 2**22 + 1}}
    shutil.rmtree(copy_run(load, 600, id="gone-20200101-100000", **gone) / "load_totals")
    set_tag(load, "nightly", present=True)
    name_run(runs, experiment.name, "baseline")
    broken = runs / "broken-20200101-100000"
    broken.mkdir()
    (broken / "manifest.json").write_text("{")
    return runs


@pytest.fixture(scope="module")
def served(root):
    with dashboard(root) as found:
        yield found


@pytest.fixture
def visit(chromium, served):
    """Open pages; what the console says, or is asked of another host, or answered with an error, fails."""
    contexts, complaints = [], []

    def opened(path="/", width=1280, scheme="light", **options):
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce", **options
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: asked(request.url))
        page.on(
            "response", lambda answer: answer.status < 400 or complaints.append((answer.status, answer.url))
        )
        page.goto(served.address.rstrip("/") + path)
        drawn(page)
        return page

    def asked(url):
        if not url.startswith((served.address, "data:")):
            complaints.append(url)

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def drawn(page):
    """Wait for a page that says it takes long; it loads again by itself."""
    waiting = "The page is being drawn."
    page.wait_for_function(f"document.querySelector('h1').innerText !== '{waiting}'", timeout=120_000)


def follow(page, link):
    """Click, and wait until the next page is there: a click alone returns before it has a body."""
    with page.expect_navigation():
        link.click()
    drawn(page)


def ids(page):
    return page.locator("table.runs tbody th .id").all_inner_texts()


def forget(served, made):
    """Remove a run, and wait until the list, which may be old, knows: other tests count what is stored."""
    shutil.rmtree(made)
    until = time.monotonic() + 30
    while True:
        with urllib.request.urlopen(f"{served.address}?q={made.name}", timeout=30) as answer:
            if f"/runs/{made.name}" not in answer.read().decode():
                return
        assert time.monotonic() < until
        time.sleep(0.2)


def last(root, kind):
    return max(path.name for path in root.glob(f"{kind}-*"))


def test_the_list_says_at_once_what_there_is_and_what_is_damaged(visit, root):
    page = visit()
    assert re.match(r"134 runs are stored; the newest started .* ago\.", page.locator("h1").inner_text())
    assert page.locator("details.damaged summary").inner_text() == "1 folder cannot be read and is skipped"
    page.locator("details.damaged summary").click()
    assert "broken-20200101-100000" in page.locator("details.damaged").inner_text()
    assert len(ids(page)) == 100 and ids(page)[0] == last(root, "lookup")
    follow(page, page.get_by_role("link", name="Older"))
    assert len(ids(page)) == 34
    assert page.locator("tr", has_text="gone-20200101-100000").locator(".status").inner_text() == "killed"


def test_filters_choose_without_loading_the_page_and_can_be_shared(visit):
    page = visit()
    page.evaluate("window.same = true")
    page.get_by_label("Search").fill("SHOP-07")
    page.get_by_text("10 of 134 runs.").wait_for()
    page.get_by_label("Status").select_option("complete")
    assert page.evaluate("window.same") and "q=SHOP-07" in page.url
    shared = visit("/?" + page.url.partition("?")[2])
    assert ids(shared) == ids(page) and len(ids(page)) == 10
    page.get_by_role("link", name="Clear").click()
    page.get_by_label("Tag").select_option("nightly")
    page.get_by_text("1 of 134 runs.").wait_for()
    page.get_by_label("Search").fill("no such thing")
    page.get_by_text("No run matches.").wait_for()


def test_filters_work_without_scripts(visit):
    page = visit(java_script_enabled=False)
    page.get_by_label("Status").select_option("failed")
    follow(page, page.get_by_role("button", name="Filter"))
    assert ids(page) == ["older-20200101-100000"]


@pytest.mark.thorough
def test_the_list_follows_what_is_stored_and_keeps_what_was_chosen(visit, root, served):
    page = visit("/?q=lookup")
    assert len(ids(page)) == 2
    page.get_by_role("checkbox").first.check()
    chosen = page.get_by_role("checkbox").first.get_attribute("value")
    made = copy_run(root / chosen, 700, id="lookup-20190101-100000")
    try:
        page.get_by_text("3 of 135 runs.").wait_for(timeout=20_000)
        assert page.locator("input:checked").evaluate_all("found => found.map(one => one.value)") == [chosen]
    finally:
        forget(served, made)


@pytest.mark.parametrize("kind", ["load", "lookup"])
def test_a_report_is_shown_with_the_way_back(visit, root, kind):
    page = visit()
    follow(page, page.locator(f'th a[href="/runs/{last(root, kind)}"]'))
    assert page.locator("svg.chart").count() >= 1
    assert len(page.locator("h1").inner_text()) > 30
    follow(page, page.get_by_role("link", name="All runs"))
    assert page.url.endswith("/")


def test_runs_are_compared_from_the_list(visit):
    page = visit("/?q=lookup")
    for number in (1, 0):
        page.get_by_role("checkbox").nth(number).check()
    follow(page, page.get_by_role("button", name="Compare selected runs"))
    assert "/compare?run=" in page.url
    assert len(page.locator("h1").inner_text()) > 30
    assert page.locator("main table").count() > 1
    follow(page, page.get_by_role("link", name="All runs"))


def test_a_tag_is_set_and_taken_away_by_keyboard(visit, root):
    page = visit(f"/runs/{last(root, 'lookup')}/details")
    page.get_by_label("New tag").focus()
    page.keyboard.type("release-7")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Remove the tag release-7").wait_for()
    assert (root / last(root, "lookup") / "tag.release-7").is_file()
    page.get_by_role("button", name="Remove the tag release-7").press("Enter")
    page.get_by_role("button", name="Remove the tag release-7").wait_for(state="detached")
    assert not (root / last(root, "lookup") / "tag.release-7").exists()


def test_runs_side_by_side_are_drawn_over_time_and_their_charts_are_had(visit, root):
    loads = sorted(path.name for path in root.glob("load-*"))[-3:]
    page = visit("/compare?" + "&".join(f"run={name}" for name in loads))
    assert page.locator("#over-time svg.chart").count() >= 2
    assert page.locator("#glance tbody tr").count() > 3
    assert page.locator("#costs svg.chart").count() >= 1
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Throughput over time as PNG, dark").click()
    assert waiting.value.path().read_bytes().startswith(b"\x89PNG")


def test_a_single_run_is_compared_with_the_baseline(visit, root):
    older = "older-20200101-100000"
    page = visit(f"/compare?run={older}")
    assert last(root, "lookup") in page.title()
    assert older in page.title()
    assert page.locator("h1").inner_text().startswith("Not enough evidence of a difference from baseline")


def test_a_history_is_found_from_a_run_and_from_the_top(visit, root):
    page = visit(f"/runs/{last(root, 'load')}")
    follow(page, page.get_by_role("link", name="History"))
    assert "metrics have a history" in page.locator("h1").inner_text()
    follow(page, page.get_by_role("link", name="throughput", exact=True))
    assert page.locator("h1").inner_text().startswith("throughput ")
    assert page.locator("#chart svg.chart").count() == 1 and page.locator("#runs tbody tr").count() > 100
    follow(page, page.get_by_role("link", name="Histories"))
    assert "series of comparable runs" in page.locator("h1").inner_text()
    follow(page, page.locator("tbody th a").first)
    assert page.locator("tbody th a").count() > 3


def test_charts_and_tables_are_had_as_files(visit, root):
    page = visit(f"/runs/{last(root, 'lookup')}/details")
    for form, begins in (("SVG", b"<svg"), ("PNG", b"\x89PNG"), ("CSV", b"")):
        with page.expect_download() as waiting:
            page.locator("#exports").get_by_role("link", name=re.compile(f"as {form}$")).first.click()
        data = waiting.value.path().read_bytes()
        assert data.startswith(begins) and len(data) > 40
        assert waiting.value.suggested_filename.endswith(form.lower())
        assert b"var(--" not in data
    for name in ("Markdown", "JSON"):
        with page.expect_download() as waiting:
            page.get_by_role("link", name=name, exact=True).click()
        assert waiting.value.path().stat().st_size > 500


def test_a_case_tells_its_question_figures_commands_and_latest_run(visit):
    page = visit("/cases")
    follow(page, page.get_by_role("link", name="cluster-names", exact=True))
    text = page.locator("main").inner_text()
    assert "uncork case run cluster-names --full" in text and "older-20200101-100000" in text
    assert "11 399 657" in text.replace("\N{NARROW NO-BREAK SPACE}", " ")
    assert " scan (" in page.locator("h1").inner_text()


def test_what_is_not_there_says_where_to_go(chromium, served):
    page = chromium.new_page()
    for path in ("/runs/none", "/cases/none", "/none", "/compare?run=none"):
        assert page.goto(served.address.rstrip("/") + path).status in (400, 404)
        assert page.locator("main a").count() >= 1
    assert page.goto(f"{served.address}runs/gone-20200101-100000").status == 422
    assert "killed before its end" in page.locator("main").inner_text()
    page.close()


def test_a_run_in_progress_is_followed_until_it_ends(visit, root, served, tmp_path):
    path = tmp_path / "lookup.toml"
    slow = EXPERIMENT.replace('"20s"', '"60s"').replace('"50%"', '"0.01%"').replace('"lookup"', '"slow"')
    slow = slow.replace("[stop]", "[stop]\nminimum_rounds = 40", 1)  # decided or not, it goes on
    path.write_text(slow)
    command = [sys.executable, "-m", "uncork", "run", str(path), "--runs", str(root)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while not list(root.glob("slow-*/trials/*.parquet")) and time.monotonic() < until:
            time.sleep(0.1)
        page = visit("/?status=running")
        follow(page, page.get_by_role("link", name="slow", exact=True))
        assert page.url.endswith("/live")
        assert page.locator("h1").inner_text().startswith("slow has been running since")
        first = page.locator(".sentence").inner_text()
        page.wait_for_function(
            "before => document.querySelector('.sentence').innerText !== before", arg=first
        )
        assert re.match(r"\d+ trials stored, in \d+ rounds?\.", page.locator(".sentence").inner_text())
        assert page.locator("#progress tbody tr").count() == 3
        process.send_signal(signal.SIGINT)
        page.get_by_role("link", name="Read the report").click(timeout=30_000)
        assert page.locator("svg.chart").count() > 1
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
        for made in root.glob("slow-*"):
            forget(served, made)


def test_a_load_is_followed_second_by_second_and_keeps_what_it_told_if_it_is_killed(chromium, tmp_path):
    with hello_server() as address, dashboard(tmp_path) as served:
        command = [sys.executable, "-m", "uncork", "load", "http", "-c", "2", "-D", "60", address]
        process = subprocess.Popen([*command, "--runs", str(tmp_path)], stderr=subprocess.DEVNULL)
        page = chromium.new_page()
        try:
            until = time.monotonic() + 60
            while not list(tmp_path.glob("load-*/glances.jsonl")) and time.monotonic() < until:
                time.sleep(0.1)
            page.goto(served.address)
            follow(page, page.get_by_role("link", name=re.compile("^load of ")))
            assert page.url.endswith("/live")
            first = page.locator(".sentence").inner_text()
            assert re.search(r" of 60.0 s: .* operations a second now, 99 % under .*; none failed", first)
            page.wait_for_function(
                "before => document.querySelector('.sentence').innerText !== before", arg=first
            )
            assert page.locator("#progress .spark svg").count() == 2
        finally:
            process.kill()
            process.wait(timeout=60)
        page.get_by_role("link", name="Read the report").click(timeout=30_000)
        assert "was killed before it finished; this is what it had stored" in page.locator("h1").inner_text()
        assert page.locator("#progress tbody tr").count() >= 2
        page.close()


def named(root):
    *_, other, load = sorted(path.name for path in root.glob("load-*"))
    return {"lookup": last(root, "lookup"), "load": load, "other": other}


PAGES = [
    "/",
    "/cases",
    "/cases/clair",
    "/runs/{lookup}",
    "/runs/{load}",
    "/runs/{lookup}/details",
    "/history",
    "/history?like={load}",
    "/history?like={load}&metric=mean",
    "/compare?run={load}&run={other}",
]


@pytest.mark.parametrize("path", PAGES)
def test_no_page_scrolls_sideways_on_a_telephone(visit, root, path):
    page = visit(path.format(**named(root)), width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("path", PAGES)
def test_light_and_dark_differ_and_the_choice_stays(visit, root, path):
    address = path.format(**named(root))
    ground = "getComputedStyle(document.body).backgroundColor"
    page, dark = visit(address), visit(address, scheme="dark")
    before = page.evaluate(ground)
    assert dark.evaluate(ground) != before
    page.get_by_role("button", name="Dark theme").click()
    assert page.evaluate(ground) == dark.evaluate(ground)
    page.reload()
    assert page.evaluate(ground) == dark.evaluate(ground)


def test_every_page_is_reached_by_keyboard_alone(visit, root):
    page = visit("/?q=lookup")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    seen = []
    while f"/runs/{last(root, 'lookup')}" not in seen:
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.getAttribute('href') || ''"))
        assert len(seen) < 40
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{last(root, 'lookup')}")


AUDIT = (Path(__file__).parents[1] / "fixtures" / "audit.js").read_text()
"""What a reader who hears the page, or sees badly, would stumble over."""


@pytest.mark.parametrize("path", PAGES)
def test_a_reader_who_hears_the_page_or_sees_badly_can_use_it(visit, root, path):
    page = visit(path.format(**named(root)))
    assert page.evaluate(AUDIT) == []
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(AUDIT) == []
    assert page.locator("h1").count() == 1 and page.locator("main").count() == 1
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.locator("a.skip").count() == 1
