"""Pages of the dashboard that go on by themselves: what they ask for, and what they leave alone."""

import os
import re
import shutil
import time
from dataclasses import replace

import pytest

from fakes.dashboards import copy_run, dashboard, make_load
from uncork.engines.process import identity
from uncork.store.catalogue import set_tag
from uncork.store.layout import read_manifest, write_manifest
from uncork.store.snapshots import add_snapshot

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser"), pytest.mark.thorough]
LOOK = "document.dispatchEvent(new Event('visibilitychange'))"
"""What a browser says when somebody comes back to a page: it is renewed at once, not after seconds."""
TOLD = ("htmx:sendAbort", "htmx:afterRequest", "htmx:evalDisallowedError")
"""What htmx says of a request that a newer one took the place of, and of text that it does not evaluate."""
GLANCE = {"elapsed_ns": 10**9, "seconds": 1.0, "succeeded": 1000, "failed": 0, "clients": 4}
GLANCE |= {"p50_ns": 10**5, "p99_ns": 10**6, "max_ns": 10**7}


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    return make_load(tmp_path_factory.mktemp("measured"))


def some_runs(load, folder):
    """Four runs of a load; the list has load-3 before load-1."""
    run = folder / "runs" / load.name
    run.parent.mkdir()
    shutil.copytree(load, run)
    for number in (1, 2, 3):
        copy_run(run, number, id=f"load-{number}", question=f"load of shop-{number}")
    return run.parent


@pytest.fixture
def root(load, tmp_path):
    return some_runs(load, tmp_path)


@pytest.fixture(scope="module")
def served(load, tmp_path_factory):
    """Runs that no test changes."""
    with dashboard(some_runs(load, tmp_path_factory.mktemp("served"))) as found:
        yield found


@pytest.fixture
def visit(chromium):
    """Open a page; errors of a script, of the policy or of another host fail the test."""
    contexts, complaints = [], []

    def opened(address, **options):
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.clock.install()
        page.on("console", lambda message: message.text.startswith(TOLD) or complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda request: (
                request.url.startswith((address.partition("?")[0], "data:")) or complaints.append(request.url)
            ),
        )
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def unchanged(page, action=LOOK):
    """Have the rows asked for again; see that they are not sent."""
    with page.expect_response(lambda answer: "/rows?" in answer.url) as waiting:
        page.evaluate(action)
    assert waiting.value.status == 204


def known(served, text):
    """Wait until the dashboard, which reads its folder now and then, knows what is stored."""
    until = time.monotonic() + 30
    while text not in served.ask("/").text:
        assert time.monotonic() < until
        time.sleep(0.1)


# ---- what htmx may do ----


def test_no_text_is_evaluated_no_style_put_in_and_no_other_host_asked(visit, served):
    page = visit(served.address)
    config = page.evaluate("htmx.config")
    assert config["allowEval"] is config["allowScriptTags"] is config["includeIndicatorStyles"] is False
    assert config["selfRequestsOnly"] is True and config["historyCacheSize"] == 0
    page.evaluate(
        """() => {
            window.refused = []
            document.addEventListener('securitypolicyviolation', one => window.refused.push(one.blockedURI))
            const put = document.createElement('div')
            put.innerHTML = `<button id="evil" hx-on:click="window.ran = 1" hx-get="/rows"
                hx-vals="js:{a: window.ran = 2}" hx-trigger="click[window.ran = 3]"></button>`
            document.querySelector('main').append(put)
            htmx.process(put)
            document.getElementById('evil').click()
        }"""
    )
    page.get_by_label("Search").fill("shop-2")
    page.get_by_text("1 of 4 runs.").wait_for()
    assert page.evaluate("window.ran") is None and page.evaluate("window.refused") == []
    assert page.locator("style, [style]").count() == 0
    assert page.evaluate("Object.keys(sessionStorage).filter(one => one.includes('cache'))") == []


