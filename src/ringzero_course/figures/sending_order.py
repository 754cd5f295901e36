"""Which layer's gradients leave first, as lanes: one step of training with a parameter server.

The backward pass makes the last layer's gradients first, the next forward pass needs the first layer's parameters
first. With nothing ``ahead`` the step takes as long as ``ringzero.costs.server.scheduled_step_seconds`` says.
"""

from collections.abc import Sequence

from ringzero_course.figures.lanes import Work

Message = tuple[float, int, int, float]  # when it is ready, layer, number, seconds on the link


def sending_order(
    forwards: Sequence[float],
    backwards: Sequence[float],
    transfers: Sequence[float],
    pieces: Sequence[int],
    by_need: bool,
    ahead: int = 0,
) -> tuple[dict[str, list[Work]], float]:
    """The rows of ``lanes`` for a step, and its seconds.

    For each layer: seconds of its forward and backward pass and of its transfer one way, and in how many pieces it
    travels. ``by_need``: of the pieces that wait, the one that the forward pass needs first leaves first, else the one
    that was ready first. ``ahead``: so many other pieces are under way when the next one is chosen, and it cannot
    overtake them.
    """
    rows: dict[str, list[Work]] = {what: [] for what in ("backward", "push", "pull", "forward")}
    messages: list[Message] = []
    now = 0.0
    for layer in reversed(range(len(transfers))):
        rows["backward"].append((f"{layer}", now, now + backwards[layer], layer))
        now += backwards[layer]
        each = transfers[layer] / pieces[layer]
        messages += [(now, layer, len(messages) + piece, each) for piece in range(pieces[layer])]
    for way in ("push", "pull"):
        bars = _through_link(messages, by_need, ahead)
        rows[way] = [(f"{layer}", begin, end, layer) for (_, layer, _, _), begin, end in bars]
        messages = [(end, layer, number, seconds) for (_, layer, number, seconds), _, end in bars]
    for layer, seconds in enumerate(forwards):
        begin = max([now, *(end for end, of, _, _ in messages if of == layer)])
        now = begin + seconds
        rows["forward"].append((f"{layer}", begin, now, layer))
    return rows, now


def _through_link(messages, by_need, ahead):
    """Each message with its begin and end, in the order in which they leave."""
    waiting, bars, ends = list(messages), [], []
    while waiting:
        chosen = max(ends[-1 - ahead] if len(ends) > ahead else 0.0, min(ready for ready, *_ in waiting))
        there = [message for message in waiting if message[0] <= chosen + 1e-12]
        first = min(there, key=(lambda m: m[1:3]) if by_need else (lambda m: (m[0], m[2])))
        waiting.remove(first)
        begin = max(chosen, ends[-1] if ends else 0.0)
        ends.append(begin + first[3])
        bars.append((first, begin, ends[-1]))
    return bars
