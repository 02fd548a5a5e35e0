"""Files of others are those that were looked at, unchanged, and with their licences."""

import hashlib
import re
from importlib.resources import files

import pytest

from uncork.serve import answers

VENDOR = files("uncork.serve").joinpath("static", "vendor")
LINES = re.findall(
    r"^\| `([^`]+)` \| [^|]+ \| ([\d.]+) \| `([^`]+)` \| `(\w{64})` \|$",
    VENDOR.joinpath("README.md").read_text(),
    re.MULTILINE,
)


def test_every_file_of_others_is_listed_and_nothing_else_lies_there():
    assert sorted(name for name, *_ in LINES) == sorted(answers.VENDORED)
    licences = {licence for _, _, licence, _ in LINES}
    assert {path.name for path in VENDOR.iterdir()} == {"README.md", *licences, *answers.VENDORED}


@pytest.mark.parametrize(("name", "version", "licence", "digest"), LINES)
def test_a_file_of_others_is_unchanged_and_its_licence_stands_beside_it(name, version, licence, digest):
    data = VENDOR.joinpath(name).read_bytes()
    assert hashlib.sha256(data).hexdigest() == digest
    assert "Permission to use, copy, modify" in VENDOR.joinpath(licence).read_text()
    if name == "htmx.min.js":
        assert f'version:"{version}"'.encode() in data


def test_no_script_names_another_host():
    for name in answers.VENDORED:
        found = set(re.findall(rb"https?://[\w./-]+", VENDOR.joinpath(name).read_bytes()))
        assert found <= {b"http://www.w3.org/1999/xhtml"}  # the name of a language, not an address
