"""Turn stored runs into reports."""
