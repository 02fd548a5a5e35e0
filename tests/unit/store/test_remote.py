"""What is read and written at an address where files are written bit by bit: a disk, as it is over SFTP."""

import pytest

from uncork.errors import ConnectError
from uncork.store.remote.address import Address
from uncork.store.remote.objects import Remote


@pytest.fixture
def disk(tmp_path):
    import fsspec
    from fsspec.implementations.local import LocalFileSystem

    class Disk(LocalFileSystem):
        protocol = "disk"

        @classmethod
        def _strip_protocol(cls, path):
            return super()._strip_protocol(path.removeprefix("disk://"))

    fsspec.register_implementation("disk", Disk, clobber=True)
    root = tmp_path / "there"
    return Remote(
        Address(text=f"disk://{root}", scheme="disk", shown="disk://anna:***@host", key="disk")
    ), root


def test_a_file_is_written_under_another_name_first(disk, monkeypatch):
    remote, root = disk
    remote.write(".index/runs/a.json", b"one")
    remote.write(".index/runs/a.json", b"two, which is longer")
    assert [path.name for path in root.rglob("*") if path.is_file()] == ["a.json"]
    assert remote.read([".index/runs/a.json", "nothing"]) == {".index/runs/a.json": b"two, which is longer"}
    fs, _ = remote._fs()

    def cut(draft, target, **_options):
        assert draft.endswith(".new") and remote.read([".index/runs/a.json"]) != {}
        raise OSError("the line is cut")

    monkeypatch.setattr(fs, "mv", cut)
    with pytest.raises(ConnectError, match=r"^disk://anna:\*\*\*@host: cannot write it: the line is cut$"):
        remote.write(".index/runs/b.json", b"three")
    assert [entry.path for entry in remote.files(".index")] == [".index/runs/a.json"]


def test_files_come_and_go(disk, tmp_path):
    remote, root = disk
    assert remote.files(".index") == [] and remote.folders() == []
    source = tmp_path / "table.parquet"
    source.write_bytes(b"rows")
    remote.write_files({"run/trials/000001.parquet": source, "run/plan.json": source})
    (entry,) = [one for one in remote.files("run") if one.path == "run/plan.json"]
    assert entry.size == 4 and entry.changed_at is not None and not entry.exact
    assert remote.folders() == ["run"]
    copy = tmp_path / "copy"
    assert remote.read_to("run/plan.json", copy) and copy.read_bytes() == b"rows"
    assert not remote.read_to("run/nothing", copy)
    remote.remove(["run/plan.json", "run/gone.json"])
    remote.remove_folder("run")
    remote.remove_folder("run")
    assert list(root.iterdir()) == []


def test_no_message_holds_the_password(disk, monkeypatch):
    remote, _ = disk

    def refused(*_arguments, **_options):
        raise PermissionError(f"denied: {remote.address.text}/x")

    monkeypatch.setattr(remote._fs()[0], "find", refused)
    with pytest.raises(ConnectError) as caught:
        remote.files(".index")
    assert remote.address.text not in str(caught.value) and "not allowed to list it" in str(caught.value)
