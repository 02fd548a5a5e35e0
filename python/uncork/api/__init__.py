"""The hand for Python: the verbs of the command line as functions, for notebooks, scripts and tests.

`import uncork` gives them, each loaded when it is first used. What they return is shown by notebooks and has
its tables as Arrow, pandas and Polars. `uncork.api.pytest_plugin` is the fixture `uncork` of pytest.
"""
