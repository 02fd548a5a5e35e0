"""The only place that joins the parts: experiment, engines, load, store and report.

`source` finds an experiment and applies what the command line changed; `runs` measures it; `results` turns
a stored run into what a report says.
"""
