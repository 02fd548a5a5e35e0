"""Every exception uncork raises on purpose.

The tree; each leaf is one thing a caller can do something about, and carries the exit status that the
command line ends with::

    UncorkError
    ├── UsageError              1  the request cannot be carried out as asked
    │   ├── SpecError           1  an experiment file is wrong; lists every problem with file, line and key
    │   ├── SetupError          1  the experiment's own set-up failed (SQL error, no space, no such run)
    │   └── ConnectError        1  a server cannot be reached, or refuses us
    ├── RunError                2  something broke while measuring; what was measured is kept
    │   ├── LoadError           2  the load engine could not carry out a trial
    │   │   └── VersionError    2  a service understands HTTP/2 only, and h2 is missing
    │   ├── ServerCrash         2  the server went away in mid-trial
    │   │   └── ServiceCrash    2  a service beside it did
    │   └── StoreError          2  results could not be written or read
    ├── ExpectationError        3  a variant is not what it was expected to be; also an AssertionError
    │   └── UndecidedError      4  the evidence does not say whether it is
    └── CoreMismatch            1  the compiled core does not match the Python package
"""

from __future__ import annotations

__all__ = [
    "ConnectError",
    "CoreMismatch",
    "ExpectationError",
    "LoadError",
    "RunError",
    "ServerCrash",
    "ServiceCrash",
    "SetupError",
    "SpecError",
    "StoreError",
    "UncorkError",
    "UndecidedError",
    "UsageError",
    "VersionError",
]


class UncorkError(Exception):
    """Say in one message what went wrong, where, and what to do about it.

    Picklable, so that it can cross processes. `exit_status` is what the command line returns.
    """

    exit_status = 1


class UsageError(UncorkError):
    """The request cannot be carried out as asked."""


class SpecError(UsageError):
    """An experiment file is wrong. The message lists every problem, one a line, with file, line and key."""


class SetupError(UsageError):
    """The experiment's set-up failed before anything was measured."""


class ConnectError(UsageError):
    """A server cannot be reached, or refuses the connection."""


class RunError(UncorkError):
    """Something broke while measuring; everything measured before is kept."""

    exit_status = 2


class LoadError(RunError):
    """The load engine could not carry out a trial."""


class VersionError(LoadError):
    """A service understands HTTP/2 only, and the library that speaks it to compare answers is missing."""


class ServerCrash(RunError):
    """The server went away in the middle of a trial."""


class ServiceCrash(ServerCrash):
    """A service beside the database ended, or did not come up."""


class StoreError(RunError):
    """Results could not be written or read."""


class ExpectationError(UncorkError, AssertionError):
    """A variant is not what it was expected to be: the measurements contradict it."""

    exit_status = 3


class UndecidedError(ExpectationError):
    """The evidence does not decide whether a variant is what it was expected to be."""

    exit_status = 4


class CoreMismatch(UncorkError):
    """The compiled core was built from another version of the package; build it again."""
