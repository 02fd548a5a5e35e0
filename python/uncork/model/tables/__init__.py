"""All stored tables: their columns, types, units and meaning."""
