"""Generators of communicating programs, correct ones and ones with a known fault."""
