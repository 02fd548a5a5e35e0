"""The report on database and pooler logs."""