def test_another_host_is_not_asked_even_if_told(chromium, served):
    page = chromium.new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(served.address)
    page.evaluate("htmx.ajax('GET', 'http://127.0.0.2:9/evil', '#rows').catch(() => {})")
    page.wait_for_timeout(200)
    assert not [address for address in asked if "evil" in address]
    page.close()


# ---- the list ----


def test_an_answer_that_says_nothing_new_is_empty_and_leaves_the_page_alone(visit, served):
    page = visit(served.address)
    link = page.locator('th a[href="/runs/load-2"]')
    link.focus()
    page.evaluate(
        """() => {
            window.touched = []
            new MutationObserver(all => window.touched.push(...all.map(one => one.type))).observe(
                document.getElementById('rows'), {childList: true, characterData: true, subtree: true})
        }"""
    )
    for _ in range(3):
        unchanged(page)
    with page.expect_response(lambda answer: "/rows?" in answer.url) as waiting:
        page.clock.fast_forward(5_100)
    assert waiting.value.status == 204
    assert page.evaluate("window.touched") == []
    assert page.evaluate("document.activeElement.getAttribute('href')") == "/runs/load-2"


def test_rows_that_are_renewed_stay_the_same_rows(visit, root):
    with dashboard(root) as served:
        page = visit(served.address)
        page.get_by_role("checkbox", name=re.compile("^Select .*, load-1$")).check()
        page.get_by_role("checkbox", name=re.compile("^Select .*, load-3$")).check()
        page.locator('th a[href="/runs/load-2"]').focus()
        page.evaluate(
            "window.row = document.activeElement.closest('tr'), window.had = document.activeElement"
        )
        set_tag(root / "load-2", "nightly", present=True)
        copy_run(root / "load-1", 0, id="load-0")
        set_tag(root / "load-0", "brand-new", present=True)
        known(served, "brand-new")
        page.evaluate(LOOK)
        page.get_by_text("5 runs, newest first.").wait_for()
        assert page.locator("#run-load-2 .tag").inner_text() == "nightly"
        assert page.evaluate("window.had === document.activeElement && window.row.isConnected")
        chosen = page.locator("input:checked").evaluate_all("found => found.map(one => one.value)")
        assert chosen == ["load-3", "load-1"]
        unchanged(page)
        page.get_by_role("button", name="Compare selected runs").click()
        assert "run=load-3&run=load-1" in page.url


def test_the_page_that_is_shown_is_the_one_that_is_renewed(visit, root):
    for number in range(100):
        copy_run(root / "load-3", 10 + number, id=f"old-{number:03}")
    with dashboard(root) as served:
        page = visit(served.address + "?page=2&q=")
        page.get_by_text("page 2 of 2").wait_for()
        assert page.locator("tbody tr").count() == 4
        copy_run(root / "load-3", 999, id="old-100")
        known(served, "105 runs")
        page.evaluate(LOOK)
        page.locator("tbody tr").nth(4).wait_for()
        assert page.locator("tbody tr").count() == 5 and page.url.endswith("?page=2&q=")
        page.get_by_label("Search").fill("old-00")
        page.get_by_text("10 of 105 runs.").wait_for()
        assert page.url == f"{served.address}?q=old-00"
        page.reload()
        assert page.locator("tbody tr").count() == 10
        page.get_by_label("Search").fill("")
        page.get_by_text("105 runs, newest first.").wait_for()
        assert page.url == served.address


def test_an_answer_that_comes_too_late_does_not_win(visit, served):
    page = visit(served.address)

    def late(route):
        page.wait_for_timeout(1_500)
        route.continue_()

    page.route(re.compile(r"/rows\?q=shop-1"), late)
    page.get_by_label("Search").fill("shop-1")
    page.wait_for_timeout(400)
    page.get_by_label("Search").fill("shop-2")
    page.locator('th a[href="/runs/load-2"]').wait_for()
    page.wait_for_timeout(1_800)
    assert page.locator("tbody tr").count() == 1 and "q=shop-2" in page.url
    assert page.locator("tbody tr").get_attribute("id") == "run-load-2"


