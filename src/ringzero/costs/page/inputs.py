"""Checks that the formulas share. Each raises ValueError naming the argument, its value and what to give."""


def positive(**values: float) -> None:
    """Raise ValueError unless every value is above 0. NaN is not above 0."""
    for name in sorted(values):  # MicroPython passes keywords in no fixed order
        if not values[name] > 0:
            raise ValueError(f"{name} is {values[name]}; give a number above 0")


def ranks(world_size: int) -> int:
    """``world_size``, or ValueError for fewer than 1."""
    if not world_size >= 1:
        raise ValueError(f"world_size is {world_size}; give at least 1 rank")
    return world_size


def known(pairs: tuple, name: object, what: str) -> None:
    """Raise ValueError unless ``name`` comes first in one of ``pairs``; ``what`` says what the names stand for."""
    names = [key for key, _ in pairs]
    if name not in names:
        raise ValueError(f"{what} is {name!r}; it is one of {', '.join([str(key) for key in names])}")
