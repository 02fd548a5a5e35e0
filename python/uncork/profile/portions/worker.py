"""Read logs for another process. A program: ``python -m uncork.profile.portions.worker``.

Standard input has jobs: a length, a line end, and a pickled task with the path of its result. After each, the
program writes a line: ``done``, or why the log cannot be read. It ends at the end of standard input.
"""

from __future__ import annotations

import pickle
import sys

from uncork.errors import UncorkError
from uncork.profile.portions.tasks import gather_task


def main() -> None:
    """Carry out the tasks that standard input brings."""
    source, answers = sys.stdin.buffer, sys.stdout.buffer
    while line := source.readline():
        task, path = pickle.loads(source.read(int(line)))  # noqa: S301 -- from the process that started this
        try:
            path.write_bytes(gather_task(task))
            answer = "done"
        except (UncorkError, ValueError, OSError) as error:
            answer = str(error).replace("\n", "\x00") or type(error).__name__
        answers.write(answer.encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    main()
