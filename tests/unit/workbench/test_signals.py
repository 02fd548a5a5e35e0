"""What a signal does that comes while something must not be left half done."""

import signal
import threading

import pytest

from uncork.workbench.signals import uninterrupted


@pytest.fixture
def interruptible():
    """Ctrl-C and SIGTERM as the command line has them."""

    def interrupt(_number, _frame):
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    yield interrupt
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_comes_meanwhile_is_postponed_until_the_block_is_done(interruptible, number):
    steps = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(number)
        signal.raise_signal(number)
        steps.append("done")
    assert steps == ["done"]
    assert signal.getsignal(number) is interruptible


def test_nothing_comes_where_nothing_came(interruptible):
    with uninterrupted():
        assert signal.getsignal(signal.SIGINT) is not interruptible
    assert signal.getsignal(signal.SIGINT) is interruptible


def test_within_another_block_it_waits_for_that_too(interruptible):
    steps = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
        steps.append("outer")
    assert steps == ["outer"]


def test_an_error_of_the_block_is_the_context_of_what_was_postponed(interruptible):
    with pytest.raises(KeyboardInterrupt) as caught, uninterrupted():
        signal.raise_signal(signal.SIGINT)
        raise ValueError("no room")
    assert isinstance(caught.value.__context__, ValueError)


def test_what_was_ignored_before_stays_so(interruptible):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with uninterrupted():
        signal.raise_signal(signal.SIGTERM)


def test_other_threads_leave_signals_alone(interruptible):
    seen = []

    def work():
        with uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [interruptible]
