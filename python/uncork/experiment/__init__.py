"""Experiments: from a question in a file to trials. The steps are spec → plan → runner."""
