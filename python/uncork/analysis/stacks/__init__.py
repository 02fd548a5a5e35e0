"""What sampled stacks show."""
