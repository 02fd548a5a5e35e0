"""The files of each server are read in the order of time, however they are named."""

import gzip
from pathlib import Path

import pytest

from uncork.errors import UsageError
from uncork.profile.logs import LogRequest
from uncork.workbench.profile.log_files import in_order, in_order_of_time

LINE = "2026-01-01 08:00:{second:02}.000 UTC [7] LOG:  x\n"


@pytest.mark.parametrize(
    ("servers", "begins", "order"),
    [
        ("", (), ()),
        ("a", (None,), (0,)),
        ("aaa", (3, 1, 2), (1, 2, 0)),
        ("abab", (4, 3, 2, 1), (2, 3, 0, 1)),
        # Logs whose begin is unknown keep their places, and equal times the order in which they are named.
        ("aaaa", (5, None, 1, 1), (2, 1, 3, 0)),
        ("aabb", (1, 2, None, None), (0, 1, 2, 3)),
    ],
)
def test_logs_take_each_others_places_by_server(servers, begins, order):
    assert in_order(tuple(servers), begins) == order


def log(folder: Path, name: str, second: int) -> Path:
    path, text = folder / name, LINE.format(second=second).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def test_rotated_files_are_read_oldest_first(tmp_path: Path):
    new, old, oldest = (log(tmp_path, *one) for one in (("log", 30), ("log.1", 20), ("log.2.gz", 10)))
    nothing, stream = tmp_path / "nothing", Path("-")
    nothing.write_text("")
    request = LogRequest((new, nothing, old, stream, oldest, tmp_path / "missing"))
    assert in_order_of_time(request).paths == (oldest, nothing, old, stream, new, tmp_path / "missing")
    apart = LogRequest((new, old, oldest), servers=("a", "b", "b"))
    assert in_order_of_time(apart).paths == (new, oldest, old)


def test_a_prefix_that_is_none_is_refused(tmp_path: Path):
    paths = (log(tmp_path, "a", 1), log(tmp_path, "b", 2))
    with pytest.raises(UsageError, match="log_line_prefix"):
        in_order_of_time(LogRequest(paths, prefix="%z"))
