"""Formulas on plain numbers, which a web page runs unchanged in MicroPython.

So these modules import only ``math`` and each other, and use only what MicroPython has: no dataclasses, no ``typing``,
no ``zip(strict=)``. MicroPython's dictionaries keep no order. A table that is shown or listed is therefore a tuple of
pairs; a dictionary is only looked up in.

Sizes are in bytes, times in seconds, rates in bytes or FLOP a second, unless a name or a docstring says otherwise.
Functions raise ValueError for a number that makes no sense, naming the argument, its value and what to give.
"""
