"""Grids of runs: a plan of cases, their runs in threads, and the resulting rows."""
