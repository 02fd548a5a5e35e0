"""Whether a guard's gates hold, on pairs and against earlier runs."""
