"""Decompositions of matrices with many rows: loops of jobs, and NumPy's LAPACK for what is small.
"""
