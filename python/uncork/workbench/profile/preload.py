"""Load modules while the Rust core works, which releases the GIL."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading(*modules: str) -> Iterator[None]:
    """Load modules in a thread. An import of one of them waits until it is loaded.

    The context waits for the thread, also after an error, because the interpreter must not exit while
    libraries are half loaded.
    """
    thread = threading.Thread(target=_load, args=(modules,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _load(modules: tuple[str, ...]) -> None:
    for module in modules:
        importlib.import_module(module)
