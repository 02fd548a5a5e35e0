"""What a finished run tells, one module a kind of run; each is a public JSON document."""
