"""The two sides of a guard as they are written: read, or one message that says what may stand there."""

import shlex

import pytest

from fakes.goldens import compare_answers
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


def test_what_cannot_be_read_is_told_with_what_may_stand_there():
    def answer(words):
        with pytest.raises(UsageError) as error:
            parse_side("candidate", shlex.split(words))
        assert "secret" not in str(error.value)
        return str(error.value)

    compare_answers("requests/guard_sides", answer)
