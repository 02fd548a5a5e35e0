"""The standalone folder: what belongs into it, the licences that it lists, and the program that starts it."""

import subprocess
from email.message import Message
from pathlib import Path, PurePosixPath

import pytest
from tools.standalone.contents import (
    Part,
    glibc_needed,
    is_needed_file,
    is_needed_library,
    library_part,
    licence_of,
    packages_to_run,
    third_party_page,
)

ROOT = Path(__file__).parents[3]
LAUNCHER = ROOT / "tools" / "standalone" / "uncork.c"


def test_the_packages_are_the_pinned_ones_without_those_that_build():
    packages = packages_to_run((ROOT / "requirements" / "run.txt").read_text())
    assert {"duckdb", "psycopg-binary", "vl-convert-python"} <= set(packages)
    assert "maturin" not in packages and "ray" not in packages


@pytest.mark.parametrize(
    ("path", "needed"),
    [
        ("json/decoder.py", True),
        ("unittest/case.py", True),
        ("lib-dynload/_ssl.cpython-311-x86_64-linux-gnu.so", True),
        ("lib-dynload/_sqlite3.cpython-311-x86_64-linux-gnu.so", True),
        ("lib-dynload/_tkinter.cpython-311-x86_64-linux-gnu.so", False),
        ("lib-dynload/_testcapi.cpython-311-x86_64-linux-gnu.so", False),
        ("test/test_json.py", False),
        ("site-packages/ray/__init__.py", False),
        ("config-3.11-x86_64-linux-gnu/libpython3.11.a", False),
    ],
)
def test_modules_of_python_without_tests_windows_and_packages(path, needed):
    assert is_needed_file(PurePosixPath(path), of_python=True) is needed


@pytest.mark.parametrize(
    ("path", "needed"),
    [
        ("duckdb/__init__.py", True),
        ("pyarrow/libarrow.so.2600", True),
        ("pyarrow/include/arrow/api.h", False),
        ("numpy/linalg/tests/test_linalg.py", False),
        ("duckdb/__pycache__/__init__.cpython-311.pyc", False),
        ("../../../bin/uvicorn", False),
    ],
)
def test_files_of_packages_without_headers_tests_and_scripts(path, needed):
    assert is_needed_file(PurePosixPath(path), of_python=False) is needed


def test_libraries_are_those_outside_glibc_and_have_a_known_licence():
    assert [
        name for name in ("libc.so.6", "ld-linux-x86-64.so.2", "libm.so.6") if is_needed_library(name)
    ] == []
    assert is_needed_library("libssl.so.3")
    assert library_part("libstdc++.so.6") == Part(
        "GCC's C++ library", "libstdc++.so.6", "GPL-3.0-or-later with GCC-exception-3.1"
    )
    assert library_part("libsqlite3.so.0").name == "SQLite"
    with pytest.raises(SystemExit, match=r"libreadline\.so\.8: nobody looked at its licence"):
        library_part("libreadline.so.8")


def test_a_licence_is_the_expression_or_the_classifier_or_the_text():
    found = Message()
    found["License"] = "MIT License\n\nCopyright ..."
    assert licence_of(found) == "MIT License"
    found["Classifier"] = "License :: OSI Approved :: MIT License"
    found["Classifier"] = "License :: OSI Approved"
    assert licence_of(found) == "MIT License"
    found["License-Expression"] = "MIT"
    assert licence_of(found) == "MIT"
    assert licence_of(Message()) == "see its files"


def test_the_newest_symbol_decides_which_glibc_is_needed():
    assert glibc_needed([b"\0GLIBC_2.2.5\0GLIBC_2.34\0", b"\0GLIBC_2.9\0GLIBC_PRIVATE\0"]) == "2.34"


def test_third_parties_are_listed_with_their_licences():
    page = third_party_page(
        [("Python packages", [Part("duckdb", "2.0.0", "MIT"), Part("rich", "15", "MIT")])]
    )
    assert page.endswith("Python packages\n---------------\nduckdb 2.0.0  MIT\nrich 15       MIT\n")


def test_the_program_starts_the_python_beside_it_isolated(tmp_path):
    program = tmp_path / "a folder" / "bin" / "uncork"
    program.parent.mkdir(parents=True)
    subprocess.run(["cc", "-Wall", "-Werror", "-o", program, LAUNCHER], check=True)
    link = tmp_path / "uncork"
    link.symlink_to(program)
    alone = subprocess.run([link, "--version"], capture_output=True, text=True, check=False)
    assert alone.returncode == 2
    assert alone.stderr == (
        f"uncork: cannot start {program.parent}/python3: No such file or directory; "
        "unpack the archive again\n"
    )
    python = program.with_name("python3")
    python.write_text('#!/bin/sh\nprintf "%s|" "$@"\nexit 4\n')
    python.chmod(0o755)
    done = subprocess.run([link, "profile", "two words", ""], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (4, "-I|-m|uncork|profile|two words||")
