"""Read logs in tasks of other processes, after logs of earlier runs, and after an interruption."""
