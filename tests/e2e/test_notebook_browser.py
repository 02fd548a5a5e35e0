"""A report in the frame in which notebooks show it: its styles stay inside, its script too, and it works."""

import pytest

from fakes.results import large_result
from uncork.api.display import framed
from uncork.report.experiment.document import build_document
from uncork.report.write.html import html_page

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    path = tmp_path_factory.mktemp("notebook") / "notebook.html"
    frame = framed(html_page(build_document(large_result())), 'the "answer" <of> it')
    page = f"<!doctype html><html><body><h1>Mine</h1>{frame}</body></html>"
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def visit(open_page, notebook):
    def opened(scheme="light"):
        page = open_page(notebook, 1000, scheme)
        page.wait_for_selector("iframe")
        return page, page.frame_locator("iframe")

    return opened


GROUND = "element => getComputedStyle(element).backgroundColor"


def test_the_answer_stands_in_the_frame_and_styles_stay_there(visit):
    page, frame = visit()
    assert frame.locator("h1").inner_text().startswith("varchar is refused on delete")
    assert page.locator("body").evaluate(GROUND) == "rgba(0, 0, 0, 0)"
    assert page.locator("h1").evaluate("element => getComputedStyle(element).fontFamily") != frame.locator(
        "h1"
    ).evaluate("element => getComputedStyle(element).fontFamily")
    assert page.locator("iframe").get_attribute("title") == 'the "answer" <of> it'


def test_the_script_in_the_frame_works_and_reaches_nothing_outside(visit):
    page, frame = visit()
    before = frame.locator("body").evaluate(GROUND)
    frame.get_by_role("button", name="Dark theme").click()
    assert frame.locator("body").evaluate(GROUND) != before
    reached = page.frames[1].evaluate(
        "() => { try { return parent.document.title } catch (error) { return error.name } }"
    )
    assert reached == "SecurityError"


def test_links_within_the_report_lead_to_its_parts_and_not_to_the_notebook(visit):
    page, frame = visit()
    place = "document.querySelector('#environment').getBoundingClientRect().top"
    frame.locator("h1").wait_for()
    assert page.frames[1].evaluate(place) > 1000
    frame.get_by_role("link", name="Environment").click()
    page.frames[1].wait_for_function(f"{place} < 700")
    assert page.evaluate("scrollY") == 0
    assert page.frames[1].url == "about:srcdoc#environment"


def test_the_report_is_as_light_or_dark_as_the_system(visit):
    grounds = [visit(scheme)[1].locator("body").evaluate(GROUND) for scheme in ("light", "dark")]
    assert grounds[0] != grounds[1]
