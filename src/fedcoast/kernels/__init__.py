"""Pure functions on arrays: the mathematics of the field, one noun a file, NumPy only."""
