"""Datasets: batches of rows of arrays that never fit, for training."""
