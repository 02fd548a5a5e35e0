"""Experiment files that several tests run."""

QUICK = '''
[experiment]
name = "quick"
question = "Is a look-up by key faster than a scan?"

[variants.scan]
baseline = true
values = { condition = "id + 0 = :id::int" }

[variants.key]
values = { condition = "id = :id::int" }

[setup]
sql = """
CREATE TABLE t (id int PRIMARY KEY, f text);
INSERT INTO t SELECT n, 'x' FROM generate_series(1, 3000) AS n
"""

[workloads.get]
sql = "SELECT f FROM t WHERE :condition"
operations = 40
parameters.id = { generator = { kind = "uniform", min = 1, max = 3000 } }

[server.settings]
shared_buffers = "32MB"

[stop]
budget = "200s"
precision = "50%"
'''
