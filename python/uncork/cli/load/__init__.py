"""The verb `load`: SQL, HTTP and sweeps."""
