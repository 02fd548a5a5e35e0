"""Glances at a run in progress: kept line by line, read whatever state the file is in."""

from uncork.store.snapshots import SNAPSHOTS, add_snapshot, delete_snapshots, read_snapshots


def test_glances_are_read_as_they_were_told(tmp_path):
    for number in range(3):
        add_snapshot(tmp_path, {"elapsed_ns": number, "classes": [["CPU", 1.5]]})
    assert [one["elapsed_ns"] for one in read_snapshots(tmp_path)] == [0, 1, 2]
    delete_snapshots(tmp_path)
    assert read_snapshots(tmp_path) == []
    delete_snapshots(tmp_path)


def test_a_line_that_was_cut_off_costs_only_itself(tmp_path):
    add_snapshot(tmp_path, {"elapsed_ns": 1})
    with (tmp_path / SNAPSHOTS).open("ab") as file:
        file.write(b'{"elapsed_ns": 2, "secon\n[1, 2]\n\xff\xfe\n')
    add_snapshot(tmp_path, {"elapsed_ns": 3})
    assert [one["elapsed_ns"] for one in read_snapshots(tmp_path)] == [1, 3]


def test_a_folder_that_is_gone_or_full_ends_nothing(tmp_path):
    add_snapshot(tmp_path / "gone", {"elapsed_ns": 1})
    assert read_snapshots(tmp_path / "gone") == []
