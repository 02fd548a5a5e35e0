"""Reports in a browser: opened from disk, without a network."""

import re
from dataclasses import replace

import pytest
from bench.log_page import make_log

from fakes.cures import proven_cure
from fakes.results import large_result
from uncork.api.display import framed
from uncork.profile.logs import LogRequest
from uncork.report.blocks import Fold
from uncork.report.cure.document import build_cure_document
from uncork.report.experiment.document import build_document
from uncork.report.log.document import build_log_document
from uncork.report.stacks.document import build_stack_document
from uncork.report.write.html import html_page
from uncork.workbench.documents.flames import stack_flames
from uncork.workbench.profile.logs import profile_logs
from uncork.workbench.profile.stack_files import draw_flame
from uncork.workbench.profile.stacks import StackRequest, profile_stacks

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


TEMPLATES = 1_000


@pytest.fixture(scope="module")
def log_address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    make_log(folder / "made.log", templates=TEMPLATES)
    request = LogRequest((folder / "made.log",))
    result = profile_logs(folder / "runs", request, command="uncork profile logs made.log").result
    document = build_log_document(result)
    (folder / "report.html").write_text(html_page(document), encoding="utf-8")
    (folder / "whole.html").write_text(html_page(drawn_at_once(document)), encoding="utf-8")
    return folder.as_uri()


def drawn_at_once(document):
    """Return the document without parts that are drawn when they are opened."""
    sections = (
        replace(section, blocks=tuple(at_once(block) for block in section.blocks))
        for section in document.sections
    )
    return replace(document, sections=tuple(sections))


def at_once(block):
    return replace(block, later=False) if isinstance(block, Fold) else block


@pytest.fixture
def log_visit(open_page, log_address):
    return lambda part="", name="report", **options: open_page(f"{log_address}/{name}.html{part}", **options)


def column(page, number):
    """Return the values by which the templates table sorts one of its columns, in the order of its rows."""
    return page.eval_on_selector_all(
        f"#templates tbody tr > :nth-child({number})", "cells => cells.map(cell => Number(cell.dataset.v))"
    )


def sorted_by(page):
    """Return the titles of the columns that say that they order the templates table, and how."""
    return page.eval_on_selector_all(
        "#templates th[aria-sort]", "heads => heads.map(head => [head.innerText, head.ariaSort])"
    )


def heading(page, name):
    return page.locator("#templates").get_by_role("button", name=name, exact=True)


def told(page):
    """Return what stands beside the search box."""
    return page.locator("#templates output").inner_text().replace("\N{NO-BREAK SPACE}", " ")


def rows_shown(page):
    return page.locator("#templates tbody tr:not([hidden])").count()


def test_it_holds_all_templates_and_a_part_for_each(log_visit):
    page = log_visit()
    assert page.locator("#templates tbody tr").count() == TEMPLATES
    assert page.locator("details.part").count() == TEMPLATES
    assert page.evaluate("document.body.scrollHeight") > 900


def test_a_click_on_a_heading_sorts_and_another_turns_round(log_visit):
    page = log_visit()
    first = column(page, 1)
    assert first == list(range(1, TEMPLATES + 1)) and sorted_by(page) == []
    heading(page, "mean").click()
    means = column(page, 5)
    assert means == sorted(means, reverse=True) and means != sorted(means)
    assert sorted_by(page) == [["mean", "descending"]]
    heading(page, "mean").click()
    assert column(page, 5) == sorted(means)
    assert sorted_by(page) == [["mean", "ascending"]]
    heading(page, "#").click()
    heading(page, "#").click()
    assert column(page, 1) == first
    assert sorted_by(page) == [["#", "ascending"]]


def test_words_sort_from_a_to_z(log_visit):
    page = log_visit()
    heading(page, "template").click()
    texts = page.locator("#templates tbody th a").all_text_contents()
    assert sorted_by(page) == [["template", "ascending"]]
    assert texts[0].startswith("insert into shop_carts_7(") and texts[-1].startswith("select id, ")
    numbers = [
        int(re.search(r"_(\d+)\(", text)[1]) for text in texts if text.startswith("insert into shop_c")
    ]
    assert len(numbers) == 100 and numbers == sorted(numbers)


