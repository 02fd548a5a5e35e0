"""Results of finished runs, one module a kind of run; each is a public JSON document.

Its version is raised whenever a field changes its meaning or is removed.
"""
