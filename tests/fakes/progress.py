"""Act when a load has got somewhere, however slow the machine is."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg

STEP = "SELECT nextval('progress'), pg_sleep(0.01)"
"""A statement that counts its executions and takes a while."""


@contextmanager
def after_steps(
    connect: Callable[[], psycopg.Connection], steps: int, act: Callable[[], object]
) -> Iterator[None]:
    """Make the counter of `STEP`, and call `act` in a thread when a load has executed it `steps` times.

    `connect` opens a connection that commits by itself.
    """
    with connect() as connection:
        connection.execute("DROP SEQUENCE IF EXISTS progress")
        connection.execute("CREATE SEQUENCE progress")

    def wait() -> None:
        until = time.monotonic() + 60
        with connect() as connection:
            while time.monotonic() < until:
                (done,) = connection.execute("SELECT last_value FROM progress").fetchone() or (0,)
                if done >= steps:
                    break
                time.sleep(0.01)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield
    finally:
        thread.join()
