"""Functions of numbers, written in Python, as expressions: gd.vectorize and gd.stencil."""
