"""Rules about the whole server: WAL, checkpoints, memory. Pure."""
