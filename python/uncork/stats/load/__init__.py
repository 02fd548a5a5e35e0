"""What a load and a sweep of loads show: knee, saturation, queues, stalls."""
