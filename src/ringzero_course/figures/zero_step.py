"""One step of ZeRO-3, moment by moment: what each rank holds of every layer, and what happens in between."""

from typing import NamedTuple

from ringzero.drawing.figure import Figure
from ringzero_course.figures.blocks import shares
from ringzero_course.figures.controls import explore

PARAMETERS, GRADIENTS, SIZE = 4, 0, 4.6  # colours, and how wide a layer is


class Moment(NamedTuple):
    """``whole``: the layer whose parameters are whole, if one is; ``gradients``: "whole" or "shard", by layer."""

    says: str
    whole: int | None
    gradients: dict[int, str]
    collectives: int  # so far


def moments(layers: int) -> list[Moment]:
    """Of a step, from its beginning to the optimizer's.

    >>> [moment.says for moment in moments(1)][1:4]
    ['all-gather of layer 1', 'forward pass of layer 1', 'layer 1 is freed']
    """
    found = [Moment("the step begins", None, {}, 0)]

    def then(says, whole, gradients=(), collectives=0):
        last = found[-1]
        found.append(Moment(says, whole, last.gradients | dict(gradients), last.collectives + collectives))

    for layer in range(1, layers + 1):
        then(f"all-gather of layer {layer}", layer, collectives=1)
        then(f"forward pass of layer {layer}", layer)
        then(f"layer {layer} is freed", None)
    for layer in range(layers, 0, -1):
        then(f"all-gather of layer {layer}, again", layer, collectives=1)
        then(f"backward pass of layer {layer}: its gradient is whole", layer, {layer: "whole"})
        then(f"reduce-scatter of layer {layer}'s gradient", layer, {layer: "shard"}, collectives=1)
        then(f"layer {layer} is freed", None)
    then("the optimizer steps each rank's shard; nothing is sent", None)
    return found


def zero3_step(layers: int = 3, ranks: int = 3, *, start: int = 0, caption: str | None = None) -> Figure:
    """Let the reader go through a step of ZeRO-3. ``start`` is the moment that is shown first."""
    step = moments(layers)
    parts = {f"layer {layer}": (SIZE, PARAMETERS) for layer in range(1, layers + 1)}
    parts |= {f"gradient {layer}": (SIZE, GRADIENTS) for layer in range(1, layers + 1)}

    def held(moment, rank):
        mine, found = (rank / ranks, (rank + 1) / ranks), {}
        for layer in range(1, layers + 1):
            found[f"layer {layer}"] = (0.0, 1.0) if layer == moment.whole else mine
            if layer in moment.gradients:
                found[f"gradient {layer}"] = (0.0, 1.0) if moment.gradients[layer] == "whole" else mine
        return found

    def draw(moment):
        at = step[moment]
        rows = {f"rank {rank}": held(at, rank) for rank in range(ranks)}
        return (
            shares(parts, rows, title=f"ZeRO-3: {at.says}"),
            [("what happens", at.says), ("collectives so far", f"{at.collectives} of {step[-1].collectives}")],
        )

    return explore(draw, {"moment": range(len(step))}, default={"moment": start}, caption=caption)
