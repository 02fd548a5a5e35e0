"""Build typed results from stored runs. No sentences: the report adds them."""
