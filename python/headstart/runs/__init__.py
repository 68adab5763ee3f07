"""Grids of runs: a plan of cases, their runs in threads, and the rows that come of them."""
