"""A store at an address, seen from several machines; the address is fsspec's own memory."""

import contextlib
import json
import os
import random
import shutil
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from uncork.errors import ConnectError, SetupError, StoreError, UsageError
from uncork.store.catalogue import read_catalogue, set_tag, tags_of
from uncork.store.layout import (
    Attempt,
    find_run,
    name_run,
    new_run_folder,
    read_manifest,
    read_names,
    write_manifest,
)
from uncork.store.prune import remove_leftovers, remove_run, size_of
from uncork.store.query import RunReader
from uncork.store.remote import mirror as mirror_module
from uncork.store.remote import mirrors
from uncork.store.remote.address import parse_address
from uncork.store.remote.mirror import open_mirror
from uncork.store.remote.objects import Remote
from uncork.store.tables import append_rows
from uncork.workbench.publishing import pull_runs, push_runs, send_pending, unsent
from unit.store.test_layout import MANIFEST, make_run
from unit.store.test_query_all import SUMS, ask

ADDRESS = parse_address("memory://bench/team", {})


pytestmark = pytest.mark.usefixtures("nothing_in_memory")


@pytest.fixture(autouse=True)
def _nothing_opened():
    yield
    mirrors._opened.clear()


@pytest.fixture
def machine(tmp_path):
    """Machines of their own, each with a mirror that asks whenever it is looked at."""

    def opened(name):
        mirror = open_mirror(ADDRESS, tmp_path / name)
        mirror.fresh_s = 0.0
        return mirror

    return opened


@pytest.fixture
def remote():
    return Remote(ADDRESS)


def gone(*_):
    raise ConnectError("the network is gone")


def add(mirror, name="types-20260301-100000", operations=(1, 2), **changes):
    run = make_run(mirror.root, name, **changes)
    append_rows(run, "overheads", [{"engine": f"engine-{n}", "operations": n} for n in operations])
    return run


def ids(mirror):
    return [run.id for run in read_catalogue(mirror.root).runs]


def rows(run):
    with closing(RunReader(run)) as reader:
        return reader.ask("SELECT operations FROM overheads ORDER BY 1")[1]


def test_what_one_machine_sends_another_lists_opens_and_asks(machine):
    one, two = machine("one"), machine("two")
    sent = add(one)
    assert ids(two) == []
    assert one.publish(sent) and not one.publish(sent)
    assert ids(two) == [sent.name]
    copy = two.root / sent.name
    assert not (copy / "overheads").exists() and read_manifest(copy) == read_manifest(sent)
    assert size_of(copy) == sum(path.stat().st_size for path in sent.rglob("*") if path.is_file())
    assert ask(two.root, SUMS) == [{"run": sent.name, "sum": 3}]
    assert rows(find_run(two.root, "last")) == [(1,), (2,)]
    assert not (copy / mirrors.ABSENT).exists()


def test_a_run_is_not_there_before_its_index_is(machine, remote, monkeypatch):
    one, two = machine("one"), machine("two")
    sent = add(one)
    write = Remote.write

    def cut(self, path, content):
        if path.startswith(".index/runs"):
            raise ConnectError("the network is gone")
        write(self, path, content)

    monkeypatch.setattr(Remote, "write", cut)
    told = send_pending(one.root)
    assert told.runs == () and told.left == 1 and str(told.troubles[0]) == "the network is gone"
    assert remote.files(sent.name) != [] and ids(two) == [] and ids(one) == [sent.name]
    monkeypatch.undo()
    assert unsent(one.root) == 1 and send_pending(one.root).runs == (sent.name,)
    assert ids(two) == [sent.name] and unsent(one.root) == 0


def test_a_run_that_goes_on_is_sent_again_and_read_again(machine):
    one, two = machine("one"), machine("two")
    sent = add(one)
    one.publish(sent)
    assert rows(find_run(two.root, "last")) == [(1,), (2,)]
    copy = two.root / sent.name
    append_rows(copy, "overheads", [{"engine": "more", "operations": 3}])
    attempt = Attempt("2026-03-02T10:15:00+00:00", 10**9, 1, "complete", "more")
    write_manifest(copy, replace(read_manifest(copy), attempts=(*MANIFEST.attempts, attempt)))
    assert two.pending() == [copy] and send_pending(two.root).runs == (sent.name,)
    assert rows(find_run(one.root, sent.name)) == [(1,), (2,), (3,)]


