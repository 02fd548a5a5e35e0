"""The Python interface: the commands as functions, for notebooks, scripts and tests.

`import uncork` provides them and loads each on first use. Notebooks display the runs they return, and their
tables convert to Arrow, pandas and Polars. `uncork.api.pytest_plugin` provides the pytest fixture `uncork`.
"""
