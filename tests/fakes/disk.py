"""A file system that is soon full."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(size: str, owner: int = 0) -> Iterator[Path]:
    """Mount a file system of that size where any user may go; skip the test where we may not mount one."""
    if os.geteuid() != 0:
        pytest.skip("needs to mount a small file system, which takes root")
    with tempfile.TemporaryDirectory(prefix="ucd-", dir="/var/tmp") as above:
        Path(above).chmod(0o755)
        folder = Path(above, "disk")
        folder.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size},uid={owner}", "tmpfs", folder]
        if subprocess.run(mount, check=False).returncode != 0:
            pytest.skip("may not mount a small file system here")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)
