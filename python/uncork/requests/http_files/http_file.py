"""Turn a requests file, or recorded traffic, into the requests of `uncork load http`. Pure.

Files are read through a function that the caller passes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from uncork.errors import UsageError
from uncork.requests.http_files.har import Converted, convert_har, is_har
from uncork.requests.http_options import HttpOptions

if TYPE_CHECKING:
    from uncork.requests.http_files.requests_file import SentRequests

ReadFile = Callable[[str], bytes]
_ENDINGS = (".toml", ".har")


def file_and_urls(options: HttpOptions) -> tuple[Path | None, list[str]]:
    """Return the requests file, if one is given, and the addresses.

    Raises UsageError if two files are given.
    """
    urls = list(options.urls or ())
    named = [url for url in urls if url.lower().endswith(_ENDINGS) and "://" not in url]
    files = [*(() if options.requests_file is None else (options.requests_file,)), *map(Path, named)]
    if len(files) > 1:
        raise UsageError(f"a load has one requests file; leave out {files[0]} or {files[1]}")
    return (files[0] if files else None), [url for url in urls if url not in named]


def converted_traffic(options: HttpOptions, read: ReadFile) -> Converted:
    """Return the requests file that ``--write-requests`` writes.

    Raises UsageError if no HAR file is given, or it is damaged.
    """
    file, urls = file_and_urls(options)
    if file is None or urls:
        raise UsageError(
            "--write-requests converts recorded traffic: write uncork load http traffic.har "
            "--write-requests FILE"
        )
    content = _text(str(file), read)
    if not is_har(content):
        raise UsageError(f"{file} is a requests file already; --write-requests converts a HAR file")
    return convert_har(str(file), content)


def described_requests(
    file: Path, options: HttpOptions, *, read: ReadFile, environment: Mapping[str, str]
) -> SentRequests:
    """Return what a requests file describes, or a HAR file after its conversion.

    Raises:
        UsageError: if an option contradicts it, or a file cannot be read.
        SpecError: with all problems of the file.
    """
    # Plain addresses start without the library that validates files.
    from uncork.requests.http_files.requests_file import parse_requests  # noqa: PLC0415

    _refuse_own(options)
    name = str(file)
    content = _text(name, read)
    if is_har(content):
        content, name = convert_har(name, content).text, f"{name} (as --write-requests writes it)"

    def beside(other: str) -> str:
        return _text(str(file.parent / PurePath(other)), read)

    return parse_requests(
        name,
        content,
        read=beside,
        environment=environment,
        headers=tuple(options.header or ()),
        statuses=options.expect_status or (),
    )


def _refuse_own(options: HttpOptions) -> None:
    given = (
        ("-i/--input-file", options.input_file),
        ("-X/--method", options.method),
        ("-d/--data", options.data),
        ("--body", options.body),
        ("--expect-header", options.expect_header),
        ("--expect-size", options.expect_size),
        ("--expect-sha256", options.expect_sha256),
        ("--expect-json", options.expect_json),
    )
    for name, value in given:
        if value is not None:
            raise UsageError(f"{name} describes one request, but the requests file has its own; put it there")


def _text(name: str, read: ReadFile) -> str:
    try:
        return read(name).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text: {error.reason} at byte {error.start}") from error


def missing_server(file: str) -> UsageError:
    """Return the error of a file that does not say where to send its requests."""
    return UsageError(
        f'{file} does not name a server; add base_url = "http://HOST:PORT" to it, or write the address on '
        "the command line"
    )
