"""The site: every page in a browser, light and dark, narrow and wide, by keyboard, without another host."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import cycle
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.xdist_group("site"), pytest.mark.thorough]


NOTHING_TO_FIND = 'var __index = {"config": {"lang": ["en"], "separator": " "}, "items": []}'


@pytest.fixture(scope="module")
def site():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "site" / "build.py"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.removeprefix("site: ").strip()).parent


def test_every_page_of_the_documentation_is_in_a_section(site):
    written = {path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")}
    listed = (site.parent / "mkdocs.yml").read_text()
    assert [path for path in sorted(written) if f"- {path}\n" not in listed] == []


def pages(site):
    """Return the pages of the site itself: reports that were made for it have tests of their own."""
    return [
        path
        for path in sorted(site.rglob("*.html"))
        if path.name != "404.html" and path.parent != site / "reports"
    ]


def test_every_page_fits_and_has_a_title_a_heading_and_images_with_words(site, open_page):
    found = pages(site)
    assert len(found) > 80
    schemes = {"default": open_page(found[0].as_uri()), "slate": open_page(found[0].as_uri(), scheme="dark")}
    for page in schemes.values():  # each page would build the index of all pages anew
        page.route("**/search.js", lambda route: route.fulfill(body=NOTHING_TO_FIND))
    # All pages have one template: light and dark take turns.
    for path, (scheme, page) in zip(found, cycle(schemes.items())):
        page.set_viewport_size({"width": 360, "height": 900})
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
        page.set_viewport_size({"width": 1280, "height": 900})
        facts = page.evaluate("""() => ({
            wide: document.documentElement.scrollWidth,
            title: document.title,
            headings: document.querySelectorAll("h1").length,
            language: document.documentElement.lang,
            scheme: document.body.dataset.mdColorScheme,
            silent: [...document.images].filter(one => !one.alt).length,
            unnamed: [...document.querySelectorAll("a[href], button")].filter(
                one => one.offsetParent && !(one.textContent.trim() || one.ariaLabel || one.title)).length,
        })""")
        assert facts["wide"] <= 1280, path
        assert facts["scheme"] == scheme, path
        assert facts["title"] and facts["headings"] == 1 and facts["language"] == "en", path
        assert (facts["silent"], facts["unnamed"]) == (0, 0), path


def test_the_search_and_the_sections_are_reached_by_keyboard(site, open_page):
    page = open_page((site / "index.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type("autovacuum")
    page.get_by_text(re.compile(r"^\d+ results$")).wait_for()
    page.get_by_text("log_vacuums", exact=True).first.wait_for()
    page.goto((site / "index.html").as_uri())
    seen = []
    for _ in range(20):
        page.keyboard.press("Tab")
        seen.append(page.evaluate("document.activeElement.innerText || ''").strip())
    assert "Skip to content" in seen[0]
    assert {"Guides", "Cases", "Reference"} <= set(seen)
