"""Load modules while the core works: it needs no interpreter meanwhile."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["loading"]


@contextmanager
def loading(*modules: str) -> Iterator[None]:
    """Load modules in a thread of their own. What imports one of them meanwhile waits for it.

    The thread has ended when this is left, by an error too: the interpreter may not end while libraries are
    half loaded.
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
