"""The report on sampled stacks."""
