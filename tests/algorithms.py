"""Every algorithm, and options to try it with. Tests of all algorithms take them from here: a new one needs no line."""

import pytest

from ringzero.collectives import ALGORITHMS, options, shapes

EVERY = [(collective, name) for collective, named in ALGORITHMS.items() for name in named]
every_algorithm = pytest.mark.parametrize(("collective", "name"), EVERY)


def grids(collective, name, n):
    """All shapes of ``n`` ranks that the algorithm takes; none for one that takes no shape."""
    sides = getattr(ALGORITHMS[collective][name], "sides", ())
    return shapes(n, len(sides)) if sides else []


def some_options(collective, name, n):
    """No options; then, of an algorithm that takes some, all of them, set to something else than by default."""
    other = {"root": n - 1, "chunks": 7, "servers": (n + 1) // 2}
    if possible := grids(collective, name, n):
        other["shape"] = possible[len(possible) // 4]
    takes = options(collective, name)
    return [{}, {option: other[option] for option in takes}] if takes else [{}]


def priced_options(collective, name, n):
    """No options; then each value worth trying of each option that changes the cost."""
    shapes = grids(collective, name, n)
    values = {"chunks": [2, 5, 8], "servers": sorted({n, n // 2 + 1}), "shape": shapes[:: 1 + len(shapes) // 10]}
    takes = [option for option in options(collective, name) if option != "root"]
    return [{}, *({option: value} for option in takes for value in values[option])]
