"""From samples to where time goes: weights, classes, the tree, history."""

import pytest

from uncork.model.database.wait_classes import CPU, IDLE
from uncork.profile.activity import (
    averages,
    file_waits,
    history,
    history_places,
    time_tree,
    usage,
    wait_class,
    weights,
)

SECOND = 1_000_000


def row(weight=SECOND, *, state="active", wait=None, template=0, application="app", backend="client backend"):
    of_class, _, event = (wait or ":").partition(":")
    return {
        "weight": weight,
        "backend": backend,
        "state": state,
        "wait_class": of_class or None,
        "wait_event": event or None,
        "template": template,
        "application": application,
    }


def test_samples_stand_for_the_time_around_them_and_leave_no_hole():
    assert weights([10, 20, 50], 0, 100) == [15, 20, 65]
    assert weights([], 0, 100) == []
    assert weights([30], 0, 100) == [100]


@pytest.mark.parametrize(
    ("found", "of_class"),
    [
        (row(), CPU),
        (row(wait="Lock:tuple"), "Lock"),
        (row(wait="Client:ClientRead", state="idle in transaction"), IDLE),
        (row(wait="Client:ClientRead", state="idle in transaction (aborted)"), IDLE),
        (row(wait="Client:ClientWrite"), "Client"),
        (row(wait="IPC:AioIoCompletion"), "IO"),
        (row(wait="IPC:ParallelFinish"), "IPC"),
        (row(wait="Timeout:VacuumDelay", state=None, backend="autovacuum worker"), "Timeout"),
    ],
)
def test_what_a_process_is_busy_with(found, of_class):
    assert wait_class(found) == of_class


def test_the_tree_goes_from_class_to_event_to_template_to_application():
    rows = [
        row(3 * SECOND, wait="Lock:tuple", template=1, application="shop"),
        row(1 * SECOND, wait="Lock:transactionid", template=1, application="shop"),
        row(2 * SECOND, template=2, application="reports"),
    ]
    tree = time_tree(rows, 2.0 * SECOND)
    assert (tree.sessions, tree.share) == (3.0, 1.0)
    lock, cpu = tree.children
    assert (lock.name, lock.sessions, lock.share) == ("Lock", 2.0, pytest.approx(2 / 3))
    assert [(event.name, event.sessions) for event in lock.children] == [
        ("tuple", 1.5),
        ("transactionid", 0.5),
    ]
    (template,) = lock.children[0].children
    assert (template.kind, template.template) == ("template", 1)
    assert [leaf.name for leaf in template.children] == ["shop"]
    assert (cpu.name, cpu.children[0].kind) == (CPU, "template")


def test_waits_for_files_are_those_that_track_io_timing_measures():
    rows = [
        row(SECOND, wait="IO:DataFileRead", template=1),
        row(SECOND, wait="IO:BufFileWrite", template=1),
        row(SECOND, wait="IO:WALSync", template=2),
        row(SECOND, wait="IPC:AioIoCompletion", template=1),
        row(SECOND, template=1),
    ]
    assert file_waits(time_tree(rows, SECOND)) == pytest.approx(3 / 5)
    assert file_waits(time_tree([], 0.0)) == 0


def test_many_small_parts_are_told_together_and_still_add_up():
    tree = time_tree([row(SECOND + n, template=n) for n in range(50)], float(SECOND))
    (cpu,) = tree.children
    assert len(cpu.children) == 21
    others = cpu.children[-1]
    assert (others.kind, others.name) == ("others", "30")
    assert sum(child.sessions for child in cpu.children) == pytest.approx(cpu.sessions)


def test_processes_that_serve_no_client_come_by_kind():
    rows = [
        row(wait="IO:DataFileWrite", state=None, backend="checkpointer", template=None),
        row(backend="parallel worker", template=4),
    ]
    tree = time_tree(rows, float(SECOND), by_process=True)
    assert [(child.kind, child.name) for child in tree.children] == [
        ("process", "checkpointer"),
        ("process", "parallel worker"),
    ]
    worker = tree.children[1].children[0]
    assert (worker.name, worker.children[0].template) == (CPU, 4)


def test_nothing_seen_is_an_empty_tree():
    tree = time_tree([], float(SECOND))
    assert (tree.sessions, tree.share, tree.children) == (0, 0, ())


def test_who_was_busy_comes_in_the_order_of_sessions():
    found = averages(
        [row(application="a"), row(2 * SECOND, application="b")], lambda one: one["application"], 4e6
    )
    assert [(one.name, one.sessions, one.share) for one in usage(found, 0.75)] == [
        ("b", 0.5, pytest.approx(2 / 3)),
        ("a", 0.25, pytest.approx(1 / 3)),
    ]


def test_history_holds_the_average_of_the_samples_of_each_step():
    begun, ended = 10 * SECOND, 13 * SECOND
    times = [begun + n * SECOND // 2 for n in range(6)]
    shares = weights(times, begun, ended)
    places = history_places(times, begun, ended)
    assert places == [0, 0, 1, 1, 2, 2]
    rows = [
        {**row(shares[0] + shares[1]), "place": 0},
        {**row(shares[4], wait="Lock:tuple"), "place": 2},
    ]
    found = history(rows, places, shares, begun, ended)
    assert (found.start_us, found.step_s) == (begun, 1)
    layers = {layer.name: layer.sessions for layer in found.layers}
    assert layers[CPU] == (1.0, 0.0, 0.0)
    assert layers["Lock"] == (0.0, 0.0, pytest.approx(shares[4] / (shares[4] + shares[5])))


def test_a_long_watch_has_longer_steps():
    found = history([{**row(), "place": 0}], [0], [1.0], 0, 3600 * SECOND)
    assert (found.step_s, len(found.layers[0].sessions)) == (30, 120)