def test_headings_are_reached_and_pressed_by_keys(log_visit):
    page = log_visit()
    page.locator("#templates input[type=search]").focus()
    page.keyboard.press("Tab")  # the region that scrolls
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "#"
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert sorted_by(page) == [["time", "descending"]]
    page.keyboard.press("Space")
    assert sorted_by(page) == [["time", "ascending"]]
    times = column(page, 2)
    assert times == sorted(times)


def test_search_looks_into_whole_templates_whatever_the_case(log_visit):
    page = log_visit()
    search = page.get_by_role("searchbox", name="Search Templates by total time")
    search.fill("SHOP_carts_27(")
    assert rows_shown(page) == 1 and told(page) == "1 of 1 000 shown"
    search.fill("order by  one.created_at")  # the row is cut before it; the part is not
    found = rows_shown(page)
    assert TEMPLATES / 2 < found < TEMPLATES and told(page) == f"{found} of 1 000 shown"
    search.fill("no such thing")
    assert rows_shown(page) == 0 and told(page) == "0 of 1 000 shown"
    search.fill("")
    assert rows_shown(page) == TEMPLATES and told(page) == ""


def test_what_was_found_stays_found_when_sorted(log_visit):
    page = log_visit()
    page.locator("#templates input[type=search]").fill("insert into")
    found = rows_shown(page)
    heading(page, "count").click()
    assert 0 < rows_shown(page) == found < TEMPLATES


def test_a_row_leads_to_its_part_and_back(log_visit):
    page = log_visit()
    link = page.locator("#templates tbody tr").nth(600).locator("a")
    name = link.get_attribute("href").removeprefix("#")
    part = page.locator("details", has=page.locator(f"#{name}"))
    assert part.get_attribute("open") is None
    link.click()
    assert part.get_attribute("open") is not None
    assert 0 <= page.locator(f"#{name}").bounding_box()["y"] < 900
    part.get_by_role("link", name="Back to the table").click()
    assert 0 <= page.locator(f"#to-{name}").bounding_box()["y"] < 900


def test_the_way_back_ends_at_a_row_that_was_searched_away(log_visit):
    page = log_visit()
    link = page.locator("#templates tbody a").first
    name = link.get_attribute("href").removeprefix("#")
    link.click()
    page.locator("#templates input[type=search]").fill("no such thing")
    page.locator("details", has=page.locator(f"#{name}")).get_by_role(
        "link", name="Back to the table"
    ).click()
    assert rows_shown(page) == TEMPLATES
    assert 0 <= page.locator(f"#to-{name}").bounding_box()["y"] < 900


def test_an_address_with_a_template_opens_its_part(log_visit):
    page = log_visit("#template-750")
    assert page.locator("#template-750 pre").first.is_visible()
    assert 0 <= page.locator("#template-750").bounding_box()["y"] < 900


def drawn(page, part):
    """Return what a part shows: its text, and its elements with what style sheets and readers see of them."""
    inside = page.locator(f"#{part}")
    names = ["scope", "d", "tabindex", "role"]
    return "".join(inside.text_content().split()), inside.evaluate(
        """(inside, names) => [...inside.querySelectorAll("*")].map(one => [
            one.tagName, one.className.baseVal ?? one.className, one.getBoundingClientRect().width,
            one.style?.getPropertyValue("--w"),
            ...names.map(name => one.getAttribute(name)),
        ])""",
        names,
    )


def test_a_part_that_is_drawn_when_it_is_opened_looks_like_one_drawn_at_once(log_visit):
    page = log_visit()
    parts = page.eval_on_selector_all("details.later .inside", "all => all.map(one => one.id)")
    assert len(parts) == TEMPLATES - 50
    chosen = [parts[0], parts[700], parts[-1]]
    found = []
    for name in ("report", "whole"):
        page = log_visit(name=name)
        for part in chosen:
            page.locator(f"#to-{part}").click()
            page.locator(f"#{part} pre").first.wait_for()
        found.append([drawn(page, part) for part in chosen])
    assert found[0] == found[1] and all("Executionsbyduration" in text for text, _ in found[0])
    assert page.locator(".unscripted").count() == 0


