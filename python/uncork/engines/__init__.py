"""The database servers under test: start and configure them, prepare data, take snapshots, stop them."""
