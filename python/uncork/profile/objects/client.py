"""Requests to object stores and web servers through obstore; the only module that imports it.

Every request is repeated after a pause if it may succeed later: if the connection fails, the server answers
429 or 5xx, or the answer is cut short. An object is identified by its etag, or else by its size and time: the
bytes of another version are never returned.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import os
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from urllib.parse import urlsplit

from uncork.errors import ConnectError, UncorkError, UsageError
from uncork.model.extras import install_extra
from uncork.model.records import Record
from uncork.profile.objects.address import Backend, LogObject, ObjectAddress

if TYPE_CHECKING:
    from obstore import Bytes, ObjectMeta
    from obstore.store import ClientConfig, ObjectStore


Answer = TypeVar("Answer")

_RANGE_ATTEMPTS: Final = 9
"""How often a range is requested, with pauses that add up to half a minute."""
_FIRST_ATTEMPTS: Final = 4
"""How often anything else is requested: a wrong endpoint is reported within two seconds."""
_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 15.0
_LISTED: Final = 1000


class Changed(Exception):
    """The object is not the version that was found."""


class Absent(Exception):
    """The object does not exist, or no longer."""


class _CutShort(Exception):
    """An answer has fewer bytes than were requested."""


def pause_s(attempt: int, chance: float) -> float:
    """Return the pause after a number of failed attempts; `chance` in [0, 1) spreads requests. Pure."""
    return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0**attempt) * (0.5 + chance / 2)


class Client:
    """Requests to one bucket, container or web server.

    Raises UsageError if obstore is not installed, or the endpoint is unencrypted and not allowed.
    """

    def __init__(self, address: ObjectAddress) -> None:
        self.address = address
        settings = settings_of(address, os.environ)
        try:
            import obstore  # noqa: PLC0415 -- optional
        except ImportError as error:
            raise UsageError(f"{address.shown} needs obstore: {install_extra('objects')}") from error
        self._obstore = obstore
        try:
            self._store = _open(address, settings)
        except Exception as error:
            raise UsageError(f"{address.shown}: {problem_of(error, address).words}") from error

    def close(self) -> None:
        """Do nothing: obstore ends its connections itself."""

    async def find(self, key: str) -> LogObject | None:
        """Return an object; None if it does not exist.

        Raises ConnectError if the store does not answer, or refuses.
        """
        try:
            name = self.address.name(key)
            head = await self._ask(name, _FIRST_ATTEMPTS, lambda: self._obstore.head_async(self._store, key))
        except Absent:
            return None
        return self._object(head, key)

    async def find_below(self, folder: str, after: str = "") -> AsyncIterator[LogObject]:
        """Yield the objects whose keys begin with `folder` and a slash, and come after a key, in their order.

        Raises ConnectError if the store does not answer, or refuses.
        """
        last, failed = after, 0
        while True:
            pages = self._obstore.list(
                self._store, folder or None, offset=last or None, chunk_size=_LISTED
            ).__aiter__()
            while True:
                try:
                    page = await anext(pages)
                except StopAsyncIteration:
                    return
                except Exception as error:  # noqa: BLE001 -- the store's type of error says little
                    await self._pause_after(error, self.address.shown, failed, _FIRST_ATTEMPTS)
                    failed += 1
                    break
                failed = 0
                for meta in page:
                    last = meta["path"]
                    yield self._object(meta, last)

    async def fetch(self, wanted: LogObject, begin: int, end: int, *, patient: bool = True) -> Bytes:
        """Return the bytes of an object from `begin` until before `end`.

        Unless `patient`, a server that fails is given up after two seconds instead of half a minute.

        Raises:
            Changed: if the object is another version now.
            Absent: if it no longer exists.
            ConnectError: if the store does not answer, or refuses.
        """
        attempts = _RANGE_ATTEMPTS if patient else _FIRST_ATTEMPTS
        return await self._ask(wanted.name, attempts, lambda: self._range(wanted, begin, end))

    # ---- steps ----

    async def _range(self, wanted: LogObject, begin: int, end: int) -> Bytes:
        options: dict[str, Any] = {"range": (begin, end)}
        if wanted.etag is not None and not wanted.etag.startswith("W/"):
            options["if_match"] = f'"{_plain(wanted.etag)}"'
        found = await self._obstore.get_async(self._store, wanted.key, options=options)  # type: ignore[arg-type]
        if not _is_same(wanted, found.meta):
            raise Changed
        content = await found.bytes_async()
        if len(content) != end - begin:
            raise _CutShort
        return content

    async def _ask(self, shown: str, attempts: int, request: Callable[[], Awaitable[Answer]]) -> Answer:
        attempt = 0
        while True:
            try:
                return await request()
            except Changed:
                raise
            except Exception as error:  # noqa: BLE001 -- as above
                await self._pause_after(error, shown, attempt, attempts)
            attempt += 1

    async def _pause_after(self, error: Exception, shown: str, attempt: int, attempts: int) -> None:
        """Wait before the request is repeated, or raise what its failure means."""
        if isinstance(error, UncorkError):
            raise error
        problem = problem_of(error, self.address)
        if problem.kind == "changed":
            raise Changed from error
        if problem.kind == "absent":
            raise Absent from error
        if problem.kind == "final":
            raise ConnectError(f"{shown}: {problem.words}") from error
        if attempt + 1 >= attempts:
            raise ConnectError(f"{shown}: {problem.words}, {attempts} times in a row") from error
        await asyncio.sleep(pause_s(attempt, random.random()))

    def _object(self, meta: ObjectMeta, key: str) -> LogObject:
        modified_s = int(meta["last_modified"].timestamp())
        return LogObject(self.address.name(key), self.address, key, meta["size"], modified_s, meta["e_tag"])


def _open(address: ObjectAddress, settings: Settings) -> ObjectStore:
    from obstore.store import AzureStore, GCSStore, HTTPStore, S3Store  # noqa: PLC0415 -- optional

    client: ClientConfig = {
        "allow_http": settings.allow_http,
        "connect_timeout": timedelta(seconds=10),
        "read_timeout": timedelta(seconds=30),
        "timeout": timedelta(minutes=10),
        "user_agent": "uncork",
    }
    if settings.headers:
        client["default_headers"] = settings.headers
    shared: dict[str, Any] = {"client_options": client, "retry_config": {"max_retries": 0}}
    if address.backend == "http":
        query = f"?{address.query}" if address.query else ""
        return HTTPStore(f"{address.bucket}/{query}", **shared)
    shared["config"] = settings.config
    if address.backend == "s3":
        return S3Store(address.bucket, **shared)
    kind = GCSStore if address.backend == "gs" else AzureStore
    return kind(address.bucket, **shared)


def _is_same(wanted: LogObject, found: ObjectMeta) -> bool:
    etag = found["e_tag"]
    if wanted.etag is not None and etag is not None:
        return _plain(wanted.etag) == _plain(etag)
    return wanted.size == found["size"] and wanted.modified_s == int(found["last_modified"].timestamp())


def _plain(etag: str) -> str:
    """Return an etag without quotes, which lists of some stores leave out."""
    return etag.removeprefix("W/").strip('"')


# ---- what an error of an object store means ----


_STATUS: Final = re.compile(r"status code: (\d{3})")
_CODE: Final = re.compile(r"<Code>([A-Za-z]+)</Code>")
_METADATA: Final = re.compile(
    r"latest/api/token|latest/meta-data|computeMetadata|metadata\.google|metadata/identity|oauth2/token"
    r"|Account must be specified|Missing (?:AccessKeyId|SecretAccessKey)",
    re.IGNORECASE,
)
"""Requests for credentials, made because the environment has none."""
_BUCKET: Final = ("NoSuchBucket", "ContainerNotFound", "InvalidBucketName")
_SHORTER: Final = re.compile(r"Requested \S+, got ")
_LONGEST: Final = 200
_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504, 509})
_NUMBERS: Final = {
    "UnauthenticatedError": 401,
    "PermissionDeniedError": 403,
    "FileNotFoundError": 404,
    "PreconditionError": 412,
    "NotSupportedError": 416,
}
"""The status that obstore's exceptions stand for, if their message has none."""
_CREDENTIALS: Final[dict[Backend, str]] = {
    "s3": "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, for a profile of the AWS CLI with "
    "`eval $(aws configure export-credentials --format env)`; for a public bucket set "
    "AWS_SKIP_SIGNATURE=true",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS to the path of a key; for a public bucket set "
    "GOOGLE_SKIP_SIGNATURE=true",
    "az": "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY; "
    "for a public container set AZURE_SKIP_SIGNATURE=true",
    "ssh": "use a key that ssh-agent or ~/.ssh/config knows",
    "http": "write the address as https://USER:PASSWORD@HOST/..., or use a signed address",
}

