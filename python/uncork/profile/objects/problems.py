"""What an error of an object store means: ask again, it has changed, or a message for a person. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from uncork.profile.objects.address import Backend, ObjectAddress

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


@dataclass(frozen=True, slots=True)
class Problem:
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
        return Problem("final", f'there is no {_bucket(address)} "{address.bucket}" ({answer})')
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


def _bucket(address: ObjectAddress) -> str:
    return "container" if address.backend == "az" else "bucket"
