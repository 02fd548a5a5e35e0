"""The parts of the engines that only compute."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from uncork.engines import process
from uncork.engines.places import server_account
from uncork.engines.setting_check import configuration_text
from uncork.engines.watch.observe import _shape, _without_literals
from uncork.errors import SetupError


@pytest.mark.parametrize(("condition", "shape"), [
    ("(id = 7)", "(id = ?)"),
    ("(cluster = '19cf'::bpchar)", "(cluster = ?)"),
    ("((cluster)::text = 'it''s'::text)", "((cluster)::text = ?)"),
    ("(a = '2026-01-01'::timestamp without time zone AND b > 7)", "(a = ? AND b > ?)"),
    ("(x = ANY ('{1,2}'::integer[]))", "(x = ANY (?))"),
    ("(t1.c2 = 5.5)", "(t1.c2 = ?)"),
    ("(a = $1)", "(a = $1)"),
])  # fmt: skip
def test_a_plans_shape_holds_no_values(condition, shape):
    assert _without_literals(condition) == shape


def test_a_shape_is_the_tree_with_relations_and_conditions():
    plan = {
        "Node Type": "ModifyTable",
        "Operation": "Delete",
        "Relation Name": "t",
        "Plans": [
            {
                "Node Type": "Index Scan",
                "Index Name": "t_pkey",
                "Relation Name": "t",
                "Index Cond": "(id = 1)",
            }
        ],
    }
    assert _shape(plan, 0) == [
        "Delete on t",
        "  Index Scan using t_pkey on t",
        "    Index Cond: (id = ?)",
    ]


def test_settings_are_written_as_postgresql_reads_them_and_cannot_move_the_server():
    text = configuration_text(
        {"jit": False, "work_mem": "4MB", "a.b": "it's", "cost": 1.5, "port": 1, "listen_addresses": "*"},
        port=5555,
        socket_folder=Path("/s"),
    )
    lines = dict(line.split(" = ") for line in text.splitlines())
    assert lines["jit"] == "off"
    assert lines["a.b"] == "'it''s'"
    assert lines["cost"] == "1.5"
    assert lines["port"] == "5555"
    assert lines["listen_addresses"] == "'127.0.0.1'"
    assert lines["unix_socket_permissions"] == "'0700'"


def test_a_process_is_told_apart_from_a_later_one_with_its_number():
    own = process.identity(os.getpid())
    assert process.is_same(own)
    assert not process.is_same({**own, "start": own["start"] - 1})
    assert not process.is_same(None)
    assert process.identity(2**22 + 1) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a space of its own for processes")
def test_processes_of_another_space_are_taken_to_live_as_long_as_they_may():
    known = "import json, os, sys; from uncork.engines import process; "
    tell = known + "print(json.dumps(process.identity(os.getpid())))"
    ask = known + "print(process.is_same(json.loads(sys.argv[1])))"
    inside = ["unshare", "--pid", "--mount", "--fork", "--mount-proc"]

    def said(*call):
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(done.stderr)
        return done.stdout.strip()

    outer = json.dumps(process.identity(os.getpid()))
    gone = said(*inside, sys.executable, "-c", tell)
    assert json.loads(gone)["pid"] == 1
    assert said(*inside, sys.executable, "-c", ask, outer) == "True"
    if process.identity(os.getpid())["space"] == 0xEFFFFFFC:
        assert not process.is_same(json.loads(gone)), "its space has ended"


def test_a_process_of_another_machine_is_neither_alive_nor_dead():
    own = process.identity(os.getpid())
    there = {**own, "machine": own["machine"] + 1}
    assert process.is_elsewhere(there) and not process.is_same(there)
    assert not process.is_elsewhere(own) and not process.is_elsewhere(None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root chooses another account")
@pytest.mark.parametrize("name", ["no-such-user", "toor0"])
def test_an_account_that_does_not_exist_is_said(monkeypatch, name):
    monkeypatch.setenv("UNCORK_SERVER_USER", name)
    with pytest.raises(SetupError, match=f'the user "{name}" that should run it does not exist'):
        server_account()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root chooses another account")
def test_root_itself_never_runs_the_server(monkeypatch):
    monkeypatch.setenv("UNCORK_SERVER_USER", "root")
    assert server_account().uid != 0
