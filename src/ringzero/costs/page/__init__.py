"""Formulas that a web page runs too, unchanged, in MicroPython.

So these modules import only ``math`` and each other, and use only what MicroPython has: no dataclasses, no ``typing``,
no ``zip(strict=)``. MicroPython's dictionaries keep no order. A table that is shown or listed is therefore a tuple of
pairs; a dictionary is only looked up in.
"""
