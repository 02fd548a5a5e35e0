"""Files of one server that were not read in the order of time are named, with what that means."""

from __future__ import annotations

from dataclasses import replace

from fakes.log_results import log_result
from uncork.report.log.answer import order_warnings, overlap_refusal

BEGIN_US = 1_767_225_600_000_000
"""2026-01-01 00:00:00 UTC."""


def files_of(*files: tuple[str, int | None, int], server: str = "", dialects: tuple[str, ...] = ()):
    """Return files: name, and the seconds of the first and the last entry."""
    (first, *_) = log_result().files
    return tuple(
        replace(
            first,
            name=name,
            server=server,
            dialect=dialects[place] if dialects else "stderr",
            first_us=None if begin is None else BEGIN_US + begin * 1_000_000,
            last_us=BEGIN_US + end * 1_000_000,
        )
        for place, (name, begin, end) in enumerate(files)
    )


def warnings(*files: tuple[str, int | None, int], withheld: tuple[str, ...] = (), **more) -> str:
    """Return the warnings on files; see `files_of`."""
    result = replace(log_result(), withheld=withheld, files=files_of(*files, **more))
    return "\n".join(order_warnings(result)).replace("\N{NO-BREAK SPACE}", " ")


def test_a_refusal_names_the_files_that_overlap_most():
    told = overlap_refusal(files_of(("a", 0, 60), ("b", 57, 600), ("c", 100, 590), dialects=("x", "x", "y")))
    assert told.startswith("b and c overlap in time") and told.endswith("name only files in one format")
    assert "name files that follow each other" in overlap_refusal(files_of(("a", 0, 60)))


def test_files_in_order_need_no_word():
    # Sessions write a moment later than others, also across a rotation.
    assert warnings(("a", 0, 60), ("b", 59, 120), ("pgbouncer", None, 0), ("c", 120, 130)) == ""


def test_files_that_overlap_are_named_with_the_time_and_what_it_means():
    text = warnings(("a", 0, 600), ("b", 300, 900), ("c", 890, 900), ("d", 0, 5), withheld=("",))
    assert text.startswith(
        "Files of one server overlap in time: a and b, 2026-01-01 00:05:00 to 00:10:00 UTC; b and c, "
        "2026-01-01 00:14:50 to 00:15:00 UTC; and 1 other pair. Read one after the other"
    )
    assert "uncork reports nothing of this server that follows from it: transactions" in text
    assert "--servers by-folder" in text and "count twice" not in text
    named = warnings(
        ("a", 0, 600), ("b", 0, 600), server="db1", dialects=("stderr", "csvlog"), withheld=("db1",)
    )
    assert "a and b of server db1, 2026" in named
    assert "count twice: read only one of the formats" in named and "--servers" not in named


def test_where_a_busy_server_begins_its_next_file_sessions_are_complete():
    text = warnings(("a", 0, 3_600), ("b", 3_580, 7_200))
    assert "a and b, 2026-01-01 00:59:40 to 01:00:00 UTC. As long as each session logs in order" in text
    assert "reports nothing" not in text


def test_a_log_that_was_read_too_late_is_named():
    text = warnings(("a", 600, 900), ("b", 0, 500), server="db1")
    assert text.startswith(
        "Logs were not read in the order of time: b ends at 2026-01-01 00:08:20 UTC, before a of server db1 "
        "ends"
    )
