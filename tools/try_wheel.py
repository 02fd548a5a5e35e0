"""Install a wheel in an empty environment without Rust, and measure something with it (`make wheel`)."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

PATH = "/usr/local/bin:/usr/bin:/bin"


def main() -> None:
    """Exit with a message if a command fails."""
    (wheel,) = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="uncork-wheel-") as folder:
        place = Path(folder)
        # No PYTHONPATH, no virtual environment, no cargo: what is not in the wheel is not there.
        kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
        environment = {"PATH": PATH, "LC_ALL": "C.UTF-8", **kept}

        def run(*words: str | Path) -> str:
            done = subprocess.run(
                words, cwd=place, env=environment, text=True, capture_output=True, check=False
            )
            if done.returncode:
                raise SystemExit(
                    f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
                )
            return done.stdout

        run(sys.executable, "-m", "venv", place / "environment")
        bin = place / "environment" / "bin"
        run(bin / "pip", "install", "--quiet", "--only-binary=:all:", Path(wheel).resolve())
        print(run(bin / "uncork", "--version").strip())
        run(bin / "uncork", "load", "sql", "--embedded", "-S", "-c", "2", "-T", "1")
        print(run(bin / "uncork", "report", "last").splitlines()[0])


if __name__ == "__main__":
    main()