Kind = Literal["again", "changed", "absent", "final"]


class Problem(Record):
    """What went wrong with a request, and what to do about it.

    `kind` is ``again`` if the same request may succeed later, ``changed`` if the object is not the one that
    was found, ``absent`` if it does not exist, and ``final`` for the rest. `words` are one line without
    secrets.
    """

    kind: Kind
    words: str


def problem_of(error: BaseException, address: ObjectAddress) -> Problem:
    """Return what an exception of a request means."""
    name, text = type(error).__name__, str(error).split("\n\nDebug source", maxsplit=1)[0]
    status, code = _STATUS.search(text), _CODE.search(text)
    answer = " ".join(filter(None, (status[1] if status else "", code[1] if code else "")))
    credentials = _CREDENTIALS[address.backend]
    if _METADATA.search(text):
        return Problem("final", f"no credentials: {credentials}")
    if code and code[1] in _BUCKET:
        bucket = "container" if address.backend == "az" else "bucket"
        return Problem("final", f'there is no {bucket} "{address.bucket}" ({answer})')
    number = int(status[1]) if status else _NUMBERS.get(name)
    rights = " (it needs s3:GetObject, and s3:ListBucket for a prefix)" if address.backend == "s3" else ""
    known = {
        401: Problem("final", f"the credentials are not accepted ({answer}); {credentials}"),
        403: Problem(
            "final", f"access is forbidden ({answer}); check the credentials and their rights{rights}"
        ),
        404: Problem("absent", "it does not exist"),
        412: Problem("changed", "it changed"),
        416: Problem(
            "final",
            f"the server does not send ranges; pipe it: curl -s {address.shown} | uncork profile logs -",
        ),
    }
    if number in known:
        return known[number]
    if number is not None:
        return Problem("again" if number in _AGAIN else "final", f"the server answered {answer}")
    return _without_answer(text, address)


