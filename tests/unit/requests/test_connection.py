"""The running server that options name as psql names it, and when a password is asked for."""

import pytest

from uncork.errors import ConnectError, UsageError
from uncork.requests.connection import measured_server, watched_server
from uncork.requests.experiment_options import NewOptions, RunOptions
from uncork.requests.option import from_words
from uncork.requests.profile_options import DatabaseOptions


def never(_):
    return None


def typed(options):
    return "s3cret" if options.password else None


def run(**words):
    return measured_server(from_words(RunOptions, words), typed)


@pytest.mark.parametrize(("words", "dsn", "port"), [
    ({}, None, None),
    ({"port": "5433"}, None, 5433),
    ({"dsn": "service=x"}, "service=x", None),
    ({"database_name": "shop"}, "dbname=shop", None),
    ({"host": "db", "port": "5433", "user": "me"}, "host=db port=5433 user=me", None),
    ({"database_name": "postgresql://db/shop", "user": "me"}, "user=me dbname=shop host=db", None),
    ({"database_name": "shop", "password": True}, "dbname=shop password=s3cret", None),
    ({"dsn": "service=x", "password": True}, "service=x password=s3cret", None),
    ({"dsn": "service=x", "no_password": True}, "service=x", None),
])  # fmt: skip
def test_a_verb_that_can_start_a_server_measures_on_the_one_that_is_named(words, dsn, port):
    found = run(**words)
    assert (set((found.dsn or "").split()), found.port) == (set((dsn or "").split()), port)
    assert found.host is found.user is found.database_name is None


def test_a_port_alone_names_a_server_for_a_verb_that_starts_none():
    options = from_words(NewOptions, {"port": "5433"})
    assert measured_server(options, never, starts=False).dsn == "port=5433"


@pytest.mark.parametrize(("words", "message"), [
    ({"dsn": "service=x", "host": "db"}, "--dsn already gives the connection: put -h/--host into it"),
    ({"database_name": "shop", "pg_bin": "/"}, "-d/--dbname names a running server: leave out --pg-bin"),
    ({"password": True}, "-W/--password asks for the password of a running server, but none is named"),
    ({"port": "5433", "password": True}, "but none is named"),
    ({"host": "db", "password": True, "no_password": True}, "-w/--no-password never does: leave one out"),
])  # fmt: skip
def test_names_that_contradict_each_other_are_refused_before_anybody_is_asked(words, message):
    options = from_words(RunOptions, words)
    with pytest.raises(UsageError, match=message):
        measured_server(options, lambda _: pytest.fail("asked"))


def test_a_connection_string_that_is_wrong_is_refused_without_its_words():
    with pytest.raises(ConnectError, match="the connection string is not valid") as caught:
        run(database_name="password=s3cret host")
    assert "s3cret" not in str(caught.value)


def test_an_argument_and_d_name_the_same_database_or_are_refused():
    options = from_words(DatabaseOptions, {"database_name": "shop", "host": "db", "password": True})
    server = watched_server(options, None, typed)
    assert (server.host, server.database, server.password) == ("db", "shop", "s3cret")
    assert server == watched_server(options, "shop", typed)
    assert "s3cret" not in repr(server)
    address = server.address()
    assert (address.host, address.database, address.password) == ("db", "shop", "s3cret")
    with pytest.raises(UsageError, match="two databases are named") as caught:
        watched_server(options, "postgresql://me:hidden@db/shop", typed)
    assert "hidden" not in str(caught.value)