def test_of_two_who_go_on_with_a_run_the_second_keeps_his_here(machine):
    one, two = machine("one"), machine("two")
    sent = add(one)
    one.publish(sent)
    find_run(two.root, "last")
    for mirror, reason in ((one, "first"), (two, "second")):
        run = mirror.root / sent.name
        attempt = Attempt("2026-03-02T10:15:00+00:00", 10**9, 1, "complete", reason)
        write_manifest(run, replace(read_manifest(run), attempts=(*MANIFEST.attempts, attempt)))
    assert send_pending(one.root).left == 0
    told = send_pending(two.root)
    assert told.left == 1 and "somebody else resumed it" in str(told.troubles[0])
    assert read_catalogue(two.root).runs[0].manifest.attempts[-1].reason == "second"
    three = machine("three")
    assert read_catalogue(three.root).runs[0].manifest.attempts[-1].reason == "first"


def test_another_run_of_the_same_id_is_never_written_over(machine):
    one, two = machine("one"), machine("two")
    one.publish(add(one))
    add(two, seed=8)
    told = send_pending(two.root)
    assert told.left == 1 and "another run with this id" in str(told.troubles[0])
    assert read_catalogue(machine("three").root).runs[0].manifest.seed == MANIFEST.seed


def test_new_runs_get_ids_that_no_other_machine_gives(machine):
    one, two = machine("one"), machine("two")
    names = {new_run_folder(mirror.root, "a", "20260301-101500").name for mirror in (one, two)}
    assert len(names) == 2 and all(name.startswith("a-20260301-101500-") for name in names)
    assert one.wrote and two.wrote


def test_names_and_tags_are_seen_by_all_and_the_last_name_holds(machine):
    one, two = machine("one"), machine("two")
    runs = [add(one, f"types-2026030{day}-100000") for day in (1, 2)]
    set_tag(runs[0], "early", present=True)
    for run in runs:
        one.publish(run)
    ids(two)
    assert tags_of(two.root / runs[0].name) == ("early",)
    assert name_run(two.root, runs[0].name, "baseline") == (runs[0].name, None)
    set_tag(two.root / runs[0].name, "release", present=True)
    set_tag(two.root / runs[0].name, "early", present=False)
    ids(one)
    assert read_names(one.root) == {"baseline": runs[0].name} and tags_of(runs[0]) == ("release",)
    assert name_run(one.root, "last", "baseline") == (runs[1].name, runs[0].name)
    ids(two)
    assert find_run(two.root, "baseline").name == runs[1].name


def test_a_run_that_is_not_there_yet_gets_no_name_there(machine):
    one = machine("one")
    add(one)
    with pytest.raises(
        SetupError, match=r"is not at memory://bench/team yet; send it with: uncork runs push"
    ):
        name_run(one.root, "last", "baseline")
    assert read_names(one.root) == {}


def test_a_pruned_run_goes_everywhere_and_one_that_was_kept_meanwhile_stays(machine, remote):
    one, two = machine("one"), machine("two")
    for day in (1, 2):
        one.publish(add(one, f"types-2026030{day}-100000"))
    going, kept = read_catalogue(one.root).runs
    set_tag(two.root / ids(two)[1], "kept", present=True)
    assert remove_run(one.root, going.id, going.stamp)
    assert not remove_run(one.root, kept.id, kept.stamp)
    assert ids(one) == ids(two) == [kept.id] and (one.root / kept.id).is_dir()
    assert remote.files(going.id) == [] and remote.files(kept.id) != []


def test_a_run_that_gets_a_tag_while_it_is_pruned_comes_back(machine, remote, monkeypatch):
    one, two = machine("one"), machine("two")
    one.publish(add(one))
    (run,) = read_catalogue(one.root).runs
    remove = Remote.remove

    def tagged(self, paths):
        remove(self, paths)
        remote.write(f".index/tags/{run.id}/kept", b"")

    monkeypatch.setattr(Remote, "remove", tagged)
    assert not remove_run(one.root, run.id, run.stamp)
    assert ids(one) == ids(two) == [run.id] and tags_of(two.root / run.id) == ("kept",)
    assert rows(find_run(two.root, "last")) == [(1,), (2,)]


