"""Choose the client of an address: obstore's for stores and web servers, ssh for other machines."""

from __future__ import annotations

from uncork.profile.objects.address import LogObject, ObjectAddress
from uncork.profile.objects.client import Client
from uncork.profile.objects.ssh import SshClient


def open_client(address: ObjectAddress) -> Client | SshClient:
    """Return a client for an address; `close` ends it.

    Raises:
        UsageError: if a package or program is missing, or the endpoint is not allowed.
    """
    return SshClient(address) if address.backend == "ssh" else Client(address)


class Clients:
    """The clients that fetch objects: one for each bucket, web address or machine, opened when needed."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], Client | SshClient] = {}

    def of(self, wanted: LogObject) -> Client | SshClient:
        """Return the client that fetches an object.

        Raises:
            UsageError: as `open_client`.
        """
        address = wanted.address
        key = (address.bucket, wanted.name if address.backend == "http" else address.account)
        if key not in self._clients:
            self._clients[key] = open_client(address)
        return self._clients[key]

    def close(self) -> None:
        """End all clients."""
        for client in self._clients.values():
            client.close()
