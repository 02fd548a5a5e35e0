"""When samples are due."""

import pytest

from uncork.engines.watch.connection import Look
from uncork.workbench.profile.database_watch import Samples, next_tick


@pytest.mark.parametrize(("tick", "elapsed", "following"), [
    (0, 3, 1),  # in time
    (0, 100, 1),  # just due
    (0, 160, 1),  # late, and taken at once
    (0, 200, 2),  # the one after it is due too: 1 is missed
    (4, 990, 9),
])  # fmt: skip
def test_ticks_are_due_at_whole_periods_and_lateness_does_not_add_up(tick, elapsed, following):
    assert next_tick(tick, elapsed, 100) == following


def test_texts_of_sessions_without_an_id_get_that_of_their_template():
    """PostgreSQL 13 tells no ids of statements in sessions."""
    row = {"query_id": None, "backend": "client backend", "comment": None, "wait_class": "", "database": "d"}
    texts = ["SELECT * FROM item WHERE id = 7", "SELECT * FROM item WHERE id = 8", "COMMIT"]
    found = Samples(0, 0)
    for text in (*texts, texts[0]):
        found.add(Look(0, 1, ({**row, "text": text},), 0), blockers=False)
    found.find_ids({5: "SELECT * FROM item WHERE id = $1", 6: "SELECT * FROM other WHERE id = $1"})
    assert found.seen == {5: texts[:2]}


def test_a_text_of_a_session_that_has_no_id_yet_is_kept_beside_those_with_one():
    """A session has no id while its statement is parsed."""
    row = {"backend": "client backend", "comment": None, "wait_class": "", "database": "d"}
    found = Samples(0, 0)
    for query_id, key in ((5, 7), (None, 8), (5, 9), (None, 7)):
        text = f"SELECT * FROM item WHERE id = {key}"
        found.add(Look(0, 1, ({**row, "query_id": query_id, "text": text},), 0), blockers=False)
    found.find_ids({5: "SELECT * FROM item WHERE id = $1"})
    assert found.seen == {5: [f"SELECT * FROM item WHERE id = {key}" for key in (7, 9, 8)]}
