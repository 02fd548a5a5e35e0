"""Make a server plan as if it had a source's data, with its statistics and its sizes, and without its rows.

`copy.SparseCopy` is the entry. `source_sizes` reads the source, `files` extends the files of relations,
`index_facts` reads what the size of an index depends on, and `estimate` computes it (pure).
"""
