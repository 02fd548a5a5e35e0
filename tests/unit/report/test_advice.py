"""Advice: what comes first in its answer, and how a change is proven."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.cures import missing_index, pool_cure, proven_cure
from fakes.database_results import database_result
from fakes.goldens import compare_cases, spoken
from uncork.model.database.finding import Candidate
from uncork.model.database.missing import HiddenWork, Unplanned
from uncork.model.results.advice import AdviceResult, AdviceSource, LookedAt
from uncork.report.advice.document import answer_advice, build_advice_document
from uncork.report.cure.answer import answer_cure
from uncork.report.cure.document import build_cure_document
from uncork.report.database.answer import answer_database
from uncork.report.database.document import build_database_document
from uncork.report.findings import hidden_sentences, proof_steps, unplanned_words
from uncork.report.headline import fits, split_answer

INDEX = missing_index()
POOL = replace(
    pool_cure().tried[0].finding,
    templates=(),
    candidates=(Candidate("client", "Keep connections.", habit="connects", per_hour=3600.0),),
)
WATCHED = AdviceSource(kind="database", run="database-1", server="ada@db.example:5432/shop", seconds=60.0)


def proofs(*findings):
    result = AdviceResult(
        sources=(WATCHED,),
        answer="",
        reasons=(),
        findings=findings,
        missing=(),
        looked_at=LookedAt(60, 1, 1, 1, 1, 1),
        sessions=1.0,
        reproduce="uncork advise",
        uncork_version="1",
    )
    commands = [step.command for step in build_advice_document(result).steps if step.command]
    return [one.split("'")[0] + one.split("'")[-1] for one in commands if one.startswith("uncork")]


@pytest.mark.parametrize(
    ("findings", "commands"),
    [
        ([INDEX], ["uncork cure database-1 ", "uncork advise database-1  --experiment 1 > question.toml"]),
        ([POOL], ["uncork cure database-1 "]),
        (
            [POOL, INDEX],
            ["uncork cure database-1 ", "uncork advise database-1  --experiment 2 > question.toml"],
        ),
        ([replace(POOL, candidates=())], []),
    ],
    ids=["an index", "a pool", "a pool before an index", "nothing to try"],
)
def test_only_commands_that_can_prove_a_change_are_named(findings, commands):
    assert proofs(*findings) == commands


def test_the_proof_reads_the_logs_that_the_advice_read():
    log = AdviceSource("log-1", "log", "a b.log", 60.0, ("/var/log/a b.log",))
    many = replace(log, files=tuple(f"/var/log/pg/{number}.log" for number in range(9)))
    for source, options in ((log, " --logs '/var/log/a b.log'"), (many, " --logs /var/log/pg")):
        (step,) = proof_steps([INDEX], "database-1", WATCHED.server, source.files)
        assert step.command.startswith("uncork cure database-1 ") and step.command.endswith(options)


ROLE = 'Ada "the watcher"'
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


GROUPS = (
    UNREADABLE,
    Unplanned("no values", (3,), 0.1, "ada", "run EXPLAIN with the values of a call"),
    Unplanned("no plan", (4, 5, 6), 0.0, "ada"),
)


def test_answers_reasons_and_steps():
    index = missing_index()
    advised = {
        "most is hidden": advice(MOST),
        "most is hidden beside a finding": advice(MOST, index),
        "a part is hidden": advice(PART),
        "a part is hidden beside a finding": advice(PART, index),
        "little is hidden": advice(LITTLE),
        "tables that may not be read": advice(None, index, unplanned=(UNREADABLE,)),
        "tables of little time": advice(None, unplanned=(replace(UNREADABLE, share=0.01),)),
        "statements without a plan": advice(None, unplanned=GROUPS),
    }
    cases = [(name, one.answer, *spoken(build_advice_document(one))) for name, one in advised.items()]
    watched = answer_database(replace(database_result(findings=()), hidden=PART))
    cases.append(("a watched server", watched.answer, *spoken(build_database_document(watched))))
    cures = {
        "a cure that proved nothing": {"tried": (), "chosen": None, "hidden": MOST},
        "a cure": {"hidden": PART},
    }
    for name, changes in cures.items():
        cure = answer_cure(replace(proven_cure(), **changes))
        cases.append((name, cure.answer, *spoken(build_cure_document(cure))))
    assert all(fits(split_answer(answer)[0]) for _, answer, *_ in cases)
    compare_cases("advise/hidden_work", cases)


def test_an_unknown_share_and_one_of_sessions_have_words_of_their_own():
    unknown, _ = hidden_sentences(replace(MOST, share=None, busy=False))
    assert unknown == f'Role "{ROLE}" may not see what the sessions of other roles do'
    sessions, _ = hidden_sentences(replace(MOST, base="sessions"))
    assert sessions == f'Role "{ROLE}" may not see 97 % of the active sessions in this database'
    assert unplanned_words(()) == ""
