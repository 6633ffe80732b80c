"""The parts of make_golden.py, one module per kind of vector."""
