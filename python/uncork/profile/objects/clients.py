"""Choose the client of an address: obstore's for stores and web servers, ssh for other machines."""

from __future__ import annotations

from uncork.profile.objects.address import ObjectAddress
from uncork.profile.objects.client import Client
from uncork.profile.objects.ssh import SshClient

__all__ = ["open_client"]


def open_client(address: ObjectAddress) -> Client | SshClient:
    """Return a client for an address; `close` ends it.

    Raises:
        UsageError: if a package or program is missing, or the endpoint is not allowed.
    """
    return SshClient(address) if address.backend == "ssh" else Client(address)
