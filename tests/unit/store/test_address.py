from pathlib import Path

import pytest

from uncork.errors import UsageError
from uncork.store.remote.address import Address, parse_address


@pytest.mark.parametrize(("text", "folder"), [
    (".uncork/runs", ".uncork/runs"),
    ("/mnt/a:b", "/mnt/a:b"),
    ("file:///mnt/runs/", "/mnt/runs"),
    ("local:///mnt/runs", "/mnt/runs"),
])  # fmt: skip
def test_a_folder_is_a_folder(text, folder):
    assert parse_address(text, {}) == Path(folder)


@pytest.mark.parametrize(("text", "shown"), [
    ("s3://bench/team/", "s3://bench/team"),
    ("S3://bench", "s3://bench"),
    ("sftp://anna:geh%@im/w:x@host:22/runs", "sftp://anna:***@host:22/runs"),
    ("sftp://anna@host/runs", "sftp://anna@host/runs"),
    ("memory://", "memory://"),
])  # fmt: skip
def test_an_address_is_shown_without_its_password(text, shown):
    address = parse_address(text, {})
    assert isinstance(address, Address) and address.shown == shown
    assert "geh" not in repr(address) and "geh" not in address.key


@pytest.mark.parametrize(("text", "said"), [
    ("s3://", r"s3:// names no bucket or host; write s3://BUCKET/PREFIX"),
    ("gs:///prefix", "names no bucket"),
    ("sftp://anna:secret@/runs", r"sftp://anna:\*\*\*@/runs names no bucket or host"),
    ("file://tmp/runs", "an absolute path"),
    ("https://host/runs", "cannot write to https://"),
    ("simplecache::s3://bench/x", "nested addresses"),
    ("s3://bench/x::y", "nested addresses"),
])  # fmt: skip
def test_what_can_be_no_store_is_refused(text, said):
    with pytest.raises(UsageError, match=said):
        parse_address(text, {})


def test_the_same_words_mean_another_store_at_another_service():
    here, there = ({"AWS_ENDPOINT_URL": f"http://{name}:9000"} for name in ("here", "there"))
    assert parse_address("s3://bench", here).key != parse_address("s3://bench", there).key
    assert parse_address("gs://bench", here).key == parse_address("gs://bench", there).key
    assert parse_address("sftp://a:x@host/r", {}).key == parse_address("sftp://a:y@host/r", {}).key
