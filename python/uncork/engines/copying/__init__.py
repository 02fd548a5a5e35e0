"""Copy a database to another server: its schema from the catalogue, its rows by COPY from one snapshot.

`database.copy_source` is the entry. `schema` reads the definitions as statements, `applying` executes these
on the copy, `rows` and `closing` transfer the rows, and `chosen_settings` reads the settings.
"""
