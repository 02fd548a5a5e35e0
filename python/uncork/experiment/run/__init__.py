"""Run the trials of an experiment through the ports, and track what is known."""
