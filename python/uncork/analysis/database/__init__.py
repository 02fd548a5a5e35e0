"""Results of watched servers."""