def test_what_another_process_of_this_machine_sends_meanwhile_stays(machine, monkeypatch):
    one, beside = machine("one"), machine("one")
    one.publish(add(one))
    later = add(one, "types-20260302-100000")
    files = Remote.files

    def sent(self, folder):
        found = files(self, folder)
        if self is one._remote:
            beside.publish(later)
        return found

    monkeypatch.setattr(Remote, "files", sent)
    one.refresh()
    assert later.is_dir() and one.pending() == []
    assert one.ids() == {"types-20260301-100000", later.name}


def test_what_was_left_to_another_process_of_this_machine_is_looked_at_again(machine, monkeypatch):
    one, two = machine("one"), machine("two")
    run = add(one)
    one.publish(run)
    ids(two)
    attempt = Attempt("2026-03-02T10:15:00+00:00", 10**9, 1, "complete", "more")
    write_manifest(run, replace(read_manifest(run), attempts=(*MANIFEST.attempts, attempt)))
    one.publish(run)
    read = Remote.read

    def overtaken(self, paths):
        found = read(self, paths)
        record = two._record()
        known = replace(record.runs[run.name], stamp="of another process, which read it before")
        replace(record, runs={run.name: known}).write(two.root)
        return found

    monkeypatch.setattr(Remote, "read", overtaken)
    two.refresh()
    monkeypatch.undo()
    assert len(read_catalogue(two.root).runs[0].manifest.attempts) == 2


def test_a_run_that_cannot_be_removed_there_stays_here(machine, monkeypatch):
    one = machine("one")
    one.publish(add(one))
    (run,) = read_catalogue(one.root).runs
    monkeypatch.setattr(Remote, "remove", gone)
    with pytest.raises(ConnectError):
        remove_run(one.root, run.id, run.stamp)
    assert ids(one) == [run.id]


def test_what_killed_senders_left_goes_after_a_day(machine, remote, monkeypatch):
    one = machine("one")
    one.publish(add(one))
    remote.write("types-20250101-100000/plan.json", b"{}")
    assert remove_leftovers(one.root) == 0
    monkeypatch.setattr(mirror_module, "_ABANDONED", -mirror_module._ABANDONED)
    assert remove_leftovers(one.root) == 1
    assert remote.folders().count("types-20250101-100000") == 0 and ids(one) != []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"version": 9}', b'{"version": 1, "manifest": {}, "files": {}}', b"\xff"]
)
def test_a_damaged_index_is_told_and_the_others_are_there(machine, remote, content):
    one, two = machine("one"), machine("two")
    one.publish(add(one))
    remote.write(".index/runs/other-20260302-100000.json", content)
    found = read_catalogue(two.root)
    assert [run.id for run in found.runs] == ["types-20260301-100000"]
    assert [str(error).split(": ")[:2] for error in found.damaged] == [
        ["memory://bench/team/.index/runs/other-20260302-100000.json", "damaged"]
    ]


def test_an_index_that_names_files_outside_its_run_is_damaged(machine, remote):
    one, two = machine("one"), machine("two")
    one.publish(add(one))
    path = ".index/runs/types-20260301-100000.json"
    told = json.loads(remote.read([path])[path])
    told["files"]["../../evil"] = [1, "x"]
    remote.write(path, json.dumps(told).encode())
    found = read_catalogue(two.root)
    assert found.runs == () and "outside the run: ../../evil" in str(found.damaged[0])


def test_what_would_lie_outside_the_runs_is_no_run(machine, remote):
    one, two = machine("one"), machine("two")
    one.publish(add(one))
    content = remote.read([".index/runs/types-20260301-100000.json"]).popitem()[1]
    for path in (".index/runs/...json", ".index/runs/..json", ".index/names/..", ".index/tags/../x"):
        remote.write(path, content)
    assert ids(two) == ["types-20260301-100000"]
    assert not (two.root / "manifest.json").exists() and not (two.root.parent / "manifest.json").exists()


@pytest.mark.parametrize("damage", [None, b"shorter"])
def test_a_damaged_table_is_told_and_the_others_are_asked(machine, remote, damage):
    one, two = machine("one"), machine("two")
    for day in (1, 2):
        one.publish(add(one, f"types-2026030{day}-100000"))
    path = "types-20260301-100000/overheads/000001.parquet"
    remote.remove([path])
    if damage is not None:
        remote.write(path, damage)
    assert ask(two.root, SUMS, damaged=1) == [{"run": "types-20260302-100000", "sum": 3}]
    with pytest.raises(StoreError, match=f"{path}: damaged: the file is missing or has changed"):
        find_run(two.root, "types-20260301")


