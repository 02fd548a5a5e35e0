"""Updates that change nothing: proven by their text, or by the values that sessions sent."""

from dataclasses import replace

import pytest

from fakes.evidence import a_column, a_statement, a_table, evidence, spent
from fakes.findings import compare_findings
from fakes.log_results import log_result
from uncork.diagnosis.findings import find_findings
from uncork.model.database.catalogue import TriggerFacts
from uncork.profile.statement_shape import assigned_values
from uncork.report.findings import finding_headline
from uncork.report.headline import fits

BEGUN_US = evidence([]).database.watch.begun_us
ITSELF = "UPDATE item SET note = note WHERE id = $1"
UPSERT = (
    "INSERT INTO tag (name) VALUES ($1) ON CONFLICT (name) DO UPDATE SET name = EXCLUDED.name RETURNING id"
)
ONLINE = "UPDATE item SET state = $1 WHERE id = $2"
COLUMNS = {"item": ["id", "note", "state"], "tag": ["id", "name"]}


def found(seen):
    return [one for one in find_findings(seen) if one.rule == "redundant-update"]


def update(sql, **facts):
    text = sql.lower()
    for number in "123":
        text = text.replace(f"${number}", "?")
    return a_statement(sql, columns=COLUMNS, **{"text": text, **facts})


def judged(sql, *, wait="IO:WalSync", table=None, statement=None, others=(), triggers=(), columns=()):
    return found(
        evidence(
            [spent(wait=wait)],
            [update(sql, **(statement or {})), *others],
            tables=[
                a_table("item", **{"updated": 6_000, **(table or {})}),
                a_table("tag", **{"updated": 6_000, **(table or {})}),
            ],
            columns=columns,
            catalogue={"triggers": triggers},
        )
    )


@pytest.mark.parametrize(
    "sql",
    [
        ITSELF,
        "UPDATE item AS i SET note = i.note, state = i.state WHERE id = $1",
        "UPDATE public.item SET note = item.note",
    ],
)
def test_a_column_set_to_itself_is_a_finding(sql):
    (one,) = judged(sql)
    assert one.objects[:2] == ("item", "note")
    assert "to itself" in one.headline
    assert fits(finding_headline(one))
    assert one.bill.share == pytest.approx(1.0)
    assert "suppress_redundant_updates_trigger()" in one.candidates[1].sql
    assert one.candidates[1].undo == "DROP TRIGGER zz_only_changes ON item;"


def test_a_trigger_can_be_the_purpose_of_an_update():
    trigger = TriggerFacts("touch", "item", 1, "before", True, ("update",), "touch()", "CREATE TRIGGER touch")
    assert judged(ITSELF, triggers=(trigger,)) == []
    assert judged(ITSELF, triggers=(replace(trigger, enabled=False),))
    assert judged(ITSELF, triggers=(replace(trigger, events=("insert",)),))


def state(share=0.999, **facts):
    return a_column(
        "state", "text", null_fraction=0.0, common=(("online", share), ("lost", 1 - share)), **facts
    )


def reported(*, assigned=({"state": "online"},) * 12, column=None, others=(), **table):
    known = {"rows": 20_000.0, "analysed_us": BEGUN_US - 1, "modified": 6_000, **table}
    return judged(
        ONLINE, statement={"assigned": assigned}, table=known, others=others, columns=[column or state()]
    )


@pytest.mark.parametrize(
    "facts",
    [
        {"assigned": ({"state": "online"},) * 11},
        {"assigned": ({"state": "online"},) * 11 + ({"state": "lost"},)},  # set and cleared by one template
        {"assigned": ({},) * 12},
        {"column": state(0.5)},
        {"column": a_column("state", "text")},
        {"inserted": 6_000},  # new rows get their state later
        {"analysed_us": None},
        {"modified": 60_000},  # the statistics are older than many changes
        # Analysed during the watch: a job that had just set all rows leaves hardly an update after it.
        {"analysed_us": BEGUN_US + 1, "modified": 90},
        {"rows": 200_000_000.0},  # a sample of so many rows misses too many of them
        {"updated": 60_000},  # updates of unknown statements
    ],
)
def test_values_that_prove_nothing_are_no_finding(facts):
    assert reported(**facts) == []


def test_another_statement_that_sets_the_column_makes_updates_necessary():
    lost = {"number": 1, "rows": 6_000}
    twice = {"updated": 12_000, "modified": 12_000}
    other = update("UPDATE item SET state = $1 WHERE state = $2", **lost)
    assert reported(others=[other], **twice) == []
    assert reported(others=[update("UPDATE item SET note = $1 WHERE id = $2", **lost)], **twice)


def logged(unchanged, *, fast=100):
    log = replace(log_result(), histogram=(fast, *([0] * 9)))
    one = update(ONLINE, rows=None, repeated=(unchanged, 1_000))
    seen = replace(evidence([spent()], [one]), database=None, log=log)
    return found(seen)


def test_the_constants_of_an_update_are_read_from_its_text():
    assert assigned_values(
        "UPDATE t SET a = 'x', b = -5, c = true, d = NULL, e = '1'::text WHERE id = $1"
    ) == {
        "a": "x",
        "b": "-5",
        "c": "t",
        "d": None,
        "e": "1",
    }
    for text in ("UPDATE t SET a = $1", "UPDATE t SET a = 1, b = now()", "UPDATE t SET a[1] = 2", "SELECT 1"):
        assert assigned_values(text) == {}


def test_what_is_found_word_for_word():
    compare_findings("redundant_updates", [
        ("the time of finding the row is not part of the bill", judged(ITSELF, wait="CPU"),
         judged(ITSELF, statement={"blocks": 6_000_000})),
        ("an upsert that sets its key again rewrites the rows that exist",
         judged(UPSERT, table={"inserted": 600}), judged(UPSERT, table={"inserted": 6_000}),
         judged(UPSERT, columns=[a_column("name", "citext", "tag")])),
        ("a trigger that skips updates changes what others return", judged(ITSELF),
         judged(ITSELF,
                others=[update("UPDATE item SET state = $1 WHERE id = $2 RETURNING note",
                               number=1)])),
        # 20 of 20 000 rows had another value, so at most 20 of 6 000 updates changed one.
        ("a constant that nearly all rows have already changes nothing", reported()),
        ("null is a value too",
         reported(assigned=({"state": None},) * 12,
                  column=a_column("state", "text", null_fraction=1.0))),
        ("an analyse during the watch counts only later updates",
         reported(analysed_us=BEGUN_US + 1, modified=3_000)),
        ("a log shows updates that assign the same values again", logged(900)),
        ("a log that lacks statements proves nothing", logged(500), logged(900, fast=0)),
        ("an update that can change something is no finding",
         *(judged(f"UPDATE item SET {change}") for change in (
             "note = state WHERE id = $1", "note = note, state = $1 WHERE id = $2",
             "note = o.note FROM other o WHERE o.id = item.id", "note = note || $1 WHERE id = $2",
             "note = $1 WHERE id = $2"))),
        ("an upsert that can change something is no finding",
         *(judged(f"INSERT INTO tag (name) VALUES ($1) ON CONFLICT (name) DO {change}") for change in (
             "UPDATE SET id = EXCLUDED.id", "UPDATE SET name = EXCLUDED.name WHERE $2", "NOTHING"))),
    ])  # fmt: skip
