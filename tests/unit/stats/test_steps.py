"""Change points: as Otava finds them, and as they are told."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from uncork.stats import steps
from uncork.stats.steps import FALSE_ALARMS, TRIES, change_points, energy_split, hunter

SERIES = json.loads((Path(__file__).parents[2] / "fixtures" / "steps" / "otava-0.8.0.json").read_text())
CASES = [
    (name, int(window.split()[1]), float(p_value), points)
    for name, facts in SERIES.items()
    for window in ("window 50", "window 20")
    for p_value, points in facts[window].items()
]


def found(values, **options):
    return [point.index for point in hunter(values, **options)]


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("p_value", [0.001, 0.0001])
def test_points_are_those_of_otava(name, p_value):
    assert found(SERIES[name]["values"], max_p_value=p_value) == SERIES[name]["window 50"][str(p_value)]


@pytest.mark.parametrize(("name", "window", "p_value", "points"), CASES)
def test_with_the_slip_of_its_merging_all_points_are_otavas(monkeypatch, name, window, p_value, points):
    """Otava tests anew only the points to the right of one that it took away; that is put back here."""
    monkeypatch.setattr(steps, "_merged", merged_as_otava_does)
    assert found(SERIES[name]["values"], window=window, max_p_value=p_value) == points


def merged_as_otava_does(places, series, max_p_value, *, least_change=0.0):
    points = steps._points(list(places), series)
    while points:
        weakest = max(points, key=lambda point: point.p_value)
        if weakest.p_value < max_p_value:
            weakest = min(points, key=steps._magnitude)
            if steps._magnitude(weakest) > least_change:
                break
        place = points.index(weakest)
        del points[place]
        fresh = steps._points([point.index for point in points], series)
        points[place : place + 2] = fresh[place : place + 2]
    return points


def test_the_published_example_of_otava_in_figures():
    """docs/CSV.md: one change point of metric2, -12.9 %, at 2024-01-07, the seventh run; none of metric1."""
    (point,) = hunter(SERIES["otava docs CSV.md metric2"]["values"])
    assert point.index == 6
    assert point.after / point.before - 1 == pytest.approx(-0.129, abs=0.0005)
    assert point.p_value == pytest.approx(4.9852621831716505e-06, rel=1e-9)
    assert change_points(SERIES["otava docs CSV.md metric2"]["values"]).points[0].index == 6
    assert hunter(SERIES["otava docs CSV.md metric1"]["values"]) == []


@pytest.mark.parametrize(("name", "points"), [
    ("one step of 10 %", [30]),
    ("step back", [25, 37]),
    ("three steps in 150", [50, 80, 120]),
    ("skewed noise with a step", [45]),
    ("outliers", []),
    ("noise 40", []),
    ("noise 120", []),
])  # fmt: skip
def test_known_steps_are_found_where_they_are(name, points):
    assert [point.index for point in change_points(SERIES[name]["values"]).points] == points


def test_a_drift_is_told_as_steps_upwards():
    points = change_points(SERIES["drift"]["values"]).points
    assert points
    assert all(point.after > point.before for point in points)


def slow_energy(left, right):
    """The scaled energy distance, term by term from the paper."""
    m, n = len(left), len(right)
    across = sum(abs(x - y) for x in left for y in right) * 2 / (m * n)
    own = [
        sum(abs(part[i] - part[k]) for i in range(len(part)) for k in range(i)) / math.comb(len(part), 2)
        if len(part) > 1
        else 0.0
        for part in (left, right)
    ]
    return m * n / (m + n) * (across - sum(own))


@pytest.mark.parametrize("count", [2, 3, 4, 9, 23])
def test_the_split_is_the_one_of_the_plain_definition(count):
    values = np.random.default_rng(count).normal(size=count).tolist()
    all_of_them = {
        (split, end): slow_energy(values[:split], values[split:end])
        for split in range(1, count)
        for end in range(split + 1, count + 1)
    }
    best = max(all_of_them, key=all_of_them.__getitem__)
    split, distance = energy_split(np.array(values))
    assert split == best[0]
    assert distance == pytest.approx(all_of_them[best])


def test_a_point_tells_both_levels_and_how_sure_it_is():
    values = [10.0, 10.1, 9.9, 10.0, 10.2, 12.0, 12.1, 11.9, 12.0]
    (point,) = change_points(values).points
    assert (point.index, point.before_count, point.after_count) == (5, 5, 4)
    assert point.before == pytest.approx(10.04)
    assert point.after == pytest.approx(12.0)
    assert point.chance == pytest.approx(TRIES * len(values) * point.p_value)
    assert point.chance < FALSE_ALARMS


@pytest.mark.parametrize("last", [[12.0], [12.0, 12.1]])
def test_one_or_two_runs_at_the_end_are_only_suspected(last):
    known = [10.0, 10.1, 9.9, 10.0, 10.2, 10.05, 9.95, 10.1]
    told = change_points([*known, *last])
    assert told.points == ()
    assert told.suspected.index == len(known)
    told = change_points([*known, *last, 11.9, 12.05])
    assert [point.index for point in told.points] == [len(known)]
    assert told.suspected is None


def test_an_outlier_in_the_middle_is_no_level():
    values = [10.0, 10.1, 9.9, 10.0, 10.2, 30.0, 10.1, 9.9, 10.0, 10.05, 9.95, 10.1]
    assert change_points(values).points == ()


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 9.0, 1.0, 9.0, 9.0], [5.0] * 40])
def test_too_few_runs_or_all_alike_show_nothing(values):
    assert change_points(values).points == ()
    assert hunter(values[:1]) == []


def test_a_step_without_any_noise_is_certain():
    (point,) = change_points([5.0] * 8 + [6.0] * 8).points
    assert (point.index, point.p_value, point.chance) == (8, 0.0, 0.0)


def test_dependence_between_neighbours_widens_the_tests():
    generator = np.random.default_rng(1)
    walk = np.cumsum(generator.normal(size=60)) + 100
    assert change_points(walk.tolist()).inflation > 1
    assert change_points(generator.normal(100, 5, 60).tolist()).inflation == 1


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_what_is_no_number_is_refused(wrong):
    with pytest.raises(ValueError, match="finite"):
        change_points([1.0, wrong])
    with pytest.raises(ValueError, match="between 0 and 1"):
        change_points([1.0], false_alarms=1.0)
    with pytest.raises(ValueError, match="at least 2"):
        hunter([1.0], window=1)
