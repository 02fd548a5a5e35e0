"""Addresses by ssh, the commands that they lead to, and what failures mean."""

import shlex

import pytest

from uncork.errors import UsageError
from uncork.profile.objects.address import is_object_address, parse_object_address, ssh_words
from uncork.profile.objects.ssh import listing_command, range_command, reason_of, stat_command


@pytest.mark.parametrize(
    ("text", "words", "key"),
    [
        ("ssh://db1/var/log/a.log", ["--", "db1"], "var/log/a.log"),
        ("SSH://me@db1:2222/a b/*.gz", ["-p", "2222", "-l", "me", "--", "db1"], "a b/*.gz"),
        ("ssh://me@[::1]/", ["-l", "me", "--", "::1"], ""),
    ],
)
def test_an_address_names_a_machine_and_a_path(text, words, key):
    found = parse_object_address(text)
    assert is_object_address(text)
    assert (ssh_words(found), found.key) == (words, key)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ssh://db1", "names no file; write ssh://USER@HOST:PORT/PATH"),
        ("ssh://-oProxyCommand=touch/a", "names no file"),
        ("ssh://-l@db1/a", "names no file"),
        ("ssh://db1:ssh/a", "names no file"),
        ("ssh://me:hush@db1/a", "ssh://me@db1/a: ssh takes no password"),
    ],
)
def test_an_address_that_is_none_or_an_option_of_ssh_is_refused(text, message):
    with pytest.raises(UsageError, match=message) as refused:
        parse_object_address(text)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("key", ["a log", "$(touch x)", "it's; rm `x`", "-rf"])
def test_a_path_is_one_word_of_the_other_shell(key):
    for command in (stat_command(key), listing_command(key, 1), range_command(key, 10, 30)):
        assert f"/{key}" in shlex.split(command)
    assert range_command("a", 10, 30).endswith("tail -c +11 /a | head -c 20")
    assert "-maxdepth 2" in listing_command("var/", 2) and " /var " in listing_command("var/", 2)


def test_a_failure_is_reported_in_the_words_of_ssh_or_the_other_machine():
    assert reason_of(255, "") == "ssh: the connection ended"
    assert reason_of(255, "@@@\nx\nme@db1: Permission denied (publickey).\n").startswith(
        "ssh: x me@db1: Permission denied (publickey); uncork cannot type a password"
    )
    assert reason_of(1, "find: '/a': Permission denied\n") == "find: '/a': Permission denied"
    assert reason_of(127, "") == "the command on the other machine ended with status 127"
