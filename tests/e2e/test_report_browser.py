"""The HTML report in a browser: opened from disk, with the network shut."""

from dataclasses import replace

import pytest

from fakes.cures import proven_cure
from fakes.results import large_result
from uncork.report.cure.document import build_cure_document
from uncork.report.experiment.document import build_document
from uncork.report.write.html import html_page

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(html_page(build_document(large_result())), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def visit(open_page, address):
    return lambda width=1280, scheme="light": open_page(address, width, scheme)


def test_every_chart_has_marks(visit):
    page = visit()
    page.eval_on_selector_all("details", "found => found.forEach(one => { one.open = true })")
    marks = page.eval_on_selector_all(
        "svg.chart",
        """charts => charts.map(chart => [...chart.querySelectorAll(
            '.mark-line path, .mark-symbol path, .mark-rule line')].filter(mark => {
                const box = mark.getBoundingClientRect();
                return box.width + box.height > 0;
            }).length)""",
    )
    assert len(marks) > 60
    assert min(marks) > 2


def test_no_label_of_a_chart_is_clipped(visit):
    page = visit()
    page.eval_on_selector_all("details", "found => found.forEach(one => { one.open = true })")
    out = page.eval_on_selector_all(
        "svg.chart text",
        """texts => texts.filter(text => {
            const box = text.getBoundingClientRect(), frame = text.ownerSVGElement.getBoundingClientRect();
            return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1);
        }).map(text => text.textContent)""",
    )
    assert out == []


@pytest.mark.parametrize("width", [400, 768, 1280])
def test_the_page_never_scrolls_sideways(visit, width):
    page = visit(width)
    page.eval_on_selector_all("details", "found => found.forEach(one => { one.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_light_and_dark_differ_and_the_button_switches(visit):
    light, dark = visit(scheme="light"), visit(scheme="dark")
    shots = light.screenshot(), dark.screenshot()
    assert shots[0] != shots[1]
    mark = "getComputedStyle(document.querySelector('svg.chart [stroke*=\"--v1\"]')).stroke"
    assert light.evaluate(mark) != dark.evaluate(mark)
    ground = "getComputedStyle(document.body).backgroundColor"
    before = light.evaluate(ground)
    light.get_by_role("button", name="Dark theme").click()
    assert light.evaluate(ground) == dark.evaluate(ground) != before


def test_the_answer_is_the_first_thing_seen(visit):
    page = visit()
    assert page.locator("h1").inner_text().startswith("varchar is refused on delete")
    assert page.locator("h1").bounding_box()["y"] < 200


def test_paper_is_light_and_shows_closed_parts(visit):
    page = visit(scheme="dark")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(28, 32, 36)"
    assert page.locator("details:not([open]):not(.figures) table").first.bounding_box()["height"] > 50


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_table_with_long_heads_of_rows_fits_a_usual_window(open_page, tmp_path, scheme):
    cure = proven_cure()
    words = "Replace counting by a trigger FOR EACH STATEMENT that handles all rows of a statement at once"
    chosen = replace(cure.chosen, text=f"{words}.")
    path = tmp_path / "cure.html"
    path.write_text(html_page(build_cure_document(replace(cure, chosen=chosen))), encoding="utf-8")
    page = open_page(path.as_uri(), width=1280, scheme=scheme)
    widths = page.eval_on_selector_all(
        ".scroll:has(table)", "all => all.map(one => [one.scrollWidth, one.clientWidth])"
    )
    assert widths and all(needed <= given for needed, given in widths)
    head = page.locator("#changes th.long").first
    assert words in head.inner_text().replace("\N{NO-BREAK SPACE}", " ")
    below = page.locator("#changes th.long").nth(1)
    assert head.bounding_box()["height"] > 1.4 * below.bounding_box()["height"], "it has two lines"
