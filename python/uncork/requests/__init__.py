"""Words or values in, typed jobs out; what is refused is refused by the option's name."""
