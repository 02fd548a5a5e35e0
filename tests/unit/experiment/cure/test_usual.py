"""What people often try first is measured too, unless it is what was chosen."""

from __future__ import annotations

from uncork.experiment.cure.arms import Arm, usual_arms
from uncork.model.database.workload import CapturedWorkload

WORKLOAD = CapturedWorkload((), (), 60.0, 1.0)
INDEX = Arm("i", "index", "", "", "", setup="CREATE INDEX ON orders (customer)", tables=("orders",))


def test_more_memory_and_an_index_on_each_column_of_the_tables_with_chosen_indexes():
    columns = {"orders": ("id", '"E-Mail"'), "items": ("id",)}
    memory, each = usual_arms([INDEX], WORKLOAD, columns)
    assert memory.settings == {"work_mem": "256MB"} and memory.setup == ""
    assert each.setup == 'CREATE INDEX ON orders (id);\nCREATE INDEX ON orders ("E-Mail");'
    assert each.text == "An index on each of the 2 columns of orders."


def test_a_chosen_setting_is_not_tried_again_and_other_changes_want_no_indexes():
    setting = Arm("m", "setting", "", "", "", settings={"work_mem": "64MB"})
    assert usual_arms([setting], WORKLOAD, {"orders": ("id",)}) == ()
    assert [one.name for one in usual_arms([INDEX], WORKLOAD, {"orders": ()})] == ["more-memory"]
