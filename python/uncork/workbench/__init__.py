"""The only place that joins the parts: experiment, engines, load, store and report.

`source` finds an experiment and applies what the command line changed; `runs` measures it; `stored` reads
back what a run knows; `results` turns it into what a report says; `gate` checks expectations of it; `doctor`
compares a system with itself. `loads` loads a server by itself, `logs` profiles logs.
"""
