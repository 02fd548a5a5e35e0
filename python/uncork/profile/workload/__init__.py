"""Build a workload that can be sent again from the statements that a server was seen to execute."""
