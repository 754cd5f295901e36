"""Claims about a run of ``harness.reduced``: what is handed to ``all_reduce`` is the gradient, while backward runs."""

from collections.abc import Callable

import torch

from ringzero.lab.runs import Claim, Run

NOT_USED = (
    "in a second call all_reduce brings twice the sum, and what is returned is not that of steps twice as long: "
    "is it made of what all_reduce brings?"
)


def is_the_gradient(gradients: Callable[[Run], list], tolerance: float = 1e-2) -> Claim:
    """A claim: in step s rank r hands over ``gradients(run)[s][r]``, a list of tensors, and nothing else.

    In any order, and up to a factor: the mean may be taken before the sum or after it. A single rank hands nothing.
    """

    def claim(run):
        if run.world_size == 1:
            return None
        for step, of_ranks in enumerate(gradients(run)):
            for rank, right in enumerate(of_ranks):
                given = run.reports[rank].given[step * len(right) : (step + 1) * len(right)]
                if any(not any(_is_a_multiple(one, other, tolerance) for one in given) for other in right):
                    words = "its gradient" if len(right) == 1 else "its gradients"
                    return f"in step {step} what rank {rank} hands to all_reduce is not {words}"
        return None

    return claim


def steps_added_up(gradients: Callable[[Run], list], tolerance: float = 1e-2) -> Claim:
    """As ``is_the_gradient``; it fails only where what is handed over has the gradients of steps before in it."""

    def claim(run):
        sums: list | None = None
        for step, of_ranks in enumerate(gradients(run)):
            handed = [right if sums is None else add(right, sums) for right in of_ranks]
            for rank, expected in enumerate(handed if step else ()):
                given = run.reports[rank].given[step * len(expected) : (step + 1) * len(expected)]
                if all(any(_is_a_multiple(one, other, tolerance) for one in given) for other in expected):
                    return (
                        f"in step {step} what rank {rank} hands to all_reduce is its gradient added to that of the "
                        "step before: call zero_grad"
                    )
            sums = [torch.stack(of_all).mean(0) for of_all in zip(*handed, strict=True)]
        return None

    def add(one, other):
        return [a + b for a, b in zip(one, other, strict=True)]

    return claim


def _is_a_multiple(given, right, tolerance):
    given, right = given.flatten().double(), right.flatten().double()
    if given.shape != right.shape or not given.abs().max() > 0:
        return not right.abs().max() > 0 and given.shape == right.shape
    factor = torch.dot(given, right) / torch.dot(given, given)
    return bool((factor * given - right).abs().max() <= tolerance * right.abs().max())


def leaves_while_backward_runs(layers: int, messages: int) -> Claim:
    """A claim: the gradients of the last layer leave before the backward pass comes to the layer before.

    A step's model has so many ``layers``, and a rank hands over so many ``messages`` in it, the same for each layer.
    """

    def claim(run):
        if run.world_size == 1:
            return None
        of_a_layer = messages // layers
        for rank, report in enumerate(run.reports):
            for number, (inside, reached) in enumerate(zip(report.inside, report.reached, strict=True)):
                step, place = divmod(number, messages)
                if not inside:
                    return f"in step {step} rank {rank} calls all_reduce after backward, and not while it runs"
                if place < of_a_layer and any(report.reached) and reached > step * layers + 1:
                    return (
                        f"in step {step} rank {rank} calls all_reduce for the last layer "
                        "when backward has come to the layer before"
                    )
        return None

    return claim
