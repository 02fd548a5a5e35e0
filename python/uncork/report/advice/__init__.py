"""The report of `uncork advise`: findings with their bill, evidence and candidates."""
