"""Sends the work and times it. The hot path is the Rust core; this room hands it plans and reads results."""
