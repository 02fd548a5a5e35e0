from __future__ import annotations

import subprocess
import sys
from importlib.machinery import ModuleSpec

import postgast
import pytest

from uncork import _native
from uncork.errors import SetupError
from uncork.profile import grammar
from uncork.profile.grammar import group, identify


def together(*statements):
    return group([(text.lower(), text) for text in statements]).groups


@pytest.mark.parametrize(
    "statements",
    [
        (b"SELECT a FROM t WHERE b = 1", b"select a from t where b = $1"),
        (b"SELECT a FROM t WHERE b IN (1, 2::int, 3)", b"SELECT a FROM t WHERE b IN ('x'::text)"),
        (b"INSERT INTO t VALUES (1, 'a')", b"INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)"),
        (b"SELECT a FROM t AS u", b"SELECT a FROM t u"),
        (b"SELECT 1 /* who */", b"SELECT 2"),
        (b'FETCH FORWARD 1 FROM "_django_curs_1_sync_2"', b'FETCH FORWARD 1 FROM "_django_curs_1_sync_3"'),
        (b'CLOSE "_django_curs_1_sync_2"', b'CLOSE "_django_curs_1_sync_3"'),
        (b'DECLARE "c_1" CURSOR FOR SELECT a FROM t', b'DECLARE "c_2" CURSOR FOR SELECT a FROM t'),
        (b"SAVEPOINT s1_x1", b"SAVEPOINT s1_x2"),
        (b"ROLLBACK TO SAVEPOINT s1_x1", b"ROLLBACK TO SAVEPOINT s1_x2"),
    ],
)
def test_what_differs_in_literals_and_lengths_of_lists_is_one(statements):
    assert together(*statements) == [0, 0]


def test_templates_that_are_parsed_in_threads_have_the_same_groups():
    kinds = [b"SELECT a FROM t_%d WHERE b = 1", b"SELECT a FROM t_%d WHERE b = 2", b"SELECT %d FROM FROM"]
    statements = [kind % (10 + number) for number in range(500) for kind in kinds]
    found = together(*statements)
    assert found == [place - (place % 3 == 1) for place in range(1_500)]
    assert [together(*statements[at : at + 3]) for at in (0, 747)] == [[0, 0, 2]] * 2


def test_tables_whose_names_differ_in_digits_are_not_one():
    assert together(b"SELECT a FROM t_17", b"SELECT a FROM t_18", b"SELECT a FROM t_17") == [0, 1, 0]
    cursors = [b"DECLARE c CURSOR FOR SELECT a FROM t_%d" % number for number in (17, 18)]
    assert together(*cursors) == [0, 1]
    assert together(b"EXECUTE s1", b"EXECUTE s2") == [0, 1]


def test_what_the_grammar_refuses_stays_by_itself():
    statements = [b"SELECT 'cut sho"] * 2 + [b"no SQL at all", b"\xff", b"SELECT\0 1", b"", b"SELECT 1"]
    assert together(*statements) == list(range(len(statements)))


def test_the_place_is_that_of_the_first_one():
    assert together(b"SELECT 1", b"BEGIN", b"SELECT 2", b"begin") == [0, 1, 0, 1]
    assert together() == []


def test_an_identity_is_the_same_in_any_log():
    one = group([(b"select ? from t_7", b"SELECT 1 FROM t_7"), (b"select ?", b"SELECT 'cut")]).identities
    other = group([(b"commit", b"COMMIT"), (b"select ? from t_7", b"SELECT $1 FROM t_7")]).identities
    assert one == [other[1], None]
    assert other[1].endswith(" t_7")


def test_templates_are_grouped_without_the_messages_of_parse_trees():
    code = (
        "import sys\n"
        "from uncork.profile.grammar import group\n"
        "print(group([(b'select ?', b'SELECT 1'), (b'select ?', b'SELECT 2'), (b'x', b'SELEC')]).groups)\n"
        "print([name for name in ('postgast', 'google.protobuf') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[0, 0, 2]", "[]"]


@pytest.mark.parametrize(
    "statement",
    ["SELECT a FROM t WHERE b = 'ü' AND c IN (1, 2)", "SELECT 1;" * 3, "", f"SELECT {'1+' * 40_000}1"],
)
def test_the_fingerprint_is_postgasts(statement):
    assert identify(b"t", statement.encode()) == postgast.fingerprint(statement).hex


def test_what_is_nested_deeply_does_no_harm_in_a_thread():
    signs = [(b"(", b")"), (b"- ", b""), (b"", b"+1")]
    nested = [b"SELECT " + before * 33_000 + b"1" + after * 33_000 for before, after in signs]
    alone = [identify(b"t", one) for one in nested]
    assert alone[:2] == [None, None]
    many = [*[b"SELECT a FROM t"] * 1_000, *nested]  # the last part is that of a thread
    assert group([(b"t", one) for one in many]).identities[1:] == alone


def test_without_the_library_one_message_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(grammar, "_grammar", grammar._grammar.__wrapped__)
    broken = tmp_path / "libpg_query.so"
    broken.write_bytes(b"no library")
    for package, told in [
        (None, "postgast is not installed; install uncork again"),
        (
            ModuleSpec("postgast", None, origin=str(tmp_path / "__init__.py")),
            f"cannot be loaded .*{broken}: .*; install",
        ),
    ]:
        monkeypatch.setattr(grammar, "find_spec", lambda _, found=package: found)
        with pytest.raises(SetupError, match=told):
            identify(b"select ?", b"SELECT 1")


def test_a_library_that_is_missing_is_named():
    with pytest.raises(OSError, match=r"nowhere/libpg_query\.so: .*No such file"):
        _native.Grammar("nowhere/libpg_query.so")
