"""The page of a log of a thousand templates in a browser: opened from disk, with the network shut."""

import re
from dataclasses import replace

import pytest
from bench.log_page import make_log

from uncork.profile.logs import LogRequest
from uncork.report.blocks import Fold
from uncork.report.log.document import build_log_document
from uncork.report.write.html import html_page
from uncork.workbench.profile.logs import profile_logs

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
TEMPLATES = 1_000


@pytest.fixture(scope="module")
def address(tmp_path_factory):
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
def visit(open_page, address):
    return lambda part="", name="report", **options: open_page(f"{address}/{name}.html{part}", **options)


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


def test_it_holds_all_templates_and_a_part_for_each(visit):
    page = visit()
    assert page.locator("#templates tbody tr").count() == TEMPLATES
    assert page.locator("details.part").count() == TEMPLATES
    assert page.evaluate("document.body.scrollHeight") > 900


def test_a_click_on_a_heading_sorts_and_another_turns_round(visit):
    page = visit()
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


def test_words_sort_from_a_to_z(visit):
    page = visit()
    heading(page, "template").click()
    texts = page.locator("#templates tbody th a").all_text_contents()
    assert sorted_by(page) == [["template", "ascending"]]
    assert texts[0].startswith("insert into shop_carts_7(") and texts[-1].startswith("select id, ")
    numbers = [
        int(re.search(r"_(\d+)\(", text)[1]) for text in texts if text.startswith("insert into shop_c")
    ]
    assert len(numbers) == 100 and numbers == sorted(numbers)


def test_headings_are_reached_and_pressed_by_keys(visit):
    page = visit()
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


def test_search_looks_into_whole_templates_whatever_the_case(visit):
    page = visit()
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


def test_what_was_found_stays_found_when_sorted(visit):
    page = visit()
    page.locator("#templates input[type=search]").fill("insert into")
    found = rows_shown(page)
    heading(page, "count").click()
    assert 0 < rows_shown(page) == found < TEMPLATES


def test_a_row_leads_to_its_part_and_back(visit):
    page = visit()
    link = page.locator("#templates tbody tr").nth(600).locator("a")
    name = link.get_attribute("href").removeprefix("#")
    part = page.locator("details", has=page.locator(f"#{name}"))
    assert part.get_attribute("open") is None
    link.click()
    assert part.get_attribute("open") is not None
    assert 0 <= page.locator(f"#{name}").bounding_box()["y"] < 900
    part.get_by_role("link", name="Back to the table").click()
    assert 0 <= page.locator(f"#to-{name}").bounding_box()["y"] < 900


def test_the_way_back_ends_at_a_row_that_was_searched_away(visit):
    page = visit()
    link = page.locator("#templates tbody a").first
    name = link.get_attribute("href").removeprefix("#")
    link.click()
    page.locator("#templates input[type=search]").fill("no such thing")
    page.locator("details", has=page.locator(f"#{name}")).get_by_role(
        "link", name="Back to the table"
    ).click()
    assert rows_shown(page) == TEMPLATES
    assert 0 <= page.locator(f"#to-{name}").bounding_box()["y"] < 900


def test_an_address_with_a_template_opens_its_part(visit):
    page = visit("#template-750")
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


def test_a_part_that_is_drawn_when_it_is_opened_looks_like_one_drawn_at_once(visit):
    page = visit()
    parts = page.eval_on_selector_all("details.later .inside", "all => all.map(one => one.id)")
    assert len(parts) == TEMPLATES - 50
    chosen = [parts[0], parts[700], parts[-1]]
    found = []
    for name in ("report", "whole"):
        page = visit(name=name)
        for part in chosen:
            page.locator(f"#to-{part}").click()
            page.locator(f"#{part} pre").first.wait_for()
        found.append([drawn(page, part) for part in chosen])
    assert found[0] == found[1] and all("Executionsbyduration" in text for text, _ in found[0])
    assert page.locator(".unscripted").count() == 0


def test_the_stacks_are_labelled_in_their_order(visit):
    page = visit()
    legend = page.get_by_role("list", name="Legend, in the order of the stack").first
    numbers = legend.locator("b").all_inner_texts()
    assert numbers == ["", "7", "6", "5", "4", "3", "2", "1"]
    fills = legend.locator("rect").evaluate_all("found => found.map(one => getComputedStyle(one).fill)")
    areas = page.locator("svg.chart").first.locator(".mark-area path")
    assert areas.evaluate_all("found => found.map(one => getComputedStyle(one).fill)") == fills[::-1]


@pytest.mark.parametrize("width", [390, 768, 1280])
def test_the_page_never_scrolls_sideways(visit, width):
    page = visit(width=width)
    page.eval_on_selector_all("details", "found => found.slice(0, 60).forEach(one => { one.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_all_is_shown_and_links_open_parts(visit):
    page = visit(java_script_enabled=False)
    assert page.locator("#templates tbody tr").count() == TEMPLATES
    assert page.locator("#templates button, input").count() == 0
    assert page.locator("#templates thead").inner_text().split()[:3] == ["#", "time", "share"]
    page.locator("#templates tbody a").nth(40).click()
    name = page.url.rpartition("#")[2]
    assert page.locator(f"#{name} pre").first.is_visible()
    page.locator("#templates tbody a").nth(60).click()
    rare = page.url.rpartition("#")[2]
    assert "drawn when it is opened, by a script" in page.locator(f"#{rare}").text_content()


def test_paper_shows_all_rows(visit):
    page = visit()
    page.locator("#templates input[type=search]").fill("shop_carts_27(")
    page.emulate_media(media="print")
    rows = page.locator("#templates tbody tr")
    assert rows.nth(TEMPLATES - 1).is_visible() and rows.nth(0).is_visible()
    box = page.locator("#templates .tall").bounding_box()
    assert box["height"] > 20 * TEMPLATES
    assert not page.locator("#templates input").is_visible()
