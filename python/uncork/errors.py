"""The exceptions that uncork raises.

Each class names a problem that a caller can handle. The number is the exit status of the command line::

    UncorkError
    ├── UsageError              1  the request is invalid or cannot be carried out
    │   ├── SpecError           1  an experiment file is invalid; lists every problem with file, line and key
    │   ├── SetupError          1  setting up failed before measuring (SQL error, no space, no such run)
    │   └── ConnectError        1  a server cannot be reached, or refuses the connection
    ├── RunError                2  something failed while measuring; everything measured so far is kept
    │   ├── LoadError           2  the load engine could not run a trial
    │   ├── NodeLost            2  a node of a cluster has ended, or does not answer any more
    │   ├── ServerCrash         2  the server went away during a trial
    │   │   └── ServiceCrash    2  a service beside the database went away during a trial
    │   └── StoreError          2  results could not be written or read
    ├── ExpectationError        3  the measurements contradict an expectation; also an AssertionError
    │   └── UndecidedError      4  the measurements neither confirm nor contradict it
    └── CoreMismatch            1  the compiled core does not match the Python package
"""

from __future__ import annotations


class UncorkError(Exception):
    """Base class of all exceptions of uncork. The message says what went wrong, where, and what to do.

    Instances can be pickled, so they can cross process boundaries. `exit_status` is the exit status of the
    command line.
    """

    exit_status = 1


class UsageError(UncorkError):
    """The request is invalid or cannot be carried out."""


class SpecError(UsageError):
    """An experiment file is invalid. The message lists one problem per line, with file, line and key."""


class SetupError(UsageError):
    """Setting up failed before anything was measured."""


class BudgetTooShort(SetupError):
    """The budget ended before the first trial."""


class ConnectError(UsageError):
    """A server cannot be reached, or refuses the connection."""


class RunError(UncorkError):
    """Something failed while measuring. Everything measured so far is kept."""

    exit_status = 2


class LoadError(RunError):
    """The load engine could not run a trial."""


class NodeLost(RunError):
    """A node of a cluster has ended, or does not answer any more."""


class ServerCrash(RunError):
    """The server went away during a trial."""


class ServiceCrash(ServerCrash):
    """A service beside the database ended, or did not become ready."""


class StoreError(RunError):
    """Results could not be written or read."""


class ExpectationError(UncorkError, AssertionError):
    """The measurements contradict what a variant was expected to be."""

    exit_status = 3


class UndecidedError(ExpectationError):
    """The measurements neither confirm nor contradict what a variant was expected to be."""

    exit_status = 4


class CoreMismatch(UncorkError):
    """The compiled core was built from another version of the package. Rebuild it."""