def test_typing_asks_once_and_enter_at_once(visit, served):
    page = visit(served.address)
    asked = []
    page.on("request", lambda request: "/rows?q=" in request.url and asked.append(request.url))
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)  # a busy machine types as quickly as a free one
    page.get_by_label("Search").press_sequentially("shop-3")
    assert asked == []
    page.clock.resume()
    page.get_by_text("1 of 4 runs.").wait_for()
    assert len(asked) == 1
    page.get_by_label("Search").press("Enter")
    page.wait_for_timeout(500)
    assert len(asked) == 2 and page.evaluate("document.activeElement.name") == "q"


def test_nothing_is_asked_for_while_nobody_looks(visit, served):
    page = visit(served.address)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("Object.defineProperty(document, 'hidden', {get: () => window.away}), window.away = true")
    page.evaluate(LOOK)
    page.clock.fast_forward(60_000)
    page.wait_for_timeout(300)
    assert asked == []
    unchanged(page, f"window.away = false, {LOOK}")


def test_a_visitor_who_is_no_longer_known_is_asked_for_the_token(chromium, root, tmp_path):
    token = tmp_path / "token"
    token.write_text("a-token-of-thirty-two-characters")
    with dashboard(root, "--token-file", token) as served:
        page = chromium.new_page()
        page.goto(f"{served.address}?q=shop-1")
        page.get_by_label("Token").fill(token.read_text())
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("1 of 4 runs.").wait_for()
        page.context.clear_cookies()
        page.evaluate(LOOK)
        page.wait_for_url("**/sign-in?to=%2F%3Fq%3Dshop-1")
        page.close()


def test_the_first_run_appears_by_itself(visit, load, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with dashboard(empty) as served:
        page = visit(served.address)
        assert page.locator("h1").inner_text() == "No run is stored yet."
        shutil.copytree(load, empty / load.name)
        known(served, load.name)
        page.clock.fast_forward(5_100)
        page.locator(f'th a[href="/runs/{load.name}"]').wait_for()
        assert page.locator("h1").inner_text().startswith("1 run is stored")


# ---- a run in progress ----


def test_a_page_that_follows_says_when_the_dashboard_is_gone_and_goes_on_when_it_is_back(chromium, root):
    run = root / "load-1"
    write_manifest(run, replace(read_manifest(run), status="running", owner=identity(os.getpid())))
    add_snapshot(run, GLANCE)
    page = chromium.new_page()
    with dashboard(root) as served:
        port = served.port
        page.goto(f"{served.address}runs/load-1/live")
        page.get_by_text("This page updates automatically.").wait_for()
        assert page.locator("#progress tbody tr").count() == 1
        page.evaluate("window.line = document.querySelector('#progress .sentence')")
        add_snapshot(run, {**GLANCE, "elapsed_ns": 2 * 10**9, "succeeded": 1234})
        page.get_by_text(re.compile("^2.00 s.*1.234 operations a second")).first.wait_for()
        assert page.locator("#progress tbody tr").count() == 2
        assert page.evaluate("window.line.isConnected") and page.locator("style, [style]").count() == 0
    page.get_by_text("The dashboard does not respond; retrying. This page may be out of date.").wait_for()
    with dashboard(root, "--port", port) as served:
        page.get_by_text("This page updates automatically.").wait_for(timeout=30_000)
        add_snapshot(run, {**GLANCE, "elapsed_ns": 3 * 10**9, "succeeded": 2345})
        page.get_by_text(re.compile("^3.00 s.*2.345 operations a second")).first.wait_for()
        write_manifest(run, replace(read_manifest(run), status="complete", owner=None))
        page.get_by_text("The run is complete. Read the report").wait_for()
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.wait_for_timeout(4_000)
        assert asked == [], "the stream is opened again though the run has ended"
        page.get_by_role("link", name="Read the report").click()
        assert page.url.endswith("/runs/load-1")
    page.close()
