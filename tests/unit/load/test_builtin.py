"""pgbench's built-in scripts: their texts, and how they are found and weighted."""

import hashlib
import shutil
import subprocess

import pytest

from uncork.errors import UsageError
from uncork.load import builtin

DIGESTS = {
    "tpcb-like": "e8a8baf859ececfc83141d1688a8f1ac6c254bec1718702c26769f80e13808db",
    "simple-update": "f49b5a67dd76817f6af421231a2dc4d632bfe2ff96563e2c2df6cda83cd03a73",
    "select-only": "c40a86d1a9b318b6ff936fdda81f2568ff6393ccf3efabf239a572f46aed77f4",
}
"""SHA-256 of what pgbench 15 prints for --show-script, without its first line."""


@pytest.mark.parametrize("name", DIGESTS)
def test_the_texts_are_pgbenchs(name):
    assert hashlib.sha256(builtin.SCRIPTS[name].text.encode()).hexdigest() == DIGESTS[name]


@pytest.mark.skipif(shutil.which("pgbench") is None, reason="pgbench is not installed")
@pytest.mark.parametrize("name", builtin.SCRIPTS)
def test_an_installed_pgbench_says_the_same(name):
    done = subprocess.run(["pgbench", f"--show-script={name}"], capture_output=True, text=True, check=True)
    shown = (done.stdout + done.stderr).rstrip("\n")
    script = builtin.SCRIPTS[name]
    assert shown == f"-- {name}: {script.description}\n{script.text}".rstrip("\n")


@pytest.mark.parametrize(("prefix", "name"), [
    ("tpcb-like", "tpcb-like"),
    ("t", "tpcb-like"),
    ("si", "simple-update"),
    ("se", "select-only"),
    ("select-only", "select-only"),
])  # fmt: skip
def test_a_prefix_that_only_one_name_has_is_enough(prefix, name):
    assert builtin.find(prefix).name == name


@pytest.mark.parametrize(("prefix", "message"), [
    ("tpcc", 'no built-in script "tpcc"; the built-in scripts are tpcb-like, simple-update, select-only'),
    ("T", 'no built-in script "T"; the built-in scripts are'),
    ("s", '"s" matches several built-in scripts: simple-update, select-only; write more'),
    ("", '"" matches several built-in scripts: tpcb-like, simple-update, select-only'),
])  # fmt: skip
def test_a_prefix_of_none_or_several_lists_the_names(prefix, message):
    with pytest.raises(UsageError, match=message):
        builtin.find(prefix)


@pytest.mark.parametrize(("text", "name", "weight"), [
    ("tpcb-like", "tpcb-like", 1),
    ("se@5", "se", 5),
    ("se@0", "se", 0),
    ("a@b.sql@3", "a@b.sql", 3),
    ("x@2147483647", "x", 2**31 - 1),
])  # fmt: skip
def test_a_weight_follows_the_last_at(text, name, weight):
    assert builtin.split_weight(text) == (name, weight)


@pytest.mark.parametrize("weight", ["", "x", "-1", "1.5", " 1", "2147483648", "²"])
def test_a_weight_that_is_no_whole_number_is_refused(weight):
    with pytest.raises(UsageError, match=f'weight of "se" must be a whole number .* not "{weight}"'):
        builtin.split_weight(f"se@{weight}")


def test_a_weight_needs_a_name():
    with pytest.raises(UsageError, match=r'"@3" has a weight but no script'):
        builtin.split_weight("@3")
