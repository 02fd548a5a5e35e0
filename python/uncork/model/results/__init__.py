"""Results of finished runs, one module a kind of run; each is a public JSON document."""
