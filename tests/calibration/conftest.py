"""The instrument tested as an instrument: `pytest tests/calibration --calibration=long` for exact figures."""

from collections.abc import Callable

import numpy as np
import pytest

SEED = 20260821
QUICK, LONG = 2_000, 20_000

_FIGURES = pytest.StashKey[list[str]]()


def pytest_addoption(parser):
    parser.addoption(
        "--calibration",
        choices=("quick", "long"),
        default="quick",
        help=f"simulated experiments a figure: {QUICK} (quick) or {LONG} (long)",
    )


def pytest_terminal_summary(terminalreporter, config):
    figures = config.stash.get(_FIGURES, [])
    if figures:
        terminalreporter.section(f"calibration, seed {SEED}")
        for line in sorted(figures):
            terminalreporter.write_line(line)


@pytest.fixture
def runs(pytestconfig) -> int:
    # The default stands here too: an option of a conftest below the root is unknown to runs of all tests.
    return LONG if pytestconfig.getoption("--calibration", default="quick") == "long" else QUICK


@pytest.fixture
def generator(request) -> np.random.Generator:
    """Give each test its own stream of the one seed, named by the test."""
    return np.random.default_rng([SEED, *request.node.name.encode()])


@pytest.fixture
def figure(pytestconfig) -> Callable[[str, float], None]:
    """Record a measured share for the summary."""
    if _FIGURES not in pytestconfig.stash:
        pytestconfig.stash[_FIGURES] = []

    def record(what: str, share: float) -> None:
        pytestconfig.stash[_FIGURES].append(f"{what:<88} {share:8.2%}")

    return record
