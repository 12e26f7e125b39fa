"""NumPy's functions on arrays of any kind: each gives a lazy expression, or is computed at once
(out=, where it moves)."""
