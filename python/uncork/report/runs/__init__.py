"""Reports on several runs, and on results imported from other tools."""
