"""How to reach an object store: what the environment variables of its service say. Pure."""

from __future__ import annotations

import base64
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from uncork.errors import UsageError
from uncork.profile.objects.address import Backend, ObjectAddress

_ENDPOINTS: Final[dict[Backend, tuple[str, ...]]] = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "FSSPEC_S3_ENDPOINT_URL"),
    "gs": ("STORAGE_EMULATOR_HOST", "GOOGLE_BASE_URL"),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
    "http": (),
    "ssh": (),
}
_ALLOW: Final[dict[Backend, tuple[str, ...]]] = {
    "s3": ("AWS_ALLOW_HTTP", "UNCORK_ALLOW_HTTP"),
    "gs": ("GOOGLE_ALLOW_HTTP", "UNCORK_ALLOW_HTTP"),
    "az": ("AZURE_ALLOW_HTTP", "UNCORK_ALLOW_HTTP"),
    "http": ("UNCORK_ALLOW_HTTP",),
    "ssh": (),
}
_CONNECTION: Final = {
    "AccountName": "account_name",
    "AccountKey": "account_key",
    "SharedAccessSignature": "sas_key",
    "BlobEndpoint": "endpoint",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings for obstore, beside what it reads from the environment itself; they may hold secrets."""

    config: dict[str, object] = field(default_factory=dict, repr=False)
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    allow_http: bool = False


def settings_of(address: ObjectAddress, environment: Mapping[str, str]) -> Settings:
    """Return how to reach the store of an address.

    Unencrypted HTTP is for loopback only, unless the environment allows it.

    Raises:
        UsageError: if the endpoint is unencrypted, on another machine, and not allowed.
    """
    config: dict[str, object] = {}
    variable = next((name for name in _ENDPOINTS[address.backend] if environment.get(name)), "")
    endpoint = environment.get(variable, "")
    if address.backend == "az":
        config |= _azure(address, environment)
        endpoint, variable = (
            (endpoint, variable)
            if endpoint
            else (str(config.get("endpoint", "")), "AZURE_STORAGE_CONNECTION_STRING")
        )
    if variable == "STORAGE_EMULATOR_HOST":
        endpoint = endpoint if "://" in endpoint else f"http://{endpoint}"
        config["skip_signature"] = True
    if endpoint:
        config["base_url" if address.backend == "gs" else "endpoint"] = endpoint.rstrip("/")
    reached = address.bucket if address.backend == "http" else endpoint
    headers = {}
    if address.login:
        headers["authorization"] = f"Basic {base64.b64encode(address.login.encode()).decode()}"
    return Settings(config, headers, _may_be_plain(reached, variable, address, environment))


def _may_be_plain(
    reached: str, variable: str, address: ObjectAddress, environment: Mapping[str, str]
) -> bool:
    """Return whether requests are unencrypted; refuse it if it is not allowed."""
    parts = urlsplit(reached)
    if reached and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise UsageError(f"{variable}={reached} is no address of a server; write https://HOST:PORT")
    if parts.scheme != "http":
        return False
    names = _ALLOW[address.backend]
    allowed = any(environment.get(name, "").lower() in ("1", "true", "yes", "on") for name in names)
    if not allowed and not _is_loopback(parts.hostname or ""):
        place = f"{variable}={reached}" if variable else address.shown
        raise UsageError(
            f"{place}: http:// sends credentials and logs unencrypted; use https://, or set {names[0]}=true"
        )
    return True


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _azure(address: ObjectAddress, environment: Mapping[str, str]) -> dict[str, object]:
    """Return the settings within a connection string, and the account that the address names."""
    text = environment.get("AZURE_STORAGE_CONNECTION_STRING", "")
    pairs = (part.partition("=") for part in text.split(";"))
    config: dict[str, object] = {
        _CONNECTION[name]: value for name, _, value in pairs if name in _CONNECTION and value
    }
    if address.account:
        config["account_name"] = address.account
    return config
