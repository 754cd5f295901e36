"""Stretches of time as lists of ``(begin, end)``: sorted, none empty, none touching the next one."""

from collections.abc import Iterable

Spans = list[tuple[float, float]]


def union(pieces: Iterable[tuple[float, float]]) -> Spans:
    """The time that is in any of ``pieces``, which come in any order.

    >>> union([(3, 5), (0, 1), (4, 6)])
    [(0, 1), (3, 6)]
    """
    joined: Spans = []
    for begin, end in sorted(pieces):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        elif begin < end:
            joined.append((begin, end))
    return joined


def both(first: Spans, second: Spans) -> Spans:
    """The time that is in ``first`` and in ``second``.

    >>> both([(0, 4), (6, 9)], [(3, 7)])
    [(3, 4), (6, 7)]
    """
    shared, i, j = [], 0, 0
    while i < len(first) and j < len(second):
        begin, end = max(first[i][0], second[j][0]), min(first[i][1], second[j][1])
        if begin < end:
            shared.append((begin, end))
        if first[i][1] <= second[j][1]:
            i += 1
        else:
            j += 1
    return shared


def without(first: Spans, second: Spans) -> Spans:
    """The time that is in ``first`` and not in ``second``.

    >>> without([(0, 9)], [(3, 4), (8, 10)])
    [(0, 3), (4, 8)]
    """
    left, j = [], 0
    for begin, end in first:
        while j < len(second) and second[j][1] <= begin:
            j += 1
        k = j
        while k < len(second) and second[k][0] < end:
            if second[k][0] > begin:
                left.append((begin, second[k][0]))
            begin = max(begin, second[k][1])
            k += 1
        if begin < end:
            left.append((begin, end))
    return left


def length(spans: Spans) -> float:
    """Seconds in all of them together."""
    return sum(end - begin for begin, end in spans)