def test_a_first_list_reads_the_copy_of_all_indexes(machine, remote, monkeypatch):
    monkeypatch.setattr(mirror_module, "_WORTH", 3)
    one = machine("one")
    for day in range(1, 6):
        one.publish(add(one, f"types-2026030{day}-100000"))
    settle(monkeypatch)
    assert len(ids(machine("two"))) == 5
    asked = []
    read = Remote.read
    monkeypatch.setattr(Remote, "read", lambda self, paths: asked.extend(paths) or read(self, paths))
    three = machine("three")
    assert len(ids(three)) == 5 and asked == [".index/catalogue.json.gz"]
    asked.clear()
    assert len(ids(three)) == 5 and asked == []
    remote.write(".index/catalogue.json.gz", b"no copy at all")
    assert len(ids(machine("four"))) == 5


def settle(monkeypatch):
    """Let what was written a moment ago count as long ago: the clock of the memory goes in small steps."""
    monkeypatch.setattr(mirror_module, "_SETTLED", -timedelta(days=1))


def test_a_second_list_looks_only_at_what_changed(machine, monkeypatch):
    one, two = machine("one"), machine("two")
    one.publish(add(one))
    settle(monkeypatch)
    ids(two)
    listed, read = [], []
    files, reads = Remote.files, Remote.read
    monkeypatch.setattr(Remote, "files", lambda self, folder: listed.append(folder) or files(self, folder))
    monkeypatch.setattr(Remote, "read", lambda self, paths: read.extend(paths) or reads(self, paths))
    assert len(ids(two)) == 1 and (listed, read) == ([".index"], [])
    one.publish(add(one, "types-20260302-100000"))
    listed.clear()
    read.clear()
    assert len(ids(two)) == 2
    assert (listed, read) == ([".index"], [".index/runs/types-20260302-100000.json"])


def test_a_run_that_a_person_removes_there_is_listed_no_more(machine, remote):
    one, two = machine("one"), machine("two")
    one.publish(add(one))
    ids(two)
    for entry in remote.files(".index/runs"):
        remote.remove([entry.path])
    assert ids(two) == []


def test_a_damaged_index_is_told_again_and_again_until_it_is_whole(machine, remote):
    one, two = machine("one"), machine("two")
    run = add(one)
    one.publish(run)
    path = f".index/runs/{run.name}.json"
    content = remote.read([path])[path]
    remote.write(path, b"{")
    assert [len(read_catalogue(two.root).damaged) for _ in range(2)] == [1, 1]
    remote.write(path, content)
    assert ids(two) == [run.name] and read_catalogue(two.root).damaged == ()


@pytest.mark.parametrize("seed", range(3))
def test_a_list_that_reads_only_changed_entries_says_what_a_first_list_says(
    machine, remote, monkeypatch, seed
):
    """Machines send, tag, name and remove; each may be cut off at any request, others list at any request."""
    chance = random.Random(seed)
    machines = [
        machine(name) for name in ("one", "two", "three", "one")
    ]  # the last is another process of the first
    busy = False

    def beside():
        other = chance.choice(machines)
        other.refresh()
        if other.ids() and chance.random() < 0.3:
            set_tag(other.root / chance.choice(sorted(other.ids())), chance.choice("xy"), present=True)

    def disturbed(method):
        def act(self, *arguments):
            nonlocal busy
            if not busy and self is not remote:
                busy = True
                if chance.random() < 0.2:
                    beside()
                busy = False
                if chance.random() < 0.05:
                    raise ConnectError("the network is gone")
            return method(self, *arguments)

        return act

    for name in ("write", "remove", "files", "read"):
        monkeypatch.setattr(Remote, name, disturbed(getattr(Remote, name)))
    for step in range(40):
        mirror = chance.choice(machines)
        there = sorted(mirror.ids())
        act = chance.choice(["add", "send", "tag", "untag", "name", "remove"])
        with contextlib.suppress(ConnectError):
            if act == "add" or not there:
                run = add(mirror, f"types-20260301-{100000 + step}")
                set_tag(run, "x", present=chance.random() < 0.3)
                mirror.publish(run)
            elif act == "send":
                assert all(isinstance(one, ConnectError) for one in send_pending(mirror.root).troubles)
            elif act == "name":
                name_run(mirror.root, chance.choice(there), chance.choice("ab"))
            elif act == "remove":
                mirror.remove(chance.choice(there))
            else:
                set_tag(mirror.root / chance.choice(there), chance.choice("xy"), present=act == "tag")
        busy = True
        told = [known_to(one) for one in machines]
        fresh = machine(f"fresh-{step}")
        assert told == [known_to(fresh)] * 4
        busy = False


