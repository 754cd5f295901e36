"""A pipeline's idle start and end, and how many micro-batches' activations a stage keeps.

>>> round(bubble_fraction(stages=4, micro_batches=8), 3)  # of the step
0.273
>>> bubble_fraction(4, 8, virtual_stages=2) < bubble_fraction(4, 8)
True

p stages hand m micro-batches on. GPipe (Huang et al. 2019) runs all forward passes, then all backward passes; 1F1B
(Narayanan et al. 2019) alternates and keeps less, with the same bubble; interleaved 1F1B (Narayanan et al. 2021) gives
each stage v pieces of the model, so that it starts and ends v times sooner. Stages take equal time; sending takes none
(``overlap.pipeline_parallel_ratio``).
"""

from ringzero.costs.page.inputs import positive


def bubble_over_ideal(stages: int, micro_batches: int, virtual_stages: int = 1) -> float:
    """Idle time over the time of the work alone: (p-1) / (v m) (Narayanan et al. 2021, section 2.2)."""
    positive(stages=stages, micro_batches=micro_batches, virtual_stages=virtual_stages)
    return (stages - 1) / (virtual_stages * micro_batches)


def bubble_fraction(stages: int, micro_batches: int, virtual_stages: int = 1) -> float:
    """The part of the step in which a stage is idle: (p-1) / (v m + p - 1) (Huang et al. 2019)."""
    idle = bubble_over_ideal(stages, micro_batches, virtual_stages)
    return idle / (1 + idle)


def micro_batches_kept(stages: int, micro_batches: int, position: int = 0, virtual_stages: int = 1) -> float:
    """Micro-batches whose activations the stage at ``position`` (0 is the first) keeps at once, at the most.

    1F1B keeps those under way, p - position; GPipe all m. Interleaved, the first stage keeps p + (p-1)/v, which is
    1 + (p-1)/(pv) times as much (Korthikanti et al. 2022, section 4.2.3). In micro-batches of all the stage's layers.
    Raises ValueError for a stage that the pipeline does not have.
    """
    positive(stages=stages, micro_batches=micro_batches, virtual_stages=virtual_stages)
    if not 0 <= position < stages:
        raise ValueError(f"position is {position}; the pipeline has the stages 0 to {stages - 1}")
    under_way: float = stages - position
    if virtual_stages > 1:  # in pieces: 2(p - 1 - position) forward passes ahead, v - 1 rounds of p pieces, and one
        under_way = (2 * (stages - 1 - position) + (virtual_stages - 1) * stages + 1) / virtual_stages
    return min(micro_batches, under_way)