def _without_answer(text: str, address: ObjectAddress) -> Problem:
    """Return what a failed connection means. The text holds the request's address, and so perhaps secrets."""
    made = not text or any(sign in text for sign in ("HTTP error", "Error performing"))
    if not made and not _SHORTER.search(text):
        reason = " ".join((text.partition(" error: ")[2] or text).split())
        return Problem("final", reason[:_LONGEST].rstrip("."))
    text = text.lower()
    if "redirect" in text:
        return Problem("final", "the server redirects the request; check the region (AWS_REGION)")
    if "builder error" in text:
        return Problem("final", f"requests to {address.bucket} cannot be made; check the address")
    if "timed out" in text or "timeout" in text:
        return Problem("again", "the server does not answer in time")
    if "error sending request" in text or "connect" in text:
        return Problem("again", "the server cannot be reached")
    return Problem("again", "the answer was cut short")


# ---- how to reach an object store: what the environment variables of its service say ----


_ENDPOINTS: Final[dict[Backend, tuple[str, ...]]] = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT", "FSSPEC_S3_ENDPOINT_URL"),
    "gs": ("STORAGE_EMULATOR_HOST", "GOOGLE_BASE_URL"),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
_VENDORS: Final[dict[Backend, str]] = {"s3": "AWS", "gs": "GOOGLE", "az": "AZURE"}
_CONNECTION: Final = {
    "AccountName": "account_name",
    "AccountKey": "account_key",
    "SharedAccessSignature": "sas_key",
    "BlobEndpoint": "endpoint",
}


class Settings(Record):
    """Settings for obstore, beside what it reads from the environment itself; they may hold secrets."""

    config: dict[str, object] = field(default_factory=dict, repr=False)
    headers: dict[str, str] = field(default_factory=dict, repr=False)
    allow_http: bool = False


def settings_of(address: ObjectAddress, environment: Mapping[str, str]) -> Settings:
    """Return how to reach the store of an address.

    Unencrypted HTTP is for loopback only, unless the environment allows it. Raises UsageError if the endpoint
    is unencrypted, on another machine, and not allowed.
    """
    config: dict[str, object] = {}
    names = _ENDPOINTS.get(address.backend, ())
    variable = next((name for name in names if environment.get(name)), "")
    endpoint = environment.get(variable, "")
    if address.backend == "az":
        config |= _azure(address, environment)
        if not endpoint:
            endpoint, variable = str(config.get("endpoint", "")), "AZURE_STORAGE_CONNECTION_STRING"
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
    names = [f"{_VENDORS.get(address.backend, 'UNCORK')}_ALLOW_HTTP", "UNCORK_ALLOW_HTTP"]
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
    text = environment.get("AZURE_STORAGE_CONNECTION_STRING", "")
    pairs = (part.partition("=") for part in text.split(";"))
    known = ((_CONNECTION.get(name), value) for name, _, value in pairs if value)
    config: dict[str, object] = {name: value for name, value in known if name is not None}
    return {**config, "account_name": address.account} if address.account else config