def known_to(mirror):
    """Return the runs that a machine says to be at the address, with their tags and names."""
    mirror.refresh()
    record = mirror._record()
    tags = {id: tags_of(mirror.root / id) for id in record.runs}
    return tags, {id: run.digest for id, run in record.runs.items()}, read_names(mirror.root)


def test_a_copy_that_went_is_brought_again(machine):
    one, two = machine("one"), machine("two")
    one.publish(add(one))
    find_run(two.root, "last")
    shutil.rmtree(two.root / "types-20260301-100000")
    assert rows(find_run(two.root, "last")) == [(1,), (2,)]
    (two.root / ".mirror.json").write_text("no record")
    assert ids(two) == ["types-20260301-100000"] and two.pending() == []


def test_whoever_asks_often_keeps_the_list_when_the_address_is_gone(machine, monkeypatch):
    one = machine("one")
    one.publish(add(one))
    before = read_catalogue(one.root)
    monkeypatch.setattr(Remote, "files", gone)
    after = read_catalogue(one.root, before)
    assert [run.id for run in after.runs] == ids_of(before)
    assert "the network is gone; the list shows the runs known before" in str(after.damaged[0])
    with pytest.raises(ConnectError):
        read_catalogue(one.root)


def ids_of(catalogue):
    return [run.id for run in catalogue.runs]


def test_a_killed_run_is_sent_as_interrupted_and_a_running_one_is_not(machine):
    one = machine("one")
    from uncork.engines.process import identity

    gone = {**identity(os.getpid()), "pid": 0}
    add(one, "killed-20260301-100000", status="running", owner=gone)
    add(one, "running-20260301-100000", status="running", owner=identity(os.getpid()))
    assert send_pending(one.root).runs == ("killed-20260301-100000",)
    (run,) = read_catalogue(machine("two").root).runs
    assert run.manifest.status == "interrupted" and run.manifest.attempts[-1].reason.endswith("was killed")


def test_runs_are_pushed_from_a_folder_and_pulled_to_another(machine, tmp_path):
    one = machine("one")
    here, there = tmp_path / "here", tmp_path / "there"
    for day in (1, 2):
        run = make_run(here, f"types-2026030{day}-100000")
        append_rows(run, "overheads", [{"engine": "a", "operations": day}])
    set_tag(here / "types-20260301-100000", "early", present=True)
    name_run(here, "last", "baseline")
    assert len(push_runs(here, one.root).runs) == 2
    assert push_runs(here, one.root).runs == ()
    two = machine("two")
    assert pull_runs(two.root, there, ["baseline"]).runs == ("types-20260302-100000",)
    assert pull_runs(two.root, there, []).runs == ("types-20260301-100000",)
    assert ask(there, SUMS) == ask(here, SUMS)
    assert tags_of(there / "types-20260301-100000") == ("early",)
    with pytest.raises(UsageError, match="is an address: name the folder"):
        push_runs(one.root, two.root)


def test_a_copy_without_its_address_says_where_its_files_are(machine):
    one, two = machine("one"), machine("two")
    one.publish(add(one))
    ids(two)
    mirrors._opened.clear()
    with pytest.raises(StoreError, match="its files are at an address; name the address with --runs"):
        RunReader(two.root / "types-20260301-100000")


@pytest.mark.parametrize(
    ("text", "said"),
    [("nobody://x/y", 'unknown scheme "nobody"'), ("gs://x/y", r"-m pip install .*\bgcsfs$")],
)
def test_a_scheme_that_nothing_speaks_says_what_to_do(tmp_path, text, said):
    with pytest.raises(UsageError, match=said):
        open_mirror(parse_address(text, {}), tmp_path)
