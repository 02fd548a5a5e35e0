"""What language models read about the tools, and what arguments are refused."""

from __future__ import annotations

import json

import jsonschema
import pytest

from uncork.errors import SetupError, UsageError
from uncork.mcp.call_process import answered
from uncork.mcp.job import Job, opened
from uncork.mcp.tools import TOOLS, file_within


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_each_tool_and_argument_is_described_in_whole_sentences(tool):
    description, schema = tool.described()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object" and schema["additionalProperties"] is False
    for text in (description, *(one["description"] for one in schema["properties"].values())):
        assert text[0].isupper() and text.endswith(".") and "  " not in text
    assert "title" not in json.dumps(schema)
    assert tool.measures == (tool.name in {"run_experiment", "advise_database"})


@pytest.mark.parametrize(
    ("tool", "given", "message"),
    [
        ("query_run", {}, "sql is required"),
        ("query_run", {"sql": "", "max_rows": 0}, "max_rows: input should be greater than or equal to 1"),
        ("query_run", {"sql": "SELECT 1", "rows": 5}, "there is no argument rows"),
        ("list_runs", {"last": 201}, "last: input should be less than or equal to 200"),
        ("compare_runs", {"runs": []}, "runs: list should have at least 1 item after validation, not 0"),
        ("advise_database", {"dsn": ["password=secret"]}, "dsn: input should be a valid string"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named_without_their_values(tool, given, message):
    with pytest.raises(UsageError) as refused:
        TOOLS[tool].read(given)
    assert str(refused.value) == message


@pytest.mark.parametrize("word", ["../../etc", "/etc", "..", ".", ".names", "runs/x", "a\0b", "etc", "*"])
def test_only_listed_runs_are_opened(tmp_path, monkeypatch, word):
    monkeypatch.chdir(tmp_path)
    runs = tmp_path / "runs"
    for folder in (tmp_path / "etc", runs / "one"):
        folder.mkdir(parents=True)
        (folder / "manifest.json").write_text("{}")
    job = Job(str(runs), print)
    with pytest.raises(SetupError, match="there is no run"):
        opened(job, word)


@pytest.mark.parametrize(
    "word",
    ["../x.toml", "/etc/passwd", "link.toml", "sub/../../x.toml", "notes.txt", "a\0b.toml", "loop.toml"],
)
def test_experiment_files_are_within_the_folder(tmp_path, word):
    here = tmp_path / "here"
    (here / "sub").mkdir(parents=True)
    (here / "link.toml").symlink_to("/etc/passwd")
    (here / "loop.toml").symlink_to("loop.toml")
    with pytest.raises(UsageError):
        file_within(word, here)
    assert file_within("sub/../x.toml", here) == here.resolve() / "x.toml"


def failing(error):
    class Failing(TOOLS["advise_database"]):
        def answer(self, job):
            job.tell("step")
            raise error

    return Failing


def test_errors_are_one_text_and_never_show_the_password_that_was_given(capsys):
    given = {"dsn": "postgresql://me:s3cr%21t@db/shop"}
    error = UsageError("cannot reach postgresql://me:s3cr%21t@db/shop: s3cr!t is wrong")
    error.add_note("kept what was measured")
    found = answered(failing(error), given, None)
    assert found == {
        "error": "cannot reach postgresql://me:***@db/shop: *** is wrong; kept what was measured"
    }
    odd = answered(failing(ValueError("a\nb password=s3cr!t")), {"dsn": "user=me password='s3cr!t'"}, None)
    assert odd == {"error": "unexpected error in uncork, please report it: ValueError: a b password=***"}
    assert capsys.readouterr().err == "step\nstep\n"
