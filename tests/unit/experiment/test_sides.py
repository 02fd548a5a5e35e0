"""The two sides of a guard as they are written: read, or one message that says what may stand there."""

import pytest

from uncork.errors import UsageError
from uncork.experiment.guard.sides import Side, parse_side


def test_a_side_that_says_nothing_is_as_the_file_has_it():
    assert parse_side("baseline", []) == Side("baseline")
    assert Side("baseline").says == ()


def test_every_kind_is_read():
    side = parse_side(
        "candidate",
        [
            "setting=work_mem:4MB",
            "setting=auto_explain.log_format:json",
            "value=key:a:b=c",
            "env=api.POOL:10",
            "env=api.MODE:",
            "variant=uuid",
            "commit=HEAD~1",
            "dsn=host=h password=secret",
            "image=registry:5000/app:1.2",
            "url=http://127.0.0.1:8080",
        ],
    )
    assert side == Side(
        "candidate",
        variant="uuid",
        commit="HEAD~1",
        dsn="host=h password=secret",
        settings=(("work_mem", "4MB"), ("auto_explain.log_format", "json")),
        values=(("key", "a:b=c"),),
        environment=(("api", "POOL", "10"), ("api", "MODE", "")),
        image="registry:5000/app:1.2",
        url="http://127.0.0.1:8080",
    )
    assert side.says == ("variant", "commit", "dsn", "setting", "value", "env", "image", "url")
    assert "secret" not in repr(side)


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["work_mem"], "--candidate work_mem: write one of variant=NAME, commit=REV"),
        (["settings=a:b"], '--candidate settings=a:b: did you mean "setting"? write one of variant=NAME'),
        (["setting=work_mem"], "--candidate setting=work_mem: write setting=NAME:VALUE"),
        (["setting=:4MB"], "write setting=NAME:VALUE"),
        (["setting=work mem:4MB"], '"work mem" is not a valid name of a setting'),
        (["setting=a:1", "setting=a:2"], "a is given twice for the candidate; remove one"),
        (["env=POOL:10"], "write env=SERVICE.NAME:VALUE"),
        (["env=api.1:10"], "write env=SERVICE.NAME:VALUE"),
        (["env=a.B:1", "env=a.B:2"], "a.B is given twice"),
        (["commit="], "--candidate commit=: has no value; write commit=REV"),
        (["commit=a", "commit=b"], "commit is given twice for the candidate"),
        (["dsn=password=secret", "dsn=password=secret2"], "--candidate dsn=…: dsn is given twice"),
        (["host=h password=secret"], "--candidate …: write one of"),
        (["postgres://me:secret@host/db"], "--candidate …: write one of"),
    ],
)
def test_what_cannot_be_read_is_told_with_what_may_stand_there(texts, told):
    with pytest.raises(UsageError) as error:
        parse_side("candidate", texts)
    assert told in str(error.value)
    assert "secret" not in str(error.value)
