"""Services beside the database: their processes, and the files, threads and connections these hold."""
