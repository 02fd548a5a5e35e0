"""Results of sampled stacks."""
