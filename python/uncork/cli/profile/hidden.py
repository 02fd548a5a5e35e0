"""Hide libraries that Arrow loads, and that commands do not use."""

from __future__ import annotations

import sys
from typing import Final

_HIDDEN: Final[set[str]] = set()


class _Finder:
    def find_spec(self, fullname: str, _path: object, _target: object = None) -> None:
        if fullname in _HIDDEN:
            raise ModuleNotFoundError("the command line does not use it", name=fullname)


def hide_pandas() -> None:
    """Hide pandas from here on.

    Arrow imports pandas, if it is there, to convert the first list, in case it is a Series. That
    takes 0.3 s, and no command uses pandas. In Python and notebooks it is imported as ever.
    """
    _HIDDEN.add("pandas")
    sys.meta_path.insert(0, _Finder())


def load_arrow_alone() -> None:
    """Load Arrow without numpy, which takes twice as long as Arrow; numpy itself can be imported afterwards.

    Only for a command that passes no arrays of numpy to Arrow. Without `hide_pandas`, that is in
    Python and notebooks, this does nothing.
    """
    if _HIDDEN and "numpy" not in sys.modules:
        _HIDDEN.add("numpy")
        try:
            import pyarrow.compute  # noqa: F401, PLC0415 -- loaded for others
        finally:
            _HIDDEN.remove("numpy")
