"""What the role may not see comes first in every answer, with the GRANT that shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.cures import missing_index, proven_cure
from fakes.database_results import database_result
from uncork.model.database.missing import HiddenWork, Unplanned
from uncork.model.results.advice import AdviceResult, AdviceSource, LookedAt
from uncork.report.advice.document import answer_advice, build_advice_document
from uncork.report.cure.answer import answer_cure, cure_steps
from uncork.report.database.answer import answer_database
from uncork.report.database.document import build_database_document
from uncork.report.findings import hidden_sentences, unplanned_words
from uncork.report.headline import fits, split_answer

ROLE = 'Ada "the watcher"'
GRANT = 'GRANT pg_read_all_stats TO "Ada ""the watcher"""'
MOST = HiddenWork(ROLE, 4.5, 0.97, "statements", busy=True)
PART = replace(MOST, share=0.3)
LITTLE = replace(MOST, share=0.01)
UNREADABLE = Unplanned("not readable", (1, 2), 0.8, "ada", 'GRANT pg_read_all_data TO "ada"')


def advice(hidden, *findings, unplanned=()):
    return answer_advice(
        AdviceResult(
            sources=(AdviceSource("database-1", "database", "ada@db:5432/shop", 60.0),),
            answer="",
            reasons=(),
            findings=findings,
            missing=(),
            looked_at=LookedAt(60, 18, 1, 1, 1, 1, unplanned),
            sessions=1.0,
            reproduce="uncork advise",
            uncork_version="1",
            hidden=hidden,
        )
    )


@pytest.mark.parametrize("hidden", [MOST, PART], ids=["most", "part"])
@pytest.mark.parametrize("findings", [(), (missing_index(),)], ids=["none", "a finding"])
def test_hidden_work_comes_before_findings_and_there_is_no_all_clear(hidden, findings):
    result = advice(hidden, *findings)
    headline, _ = split_answer(result.answer)
    assert headline.startswith(f'Role "{ROLE}" may not see the statements with ') and fits(headline)
    assert GRANT in result.answer and not result.answer.count("Nothing stands out")
    assert build_advice_document(result).steps[0].command == GRANT


def test_a_little_hidden_work_does_not_come_first():
    assert advice(LITTLE).answer.startswith("Nothing stands out")


def test_watched_servers_and_cures_begin_with_it_too():
    watched = answer_database(replace(database_result(findings=()), hidden=PART))
    assert watched.answer.startswith(f'Role "{ROLE}" may not see')
    assert not any("No change is needed" in one for one in watched.reasons)
    assert build_database_document(watched).steps[0].command == GRANT
    cured = answer_cure(replace(proven_cure(), tried=(), chosen=None, hidden=MOST))
    assert cured.answer.startswith(f'Role "{ROLE}" may not see')
    assert next(iter(cure_steps(cured))).command == GRANT
    proven = answer_cure(replace(proven_cure(), hidden=PART))
    assert GRANT in proven.reasons[0]


def test_an_unknown_share_and_one_of_sessions_have_words_of_their_own():
    unknown, _ = hidden_sentences(replace(MOST, share=None, busy=False))
    assert unknown == f'Role "{ROLE}" may not see what the sessions of other roles do'
    sessions, _ = hidden_sentences(replace(MOST, base="sessions"))
    assert sessions == f'Role "{ROLE}" may not see 97 % of the active sessions in this database'


def test_tables_that_the_role_may_not_read_come_first_with_their_grant():
    result = advice(None, missing_index(), unplanned=(UNREADABLE,))
    assert result.answer.startswith(
        'Role "ada" may not read the tables of statements with 80 % of the statements\' time. Their plans '
        "are missing, and so are findings that need plans. "
        'GRANT pg_read_all_data TO "ada" gives it the plans.'
    )
    assert advice(None, unplanned=(replace(UNREADABLE, share=0.01),)).answer.startswith("Nothing stands out")


def test_statements_without_a_plan_are_counted_by_reason():
    groups = (
        UNREADABLE,
        Unplanned("no values", (3,), 0.1, "ada", "run EXPLAIN with the values of a call"),
        Unplanned("no plan", (4, 5, 6), 0.0, "ada"),
    )
    text = unplanned_words(groups)
    assert text == (
        'No plan of 6 statements: 2 read tables that role "ada" may not read '
        '(GRANT pg_read_all_data TO "ada"); '
        "1 is stored by the server without values, in a form that cannot be planned (run EXPLAIN with the "
        "values of a call); 3 are commands such as BEGIN, which the server does not plan."
    )
    assert text in advice(None, unplanned=groups).reasons
    assert unplanned_words(()) == ""
