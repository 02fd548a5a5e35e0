"""The database servers under test: start, configure, prepare data, snapshot, stop."""
