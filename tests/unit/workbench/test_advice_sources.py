"""Sources of advice: connection strings, logs and stored runs are told apart by what they are."""

import pytest

from uncork.errors import UsageError
from uncork.workbench.advice.sources import tell_apart


def test_without_sources_the_server_of_the_environment_is_watched(tmp_path):
    found = tell_apart(tmp_path, [])
    assert (found.server, found.folders, found.logs) == ("", (), ())


def test_a_server_and_its_logs(tmp_path):
    log = tmp_path / "today.log"
    log.write_text("")
    found = tell_apart(tmp_path / "runs", ["postgresql:///shop", str(log)])
    assert (found.server, found.logs) == ("postgresql:///shop", (str(log),))
    assert tell_apart(tmp_path, ["host=db dbname=shop"]).server == "host=db dbname=shop"


def test_an_address_of_objects_is_a_log_and_no_server(tmp_path):
    found = tell_apart(tmp_path, ["s3://logs/error/", "postgres://h/shop", "https://h/a.log?x=1"])
    assert (found.server, found.logs) == ("postgres://h/shop", ("s3://logs/error/", "https://h/a.log?x=1"))


def test_what_does_not_exist_is_refused_with_what_to_write(tmp_path):
    with pytest.raises(UsageError, match=r'shop: there is no such log file or run .*write "dbname=shop"'):
        tell_apart(tmp_path / "runs", ["shop"])


def test_two_servers_are_refused(tmp_path):
    with pytest.raises(UsageError, match="one server"):
        tell_apart(tmp_path, ["postgresql:///shop", "dbname=other"])
