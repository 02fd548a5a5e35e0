from dataclasses import replace

from fakes.results import small_result
from uncork.model.results.experiment import DataCheckFacts, OwnMetricFacts
from uncork.report.experiment.document import build_document
from uncork.report.experiment.requests import data_check_words
from uncork.report.write.html import html_page
from uncork.report.write.markdown import markdown_text

CELLS = ((("rows", "10"),), (("rows", "10000"),))


def checks(*values):
    return tuple(
        DataCheckFacts(CELLS[1], variant, "duplicates", "ids that are there twice", value)
        for variant, value in values
    )


def test_a_layout_that_holds_other_data_than_the_baseline_is_named():
    found = checks(("char", "0"), ("bytea", "0"), ("uuid", "1000"), ("varchar", None))
    assert data_check_words(found, "char") == (
        "ids that are there twice at rows 10000: 0 with char, but 1 000 with uuid and nothing with varchar",
    )


def test_where_all_agree_there_is_nothing_to_say():
    assert data_check_words(checks(("char", "0"), ("uuid", "0")), "char") == ()
    assert data_check_words((), "char") == ()


def test_reports_show_what_was_asked():
    result = replace(small_result(), data_checks=checks(("char", "0"), ("uuid", "100")))
    text = markdown_text(build_document(result))
    assert "## Data checks" in text
    assert "| ids that are there twice | rows 10 000 | 0 |" in text
    assert "Data checks" in html_page(build_document(result))
    assert "Data checks" not in markdown_text(build_document(small_result()))


def test_reports_show_the_metrics_of_the_file():
    facts = {"name": "written", "workload": "lookup", "cell": CELLS[1], "better": "lower", "trials": 12}
    metrics = (
        OwnMetricFacts(variant="char", mean=70.0, least=70.0, most=70.0, **facts),
        OwnMetricFacts(variant="uuid", mean=141.0, least=140.0, most=142.0, **facts),
    )
    result = replace(small_result(), own_metrics=metrics)
    text = markdown_text(build_document(result))
    assert "## Metrics of the file" in text
    assert "| written | lookup | rows 10 000 | 70 | 141<br>140 to 142 |" in text
    assert "Metrics of the file" in html_page(build_document(result))
    assert "Metrics of the file" not in markdown_text(build_document(small_result()))
