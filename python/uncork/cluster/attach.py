"""Attach to a Ray cluster that requires a token, or start one on loopback, with a token of its own."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

from uncork.errors import SetupError, UsageError
from uncork.model.load import ClusterRequest
from uncork.spawn.child import owned_environment, scratch_folder

_OWN_TOKEN: Final = secrets.token_hex(32)
"""The token of clusters that this process starts. Ray reads the token of a process once."""
_CALL: Final = "/ray.rpc.NodeInfoGcsService/GetClusterId"
_CALL_S: Final = 5.0
_STORE_BYTES: Final = 96 << 20
"""Memory for results on their way: Ray requires 75 MB at least."""
_SOCKETS: Final = 70
"""Characters that Ray adds to its folder for the path of a socket, which may have 107."""
_HOW: Final = (
    "start Ray on all nodes with RAY_AUTH_MODE=token and the token of this machine "
    "(`ray get-auth-token --generate` writes it to ~/.ray/auth_token)"
)


def token_settings(environment: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return what to set so that Ray uses this machine's token. Raises UsageError without it."""
    mode = environment.get("RAY_AUTH_MODE", "").lower()
    if mode not in ("", "token"):
        raise UsageError(
            f"RAY_AUTH_MODE is {mode}, but uncork only uses clusters that require a token: everyone who "
            f"reaches another can run programs there; {_HOW}, and set RAY_AUTH_MODE=token here"
        )
    path = environment.get("RAY_AUTH_TOKEN_PATH")
    known = (
        environment.get("RAY_AUTH_TOKEN") or (Path(path) if path else home / ".ray" / "auth_token").is_file()
    )
    if not known:
        where = f"there is no file {path}" if path else "this machine has no token"
        raise UsageError(f"uncork only uses Ray clusters that require a token, and {where}: {_HOW}")
    return {"RAY_AUTH_MODE": "token"}


@contextmanager
def attached(request: ClusterRequest, notify: Callable[[str], None]) -> Iterator[None]:
    """Connect this process to a cluster for a while. Raises UsageError, SetupError."""
    if request.own:
        with _own_cluster(request, notify):
            yield
        return
    with _environment(token_settings(os.environ, Path.home())):
        ray = _ray()
        if ray.is_initialized():  # a program that uses Ray itself
            yield
            return
        try:
            with _quiet(), _silent(), _own_signals():
                ray.init(address=request.place, log_to_driver=False, logging_level=logging.CRITICAL)
        except Exception as error:  # Ray raises many kinds: no connection, another version, a wrong token
            raise UsageError(
                f"cannot use the Ray cluster {request.place}: {_first_line(error)}; check that Ray runs "
                "there, and that its token is the one of this machine"
            ) from error
        try:
            if _open_to_all(ray):
                raise UsageError(
                    f"the Ray cluster {request.place} requires no token: everyone who reaches it can run "
                    f"programs there; {_HOW}"
                )
            yield
        finally:
            with _quiet():
                ray.shutdown()


def _open_to_all(ray: Any) -> bool:
    """Return whether a cluster needs no token; through ``ray://``, its agents say it."""
    import grpc  # noqa: PLC0415 -- comes with Ray

    if ray.util.client.ray.is_connected():
        return False
    with grpc.insecure_channel(ray.get_runtime_context().gcs_address) as channel:
        try:
            channel.unary_unary(_CALL)(b"", timeout=_CALL_S)
        except grpc.RpcError:
            return False
    return True


@contextmanager
def _own_cluster(request: ClusterRequest, notify: Callable[[str], None]) -> Iterator[None]:
    """Start a cluster that only this machine reaches, and end it with all that it has stored.

    All its processes carry the mark of this process, so that its reaper ends them if it is killed.
    """
    notify(f"starting a Ray cluster on this machine for {request.nodes} nodes")
    settings = {
        "RAY_AUTH_TOKEN": _OWN_TOKEN,
        "RAY_AUTH_MODE": "token",
        "RAY_USAGE_STATS_ENABLED": "0",
        # On Linux, Ray listens on all addresses unless this says that a cluster has one machine.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        **owned_environment(),
    }
    with _short_folder() as folder, _environment(settings):
        ray = _ray()
        if ray.is_initialized():
            raise UsageError(
                'this process uses a Ray cluster already: leave out cluster="local", or use auto'
            )
        try:
            with _quiet(), _own_signals():
                ray.init(
                    address="local",
                    num_cpus=request.nodes,
                    num_gpus=0,
                    include_dashboard=False,
                    object_store_memory=_STORE_BYTES,
                    log_to_driver=False,
                    logging_level=logging.CRITICAL,
                    _node_ip_address="127.0.0.1",
                    _temp_dir=str(folder),
                )
        except Exception as error:  # Ray raises many kinds
            with contextlib.suppress(Exception):
                ray.shutdown()
            raise SetupError(f"Ray cannot start on this machine: {_first_line(error)}") from error
        try:
            yield
        finally:
            with _quiet():
                ray.shutdown()


@contextmanager
def _short_folder() -> Iterator[Path]:
    """Yield a folder for the files of a cluster, whose sockets need a short path."""
    before = tempfile.tempdir
    if len(tempfile.gettempdir()) > 107 - _SOCKETS - len("/uncork-ray-12345678"):
        tempfile.tempdir = "/tmp"  # noqa: S108 -- with a random name, for this user alone
    try:
        with scratch_folder("uncork-ray-") as folder:
            yield folder
    finally:
        tempfile.tempdir = before


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep what this process does on SIGTERM: Ray's core would print its stack instead."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)


def _quiet() -> AbstractContextManager[object]:
    """Leave out Ray's warnings to its programmers."""
    return warnings.catch_warnings(action="ignore")


@contextmanager
def _silent() -> Iterator[None]:
    """Leave out what Ray's core writes to standard error: a warning each second while it cannot connect."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _ray() -> Any:
    """Import Ray, which reads some settings at its import, and keep it from writing to standard output."""
    import ray  # noqa: PLC0415 -- only where a cluster is used
    from ray._private import worker  # noqa: PLC0415

    worker._worker_logs_enabled = False  # messages about dead workers, which log_to_driver does not stop
    return ray


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and lines[1:] else lines[0]
