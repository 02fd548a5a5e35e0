"""Programs that tests need. CI installs them, so a test that lacks one fails there and is not skipped."""

import os
import shutil

import pytest


def needs(program: str) -> pytest.MarkDecorator:
    """Skip a test on a machine without the program, except in CI."""
    missing = shutil.which(program) is None and not os.environ.get("CI")
    return pytest.mark.skipif(missing, reason=f"{program} is not installed")
