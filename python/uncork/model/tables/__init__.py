"""Every stored table: its columns, their types, units and meaning."""
