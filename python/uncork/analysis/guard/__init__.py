"""Results of guards, and what may explain them."""
