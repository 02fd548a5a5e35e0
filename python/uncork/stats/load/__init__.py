"""Statistics of a load and of a load sweep: knee, saturation, queues, stalls."""
