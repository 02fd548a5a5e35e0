"""Flame graphs in a browser, in the page and as a file of their own: zoom, search and reset."""

import re

import pytest

from uncork.report.stacks.document import build_stack_document
from uncork.report.write.html import html_page
from uncork.workbench.documents.flames import stack_flames
from uncork.workbench.profile.stack_files import draw_flame
from uncork.workbench.profile.stacks import StackRequest, profile_stacks

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

STACKS = """\
main;parse;read_file;ksys_read_[k];copy_[k] 20
main;parse;split 20
main;sort;compare 30
main;sort 10
main;write;ksys_write_[k] 15
main;write;<format> & quote 5
"""
LATER = STACKS.replace("compare 30", "compare 80")
SIZES = [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flame")
    (folder / "a.folded").write_text(STACKS)
    (folder / "b.folded").write_text(LATER)

    def made(name, against):
        request = StackRequest(imports=(str(folder / f"{name}.folded"),))
        run = profile_stacks(folder / "runs", request, command="uncork profile cpu", against=against)
        page, drawing = folder / f"{name}.html", folder / f"{name}.svg"
        page.write_text(html_page(build_stack_document(run.result, stack_flames(run))), encoding="utf-8")
        draw_flame(run, drawing, None)
        return {name: page.as_uri(), f"{name}.svg": drawing.as_uri()}

    found = made("a", "")
    return found | made("b", "last")


def frame(page, name):
    return page.locator("g", has=page.locator("title").get_by_text(re.compile(f"^{re.escape(name)} \\(")))


def shown(page):
    """Return the names of the frames that are to be seen."""
    titles = page.locator("g:visible > title").all_text_contents()
    return [title.rpartition(" (")[0] for title in titles]


def share(page, name):
    """Return how much of the drawing's width a frame takes."""
    box, whole = frame(page, name).locator("rect").bounding_box(), frame(page, "all").locator("rect")
    return box["width"] / whole.bounding_box()["width"]


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_a_frame_is_zoomed_into_and_out_of(open_page, pages, width, scheme):
    page = open_page(pages["a"], width, scheme)
    everything = shown(page)
    assert len(everything) == 12
    out = page.get_by_role("button", name="Zoom out")
    assert out.is_disabled() and share(page, "sort") == pytest.approx(0.4, abs=0.01)
    frame(page, "sort").click()
    assert share(page, "sort") == pytest.approx(1, abs=0.01)
    assert set(shown(page)) == {"all", "main", "sort", "compare"}
    assert share(page, "compare") == pytest.approx(0.75, abs=0.01)
    assert page.locator(".told").inner_text() == "sort (40 samples, 40.00%)"
    out.click()
    assert shown(page) == everything and share(page, "sort") == pytest.approx(0.4, abs=0.01)
    frame(page, "ksys_read").click()
    assert shown(page) != everything
    page.keyboard.press("Tab")
    page.locator(".flame .drawing").focus()
    page.keyboard.press("Escape")
    assert shown(page) == everything and out.is_disabled()


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_what_is_searched_is_marked_and_added_up(open_page, pages, width, scheme):
    page = open_page(pages["a"], width, scheme)
    search, told = (
        page.get_by_role("searchbox", name="Search frames of samples"),
        page.locator(".tools output"),
    )
    search.fill("KSYS")
    hits = page.locator(".flame g.hit > title").all_text_contents()
    assert len(hits) == 2 and told.inner_text() == "found in 35.0 %"
    mark = "found => getComputedStyle(found.querySelector('rect')).fill"
    assert frame(page, "ksys_read").evaluate(mark) == "rgb(208, 112, 240)"
    assert frame(page, "sort").evaluate(mark) != "rgb(208, 112, 240)"
    # A frame below another that was found is in its share already.
    search.fill("p")
    assert told.inner_text() == "found in 70.0 %"
    search.fill("<format>")
    assert told.inner_text() == "found in 5.0 %"
    search.fill("no such frame")
    assert told.inner_text() == "found in 0.0 %"
    search.press("Escape")
    assert search.input_value() == "" and told.inner_text() == ""
    assert page.locator(".flame.searched, .flame g.hit").count() == 0


@pytest.mark.parametrize("width", [390, 1280])
def test_letters_are_as_large_in_any_window_and_stay_within_frames(open_page, pages, width):
    page = open_page(pages["a"], width)
    for title in ("all", "sort", "ksys_read"):
        assert frame(page, title).locator("rect").bounding_box()["height"] == pytest.approx(15, abs=0.6)
    over = page.eval_on_selector_all(
        ".flame g",
        """found => found.filter(one => one.querySelector('text').getBoundingClientRect().right
            > one.querySelector('rect').getBoundingClientRect().right + 1).map(one => one.textContent)""",
    )
    assert over == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    drawing = page.locator(".flame .drawing").bounding_box()
    assert frame(page, "all").bounding_box()["y"] + 16 <= drawing["y"] + drawing["height"] + 1
    page.set_viewport_size({"width": 700, "height": 900})
    assert share(page, "sort") == pytest.approx(0.4, abs=0.01)
    assert page.evaluate("document.documentElement.scrollWidth") <= 700


def test_a_difference_tells_what_has_grown(open_page, pages):
    page = open_page(pages["b"])
    frame(page, "compare").hover()
    assert page.locator(".told").inner_text().startswith("compare (80 samples, 53.33%; +23.33%)")


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_file_of_its_own_zooms_searches_and_is_reset(open_page, pages, width, scheme):
    page = open_page(pages["a.svg"], width, scheme)
    assert share(page, "sort") == pytest.approx(0.4, abs=0.02)
    frame(page, "sort").click()
    assert share(page, "sort") == pytest.approx(1, abs=0.02)
    assert not frame(page, "write").is_visible()
    page.locator("#unzoom").click()
    assert share(page, "sort") == pytest.approx(0.4, abs=0.02) and frame(page, "write").is_visible()
    page.once("dialog", lambda dialog: dialog.accept("ksys"))
    page.locator("#search").click()
    assert page.locator("#matched").text_content() == "Matched: 35.0%"
    searched = frame(page, "ksys_read").locator("rect").get_attribute("fill")
    assert searched == "rgb(230,0,230)"
    page.locator("#search").click()
    assert frame(page, "ksys_read").locator("rect").get_attribute("fill") != searched
    assert page.evaluate("document.documentElement.getBoundingClientRect().width") <= width
