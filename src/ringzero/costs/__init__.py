"""Formulas on plain numbers. Those in ``costs.page`` run in web pages, too.

Sizes are in bytes, times in seconds, rates in bytes or FLOP a second, unless a name or a docstring says otherwise.
Functions raise ValueError for a number that makes no sense, naming the argument, its value and what to give.
"""
