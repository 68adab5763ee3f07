"""Tests of the Python side."""
