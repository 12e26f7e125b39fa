"""Lazies of generators, whose rows come once and in order."""
