"""The fingerprint of a statement, by libpg_query: equal for statements that differ only in their literals.

postgast brings libpg_query and its bindings. Importing postgast also loads the messages of parse trees, which
takes 0.25 s and which a fingerprint does not need. So this module loads only the bindings, from their file.
"""

from __future__ import annotations

from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

__all__ = ["fingerprint"]


def _library() -> Any:
    package = find_spec("postgast")
    if package is None or package.origin is None:
        raise ImportError("postgast is not installed; install uncork with the packages it requires")
    bindings = spec_from_file_location(f"{__name__}_bindings", Path(package.origin).with_name("native.py"))
    if bindings is None or bindings.loader is None:
        raise ImportError(f"{package.origin}: no bindings beside it")
    module = module_from_spec(bindings)
    bindings.loader.exec_module(module)
    return module.lib


_LIBRARY = _library()


def fingerprint(statement: bytes) -> str | None:
    """Return the fingerprint in hexadecimal digits; None if PostgreSQL's grammar rejects the statement.

    The statement is text in UTF-8 without zero bytes.
    """
    result = _LIBRARY.pg_query_fingerprint(statement)
    try:
        return None if result.error else result.fingerprint_str.decode()
    finally:
        _LIBRARY.pg_query_free_fingerprint_result(result)
