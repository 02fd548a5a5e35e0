"""Make a server plan as if it had a source's data, with its statistics and its sizes, and without its rows.

`copy.SparseCopy` is the entry. `source_sizes` reads the source, `estimate` computes sizes of indexes.
"""