def test_the_stacks_are_labelled_in_their_order(log_visit):
    page = log_visit()
    legend = page.get_by_role("list", name="Legend, in the order of the stack").first
    numbers = legend.locator("b").all_inner_texts()
    assert numbers == ["", "7", "6", "5", "4", "3", "2", "1"]
    fills = legend.locator("rect").evaluate_all("found => found.map(one => getComputedStyle(one).fill)")
    areas = page.locator("svg.chart").first.locator(".mark-area path")
    assert areas.evaluate_all("found => found.map(one => getComputedStyle(one).fill)") == fills[::-1]


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_log_the_page_never_scrolls_sideways(log_visit, width):
    page = log_visit(width=width)
    page.eval_on_selector_all("details", "found => found.slice(0, 60).forEach(one => { one.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_all_is_shown_and_links_open_parts(log_visit):
    page = log_visit(java_script_enabled=False)
    assert page.locator("#templates tbody tr").count() == TEMPLATES
    assert page.locator("#templates button, input").count() == 0
    assert page.locator("#templates thead").inner_text().split()[:3] == ["#", "time", "share"]
    page.locator("#templates tbody a").nth(40).click()
    name = page.url.rpartition("#")[2]
    assert page.locator(f"#{name} pre").first.is_visible()
    page.locator("#templates tbody a").nth(60).click()
    rare = page.url.rpartition("#")[2]
    assert "drawn when it is opened, by a script" in page.locator(f"#{rare}").text_content()


def test_paper_shows_all_rows(log_visit):
    page = log_visit()
    page.locator("#templates input[type=search]").fill("shop_carts_27(")
    page.emulate_media(media="print")
    rows = page.locator("#templates tbody tr")
    assert rows.nth(TEMPLATES - 1).is_visible() and rows.nth(0).is_visible()
    box = page.locator("#templates .tall").bounding_box()
    assert box["height"] > 20 * TEMPLATES
    assert not page.locator("#templates input").is_visible()


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


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    path = tmp_path_factory.mktemp("notebook") / "notebook.html"
    frame = framed(html_page(build_document(large_result())), 'the "answer" <of> it')
    page = f"<!doctype html><html><body><h1>Mine</h1>{frame}</body></html>"
    path.write_text(page, encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def notebook_visit(open_page, notebook):
    def opened(scheme="light"):
        page = open_page(notebook, 1000, scheme)
        page.wait_for_selector("iframe")
        return page, page.frame_locator("iframe")

    return opened


GROUND = "element => getComputedStyle(element).backgroundColor"


def test_the_answer_stands_in_the_frame_and_styles_stay_there(notebook_visit):
    page, frame = notebook_visit()
    assert frame.locator("h1").inner_text().startswith("varchar is refused on delete")
    assert page.locator("body").evaluate(GROUND) == "rgba(0, 0, 0, 0)"
    assert page.locator("h1").evaluate("element => getComputedStyle(element).fontFamily") != frame.locator(
        "h1"
    ).evaluate("element => getComputedStyle(element).fontFamily")
    assert page.locator("iframe").get_attribute("title") == 'the "answer" <of> it'


def test_the_script_in_the_frame_works_and_reaches_nothing_outside(notebook_visit):
    page, frame = notebook_visit()
    before = frame.locator("body").evaluate(GROUND)
    frame.get_by_role("button", name="Dark theme").click()
    assert frame.locator("body").evaluate(GROUND) != before
    reached = page.frames[1].evaluate(
        "() => { try { return parent.document.title } catch (error) { return error.name } }"
    )
    assert reached == "SecurityError"


def test_links_within_the_report_lead_to_its_parts_and_not_to_the_notebook(notebook_visit):
    page, frame = notebook_visit()
    place = "document.querySelector('#environment').getBoundingClientRect().top"
    frame.locator("h1").wait_for()
    assert page.frames[1].evaluate(place) > 1000
    frame.get_by_role("link", name="Environment").click()
    page.frames[1].wait_for_function(f"{place} < 700")
    assert page.evaluate("scrollY") == 0
    assert page.frames[1].url == "about:srcdoc#environment"


def test_the_report_is_as_light_or_dark_as_the_system(notebook_visit):
    grounds = [notebook_visit(scheme)[1].locator("body").evaluate(GROUND) for scheme in ("light", "dark")]
    assert grounds[0] != grounds[1]
