"""The verb `profile`: logs, database and processors."""
