"""Every entry of a log becomes a row of a Parquet file, written table by table as the core sends them."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from uncork.errors import StoreError
from uncork.profile.logs import LogFollower, LogRequest, read_logs
from uncork.store.event_files import EventFiles

LOG = Path(__file__).parents[2] / "fixtures" / "logs" / "same-events.stderr.log.gz"
ROWS = pa.table({"offset": pa.array([0, 90], pa.uint64()), "message": ["a", None]})


def test_each_table_becomes_a_row_group_with_its_columns(tmp_path):
    file = EventFiles(tmp_path).create(3, ROWS.slice(0, 0))
    for _ in range(2):
        file.write(ROWS)
    file.write(ROWS.slice(0, 0))
    file.close()
    stored = pq.ParquetFile(tmp_path / "events-3.parquet")
    assert stored.num_row_groups == 2
    assert stored.read().equals(pa.concat_tables([ROWS, ROWS]))


def test_a_part_without_entries_has_the_columns_all_the_same(tmp_path):
    EventFiles(tmp_path).create(0, ROWS.slice(0, 0)).close()
    assert pq.read_table(tmp_path / "events-0.parquet").equals(ROWS.slice(0, 0))


@pytest.mark.parametrize("threads", [1, 3])
def test_every_entry_is_a_row_once_whatever_the_number_of_threads(tmp_path, threads):
    reading = read_logs(LogRequest((LOG,), threads=threads, events=EventFiles(tmp_path)))
    rows = pa.concat_tables(pq.read_table(path) for path in tmp_path.glob("events-*.parquet"))
    assert len(list(tmp_path.iterdir())) == threads
    assert rows.filter(pc.not_equal(rows["kind"], "addition")).num_rows == reading.facts["entries"]
    assert len(set(rows["offset"].to_pylist())) == rows.num_rows


def test_a_folder_that_is_gone_is_refused_in_the_words_of_the_system(tmp_path):
    gone = tmp_path / "gone"
    request = LogRequest((LOG,), events=EventFiles(gone))
    expected = (
        f"cannot write events into {gone}: No such file or directory; name another folder with --events"
    )
    for read in (read_logs, LogFollower):
        with pytest.raises(StoreError) as caught:
            read(request)
        assert str(caught.value) == expected
