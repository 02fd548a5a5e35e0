"""Standard streams whose reader went away, or whose place takes no more."""

import os
import sys
from contextlib import contextmanager

import pytest

from uncork.cli import app as streams
from uncork.errors import StoreError


@contextmanager
def streams_on(monkeypatch, out, err, encoding="utf-8"):
    """Put standard output and error on these descriptors, as the command line has them."""
    with os.fdopen(out, "w", encoding=encoding) as output, os.fdopen(err, "w", encoding=encoding) as error:
        monkeypatch.setattr(sys, "stdout", output)
        monkeypatch.setattr(sys, "stderr", error)
        streams.open_streams()
        try:
            yield
        finally:
            sys.stdout.close()
            sys.stderr.close()
            monkeypatch.undo()


def say(text, stream=None):
    stream = stream or sys.stdout
    stream.write(f"{text}\n")
    stream.flush()


def place(path):
    return os.open(path, os.O_WRONLY | os.O_CREAT)


def closed_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    return writer


def test_output_that_nobody_reads_goes_nowhere_and_the_verb_goes_on(monkeypatch):
    with streams_on(monkeypatch, closed_pipe(), place(os.devnull)):
        for _ in range(3):
            say("x" * 100_000)


def test_talk_that_nobody_hears_interrupts_once(monkeypatch):
    with streams_on(monkeypatch, place(os.devnull), closed_pipe()):
        with pytest.raises(KeyboardInterrupt):
            say("round 1", sys.stderr)
        say("interrupted", sys.stderr)


def test_a_full_disk_is_told_once(monkeypatch):
    with streams_on(monkeypatch, place("/dev/full"), place(os.devnull)):
        with pytest.raises(StoreError, match="cannot write to standard output: No space left on device"):
            say("x")
        say("y")


def test_what_an_encoding_lacks_becomes_a_question_mark(monkeypatch, tmp_path):
    with streams_on(monkeypatch, place(tmp_path / "out"), place(os.devnull), encoding="latin-1"):
        say("12 µs → 13 µs")
    assert (tmp_path / "out").read_text(encoding="latin-1") == "12 µs ? 13 µs\n"


def test_a_stream_that_is_closed_stays_so(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    streams.open_streams()
    assert sys.stdout is None
    assert sys.stderr is None
    monkeypatch.undo()
