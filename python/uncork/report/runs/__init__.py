"""Reports over several runs, and of runs that other tools made."""
