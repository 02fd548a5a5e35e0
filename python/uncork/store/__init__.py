"""Runs on disk: a folder a run, a manifest and Parquet tables, written whole or not at all."""
