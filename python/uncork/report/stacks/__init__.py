"""The report of sampled stacks."""
