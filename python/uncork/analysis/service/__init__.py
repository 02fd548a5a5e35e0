"""Read stored profiles of services, and build their results."""
