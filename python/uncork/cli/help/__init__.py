"""The help of commands: what it contains, and how a page of it is laid out."""
