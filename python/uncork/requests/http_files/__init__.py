"""Read the requests of an HTTP load from files of several kinds."""
