"""Which files of a folder can be logs."""

import bz2
import gzip

import pytest

from uncork.errors import UsageError
from uncork.workbench.profile.log_files import could_be_log, expand, log_request

ENTRY = b"2026-01-01 00:00:01.000 UTC [7] u@d app LOG:  duration: 1.000 ms  statement: SELECT 1\n"


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("postgresql.log", ENTRY),
        ("postgresql.log.1", ENTRY),
        ("server", b"SELECT 1\n" * 100 + ENTRY),
        ("log.csv", b'2026-01-01 00:00:00.000 UTC,"u","d",7,,1.2,1,"idle",,1/1,0,LOG,00000,"x",,,,,,,,,\n'),
        ("log.json", b'{"timestamp":"2026-01-01","error_severity":"LOG","message":"x"}\n'),
        ("pgbouncer.txt", b"2026-01-01 00:00:00.000 UTC [1] LOG stats: 1 xacts/s\n"),
        ("some.log.gz", gzip.compress(ENTRY, mtime=0)),
        ("some.bz2", bz2.compress(ENTRY)),
        ("some.tar", b"some.log" + b"\0" * 249 + b"ustar"),
        ("new.log", b""),
    ],
)
def test_logs_in_any_format_can_be_logs(name, head):
    assert could_be_log(name, head)


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("README.md", ENTRY),
        ("dump.sql.gz", gzip.compress(b"SELECT 1;", mtime=0)),
        ("postgresql.conf", b"log_statement = all  # LOG\n"),
        ("core", b"\x7fELF\0\0 LOG: "),
        ("letter.txt", b"Dear Sir or Madam,\nno log is this.\n"),
    ],
)
def test_other_files_cannot_be_logs(name, head):
    assert not could_be_log(name, head)


def test_a_folder_is_its_logs_and_says_what_it_skips(tmp_path):
    for name, data in (("b.log", ENTRY), ("a.log", ENTRY), ("README.md", ENTRY), (".hidden", b"x")):
        (tmp_path / name).write_bytes(data)
    assert [one.name for one in expand([tmp_path])] == ["a.log", "b.log"]
    found = log_request([str(tmp_path)], None, (None, None), 0)
    assert found.names == tuple(str(tmp_path / name) for name in ("a.log", "b.log"))
    assert found.skipped == (str(tmp_path / "README.md"),)
    # A file that is named is read, whatever it is.
    assert expand([tmp_path / "README.md"]) == [tmp_path / "README.md"]
    assert log_request([str(tmp_path / "README.md")], None, (None, None), 0).skipped == ()


def test_a_folder_without_logs_is_refused_with_what_it_has(tmp_path):
    with pytest.raises(UsageError, match="the folder is empty"):
        expand([tmp_path])
    (tmp_path / "db1").mkdir()
    with pytest.raises(UsageError, match=r"no logs, only folders; name them: .*/\*/$"):
        expand([tmp_path])
    for name in "abcd":
        (tmp_path / f"{name}.md").write_bytes(ENTRY)
    with pytest.raises(UsageError, match=r"the folder has no logs, only a\.md, b\.md, c\.md and more;"):
        expand([tmp_path])
