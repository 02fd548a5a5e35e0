"""Runs on disk: one folder for each run, with a manifest and Parquet tables, all written atomically."""
