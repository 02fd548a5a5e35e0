"""Copy a database to another server: its schema from the catalogue, its rows by COPY from one snapshot.

`database.copy_source` is the entry. `schema` reads the definitions, `ddl` writes them as statements (pure),
`applying` executes these on the copy, `rows` and `closing` transfer the rows, `sampling` and `pace` decide
how many and how fast (pure), `lost` names what a copy lacks, `chosen_settings` reads the settings.
"""
