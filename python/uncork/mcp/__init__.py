"""Calls of a language model's client in, by the Model Context Protocol; results of `uncork.api` out."""
