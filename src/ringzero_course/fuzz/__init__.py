"""Generators of communicating programs, correct ones and ones with a known fault, for tests and benches."""
