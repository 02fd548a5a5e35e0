"""What is wrong with a database, from any stored evidence of it."""
