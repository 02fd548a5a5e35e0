"""Measure how long the page of `uncork profile logs` with many templates takes to write and to open.

The log is generated: look-ups, lists and inserts of several services, each template on its own table; a few
templates take most of the time. The page is rendered, then opened in headless Chromium from disk repeatedly,
each time in a new context. Times are those that the browser reports (navigation and paint timing), and the
times from a click on a column's header, and from a word typed into the search box, to the next painted frame.

``python bench/log_page.py [--templates 1000] [--opened 15] [--page page.html]``
"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from uncork.profile.logs import LogRequest
from uncork.report.log.document import PARTS_OF_MARKDOWN, build_log_document
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.markdown import markdown_text
from uncork.workbench.profile.logs import profile_logs

ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
_BEGIN = datetime(2026, 5, 30, 22, 0, tzinfo=UTC)
_SERVICES = ("checkout", "catalogue", "search", "billing", "mailer", "reports", "importer", "admin", "cron")
_INSERT = "INSERT INTO"
_SELECT = "SELECT id, customer_id, created_at, updated_at, status, amount, currency, note, version"
_NEXT_FRAME = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))"
_FIGURES = """() => {
    const [way] = performance.getEntriesByType("navigation");
    const [paint] = performance.getEntriesByName("first-contentful-paint");
    return [paint ? paint.startTime : NaN, way.domContentLoadedEventEnd, way.loadEventEnd];
}"""
_CHANGED = """async ([selector, text]) => {
    const begun = performance.now(), found = document.querySelector(selector);
    if (text) { found.value = text; found.dispatchEvent(new Event("input")); } else { found.click(); }
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - begun;
}"""


def main() -> int:
    """Create the log, render its page, open it, print the times; return the exit status."""
    options = _options().parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        log = Path(scratch) / "made.log"
        make_log(log, templates=options.templates)
        result = profile_logs(
            Path(scratch) / "runs", LogRequest((log,)), command="uncork profile logs"
        ).result
        print(f"{len(result.templates)} templates, {result.executions.count} executions\n")
        rendered = {}
        for name, render in (
            ("page", lambda result: html_page(build_log_document(result))),
            ("Markdown", lambda result: markdown_text(build_log_document(result, parts=PARTS_OF_MARKDOWN))),
            ("JSON", json_text),
        ):
            rendered[name], times = _rendered(lambda render=render: render(result), options.rendered)
            size = len(rendered[name].encode()) / 1e6
            print(f"{name}: {size:.2f} MB, rendered in {times[0]:.2f} s, then in {_seconds(times[1:])}")
        page = options.page or Path(scratch) / "page.html"
        page.write_text(rendered["page"], encoding="utf-8")
        print("\n| | median | min | max |\n|---|---|---|---|")
        for name, milliseconds in _opened(page, options.opened):
            middle, low, high = (f"{value:.0f} ms" for value in _spread(milliseconds))
            print(f"| {name} | {middle} | {low} | {high} |")
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--templates", type=int, default=1000)
    parser.add_argument("--rendered", type=int, default=5, help="how often each form is rendered")
    parser.add_argument("--opened", type=int, default=15, help="how often the page is opened")
    parser.add_argument("--page", type=Path, help="keep the page here")
    return parser


# ---- the log ----


def make_log(path: Path, *, templates: int, seconds: int = 4 * 3600, seed: int = 1) -> None:
    """Write a log with a number of templates and a duration in seconds, determined by the seed."""
    draw = random.Random(seed)
    entries = [
        (draw.random() ** draw.choice((0.6, 1, 1.6)), text, draw.lognormvariate(number % 7 - 3, 0.8))
        for number in range(templates)
        for text in _executions(number, draw)
    ]
    with path.open("w", encoding="utf-8") as log:
        for place, text, milliseconds in sorted(entries):
            at = _BEGIN + timedelta(seconds=place * seconds)
            service = _SERVICES[hash_of(text) % len(_SERVICES)]
            log.write(
                f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03} UTC [{hash_of(text) % 90 + 100}] "
                f"{service}_rw@shop {service} LOG:  duration: {milliseconds:.3f} ms  statement: {text}\n"
            )


def hash_of(text: str) -> int:
    """Return a number for a statement's table that is the same in every process."""
    return int(text.split("shop_", 1)[1].split(None, 1)[0].rsplit("_", 1)[1])


def _executions(number: int, draw: random.Random) -> Iterator[str]:
    """Yield the statements of one template; the first templates are the most frequent."""
    table = f"shop_{('orders', 'items', 'carts', 'payments', 'events')[number % 5]}_{number}"
    for _ in range(3 + 6000 // (number + 1)):
        key = draw.randrange(100_000)
        if number % 10 == 3:
            keys = ", ".join(str(draw.randrange(100_000)) for _ in range(draw.choice((5, 20, 60))))
            yield f"{_SELECT} FROM {table} WHERE id IN ({keys})"
        elif number % 10 == 7:
            yield f"{_INSERT} {table} (customer_id, status, amount) VALUES ({key}, 'open', {key % 977}.50)"
        else:
            yield (
                f"{_SELECT} FROM {table} AS one JOIN shop_customers AS buyer ON buyer.id = "
                f"one.customer_id WHERE buyer.id = {key} AND one.status = 'paid' AND one.amount > {key % 99} "
                f"ORDER BY one.created_at DESC LIMIT 50"
            )


# ---- measuring ----


def _rendered(render: Callable[[], str], often: int) -> tuple[str, list[float]]:
    """Return the rendered text and the seconds that each time took; the first time also loads modules."""
    text, times = "", []
    for _ in range(often + 1):
        begun = time.perf_counter()
        text = render()
        times.append(time.perf_counter() - begun)
    return text, times


def _opened(page: Path, often: int) -> Iterator[tuple[str, list[float]]]:
    """Yield the milliseconds of each step of opening the page, for each time."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 -- the log can be made without it

    names = (
        "first contentful paint",
        "parsed, tables can be sorted (DOMContentLoaded)",
        "load event",
        "second frame after it, seen from outside",
        "sort 1 000 rows by a click, to the next frame",
        "search them, to the next frame",
    )
    found: list[list[float]] = []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=list(ARGUMENTS))
        for turn in range(often + 1):
            context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
            tab = context.new_page()
            complaints: list[str] = []
            tab.on("console", lambda message, complaints=complaints: complaints.append(message.text))
            begun = time.perf_counter()
            tab.goto(page.as_uri(), wait_until="load")
            tab.evaluate(_NEXT_FRAME)
            whole = (time.perf_counter() - begun) * 1000
            figures = tab.evaluate(_FIGURES)
            sorted_in = tab.evaluate(_CHANGED, ["#templates thead th:nth-child(4) button", ""])
            searched_in = tab.evaluate(_CHANGED, ["#templates input[type=search]", "shop_carts"])
            context.close()
            if complaints:
                raise SystemExit(f"the console says: {complaints[0]}")
            if turn:
                found.append([*figures, whole, sorted_in, searched_in])
        browser.close()
    yield from zip(names, map(list, zip(*found, strict=True)), strict=True)


def _spread(values: Sequence[float]) -> tuple[float, float, float]:
    return statistics.median(values), min(values), max(values)


def _seconds(times: Sequence[float]) -> str:
    middle, low, high = _spread(times)
    return f"{middle:.2f} s ({low:.2f} to {high:.2f})"


if __name__ == "__main__":
    sys.exit(main())
