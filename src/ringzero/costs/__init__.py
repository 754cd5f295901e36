"""Formulas on plain numbers. They import nothing but ``math`` and run in a web page (MicroPython) unchanged."""
