"""Claims about the order in which copies, steps and computations began in the two memories of ``Tiers``.

A rule is an event, ``(kind, numbers)``, and another that may only come after it; ``END`` comes after all. A layer is
known by how many numbers it has.
"""

from collections.abc import Iterable, Sequence

Event = tuple[str, int]

END: Event = ("end", 0)
SAID = {
    "to_host": "the copy of layer {} to the host",
    "to_device": "the copy of layer {} to the device",
    "wait to_host": "waiting for the copy of layer {} to the host",
    "wait to_device": "waiting for the copy of layer {} to the device",
    "step": "the step of layer {}",
    "forward": "the forward pass of layer {}",
    "backward": "the backward pass of layer {}",
}


def out_of_order(events: Iterable[Sequence], rules: Iterable[tuple[Event, Event]], sizes: Sequence[int]) -> str | None:
    """Why the ``events`` break one of the ``rules``, or None. Layer i has ``sizes[i]`` numbers."""
    places: dict[Event, int] = {}
    for place, (kind, numel, *_) in enumerate([*events, END]):
        places.setdefault((kind, numel), place)
    never = places[END] + 1
    for first, then in rules:
        if then in places and places.get(first, never) > places[then]:
            what = _said(first, sizes)
            return f"{what} never came" if then == END else f"{_said(then, sizes)} came before {what}"
    return None


def _said(event, sizes):
    kind, numel = event
    return SAID[kind].format(sizes.index(numel))
