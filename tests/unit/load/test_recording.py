"""A recording becomes a replay, with a connection for each session, or a mix."""

import pytest

from uncork.errors import UsageError
from uncork.load.recording import mixed, parse_transactions, replayed, transaction_line
from uncork.model.database.recording import RecordedTransaction
from uncork.model.load import LoadScript

SCRIPTS = (LoadScript("a.sql", 1, "select :p1_1;"), LoadScript("b.sql", 1, "select 1;"))


def one(at, session, script="b.sql", took=10, **values):
    return RecordedTransaction(at, took, session, script, values)


def test_a_line_is_read_as_it_was_written():
    sent = (one(0, 0, "a.sql", p1_1="it's \u2028\n"), one(5, 1, p1_1=None))
    text = "".join(f"{transaction_line(each)}\n" for each in reversed(sent))
    assert parse_transactions(text, "x") == sent


@pytest.mark.parametrize("line", ["{", "{}", "[1]", '{"at_us": -1, "took_us": 1, "session": 0}', "7"])
def test_a_wrong_line_is_named(line):
    with pytest.raises(UsageError, match="x:2: this is no transaction"):
        parse_transactions(f"{transaction_line(one(0, 0))}\n{line}\n", "x")
    with pytest.raises(UsageError, match="has no transactions"):
        parse_transactions("\n", "x")


def test_sessions_share_a_connection_only_if_they_were_not_open_together():
    sent = [one(0, 7), one(5, 8), one(20, 7), one(31, 9), one(32, 8), one(60, 4)]
    recorded, arrivals, clients = replayed(sent, SCRIPTS, "simple", 1.0)
    # Session 7 ends at 30, before session 9 begins; session 8 ends at 42.
    assert (recorded.clients, clients) == ((0, 1, 0, 0, 1, 0), 2)
    assert arrivals.offsets_ns == (0, 5_000, 20_000, 31_000, 32_000, 60_000)
    assert (recorded.sessions, recorded.speed) == (4, 1.0)


def test_a_faster_replay_has_shorter_pauses():
    sent = [one(0, 0, w2="100"), one(1_000, 0, "a.sql", w2="7", p1_1="it's", p1_2=None)]
    recorded, arrivals, _ = replayed(sent, SCRIPTS, "simple", 2.0)
    assert arrivals.offsets_ns == (0, 500_000)
    assert recorded.scripts == (1, 0)
    assert recorded.values == {"p1_1": (None, "'it''s'"), "p1_2": (None, "NULL"), "w2": ("50", "4")}
    bound = replayed(sent, SCRIPTS, "prepared", 1.0)[0]
    assert bound.values == {"p1_1": (None, "it's"), "p1_2": (None, None), "w2": ("100", "7")}


def test_a_mix_has_every_transaction_in_random_order():
    sent = [one(number, 0, "a.sql", p1_1=str(number), w2="5") for number in range(50)]
    recorded = mixed(sent, SCRIPTS, "simple", 3)
    assert recorded == mixed(sent, SCRIPTS, "simple", 3) and recorded.clients == ()
    assert recorded.values["p1_1"] != tuple(f"'{number}'" for number in range(50))
    assert sorted(recorded.values["p1_1"]) == sorted(f"'{number}'" for number in range(50))


def test_what_a_recording_lacks_is_refused():
    with pytest.raises(UsageError, match=r"has no script c\.sql"):
        mixed([one(0, 0, "c.sql")], SCRIPTS, "simple", 1)
    with pytest.raises(UsageError, match="leave out -M"):
        replayed([one(0, 0, t1_1="5")], SCRIPTS, "extended", 1.0)
