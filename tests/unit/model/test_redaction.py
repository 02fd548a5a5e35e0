"""Secrets are neither stored nor shown."""

import subprocess

import pytest

from fakes.goldens import compare_answers
from uncork.model.redaction import (
    SECRET_HEADERS,
    is_secret,
    redact,
    redact_word,
    shell_command,
    without_literal_secrets,
    without_secrets,
)


def test_a_connection_string_is_kept_without_its_password():
    compare_answers("requests/redacted", redact)


@pytest.mark.parametrize("password", ["a&hunter2", r"a\ hunter2"])
def test_an_unquoted_password_is_taken_out_whole(password):
    assert redact(f"host=h password={password} user=u") == "host=h password=*** user=u"


@pytest.mark.parametrize("header", SECRET_HEADERS)
def test_a_secret_header_loses_its_value_in_every_way_of_writing_it(header):
    for word in (f"{header}: hush", f"-H{header.upper()}:hush", f"--header={header} : hush\nhush"):
        assert "hush" not in redact_word(word)
    assert redact_word("X-B: c") == "X-B: c"
    assert redact_word("--dsn=postgresql://u:hunter2@h/db") == "--dsn=postgresql://u:***@h/db"


@pytest.mark.parametrize(("words", "variable", "value"), [
    (["-H", "Authorization: Bearer hush"], "AUTHORIZATION", "Bearer hush"),
    (["-HX-API-Key: hu$h`"], "X_API_KEY", "hu$h`"),
    (["--header=Cookie: a=hush", "-H", 'X-B: "$c"'], "COOKIE", "a=hush"),
    (["--postgres", "postgresql://u:hush@h/db?x=1"], "PGPASSWORD", "hush"),
    (["--dsn=host=h password=hush dbname=a$b"], "PGPASSWORD", "hush"),
    (["https://h/a.log?X-Amz-Date=1&X-Amz-Signature=hush"], "SIGNATURE",
     "X-Amz-Date=1&X-Amz-Signature=hush"),
    (["https://h/a.log?sv=1&sig=hush%3D"], "SIGNATURE", "sv=1&sig=hush%3D"),
    (["https://me:hush@h/a.log"], "HTTP_PASSWORD", "hush"),
])  # fmt: skip
def test_a_command_without_secrets_works_when_pasted(words, variable, value):
    command = shell_command(["printf", "%s\\n", *map(without_secrets, words)])
    assert value not in command
    assert f"${{{variable}:?}}" in command
    done, unset = (
        subprocess.run(["sh", "-c", command], env=known, capture_output=True, text=True, check=False)
        for known in ({variable: value}, {})
    )
    assert done.stdout.splitlines() == words
    assert unset.returncode != 0
    assert variable in unset.stderr


def test_names_tell_what_is_secret():
    assert all(map(is_secret, ("PGPASSWORD", "api_key", "Authorization", "Set-Cookie", "GITHUB_TOKEN")))
    assert not any(map(is_secret, ("PGHOST", "POOL_SIZE", "Accept")))


def test_sources_of_functions_lose_passwords_of_connection_strings_alone():
    compare_answers("requests/redacted_sources", without_literal_secrets)
