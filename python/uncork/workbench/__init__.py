"""The only package that joins the parts: experiment, engines, load, profile, store, analysis and report.

A request comes in; a run's folder and events come out. `experiment` measures experiments, `load`
sends loads and sweeps, `profile` reads logs and watches servers, `guard` compares with a baseline
or with history, `overhead` measures what observing costs, and `documents` turns stored runs into
reports. `run_record` starts every run and records how it ended.
"""
